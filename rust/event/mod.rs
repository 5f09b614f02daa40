// SPDX-License-Identifier: GPL-2.0

//! The events: what is recorded, declared.
//!
//! One file per subsystem. A declaration names the tracepoint, its arguments and the fields
//! with how each is read; the `event!` macro in [`declare`] makes the probe, the layout and the
//! description from it.

#[macro_use]
mod declare;
mod field;
mod irq;
mod sched;

pub(crate) use declare::Declaration;

/// All declared events. An event's place is its id, for ever: only append. Ids below 31 fit the
/// compact event header, so the most frequent come first.
pub(crate) static DECLARED: &[&Declaration] = &[
    &sched::SCHED_SWITCH,
    &irq::IRQ_SOFTIRQ_ENTRY,
    &irq::IRQ_HANDLER_ENTRY,
];
