// SPDX-License-Identifier: GPL-2.0

//! Events with their own probes, declared one by one.
//!
//! There is one file per subsystem. A declaration names the tracepoint, its arguments, and the fields with the
//! expressions that read them; the `event!` macro in [`declare`] makes the probe, the layout, and the
//! description from it.

#[macro_use]
mod declare;
mod irq;
mod module;
mod nmi;
mod sched;
mod signal;
mod task;
mod timer;
mod varying;

use super::attached::AttachedProbes;
use super::description::FullName;
use super::event_source::{EventSource, FoundSources};
use super::probe_list::NewProbe;
use crate::abi::schema::Field;
use crate::sys::tracepoint::Tracepoint;
use declare::Declaration;
use kernel::error::Result;

/// An event with its own tracepoint and its own probe.
struct Typed {
    declaration: &'static Declaration,
    tracepoint: Tracepoint,
}

/// Finds the declared events whose tracepoints this kernel has.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    for &declaration in DECLARED {
        if let Some(tracepoint) = sources.tracepoint(declaration.tracepoint) {
            sources.add(Typed {
                declaration,
                tracepoint,
            })?;
        }
    }
    Ok(())
}

impl EventSource for Typed {
    fn full_name(&self) -> FullName<'_> {
        (self.declaration.subsystem, self.declaration.name)
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.declaration.fields.get(place).copied()
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        let Declaration {
            looking,
            updating,
            handlers,
            ..
        } = self.declaration;
        let handler = match new.channel {
            Some(channel) if !new.probe.looks() => handlers.select(channel.setup()),
            _ if new.probe.has_map() => *updating,
            _ => *looking,
        };
        to.at_tracepoint(self.tracepoint, handler, new)
    }

    fn aliases(&self) -> [Option<FullName<'_>>; 2] {
        let (subsystem, tracepoint) = (self.declaration.subsystem, self.declaration.tracepoint);
        let is_other = tracepoint != self.declaration.name;
        [is_other.then_some((subsystem, tracepoint)), None]
    }

    fn is_default(&self) -> bool {
        self.declaration.default
    }
}

/// All declared events, in the order of their ids, the most frequent first.
static DECLARED: &[&Declaration] = &[
    &sched::SCHED_SWITCH,
    &sched::SCHED_WAKING,
    &sched::SCHED_WAKEUP,
    &irq::IRQ_SOFTIRQ_ENTRY,
    &irq::IRQ_SOFTIRQ_EXIT,
    &irq::IRQ_SOFTIRQ_RAISE,
    &irq::IRQ_HANDLER_ENTRY,
    &irq::IRQ_HANDLER_EXIT,
    &sched::SCHED_MIGRATE_TASK,
    &sched::SCHED_STAT_RUNTIME,
    &timer::TIMER_HRTIMER_START,
    &timer::TIMER_HRTIMER_CANCEL,
    &timer::TIMER_HRTIMER_EXPIRE_ENTRY,
    &timer::TIMER_HRTIMER_EXPIRE_EXIT,
    &timer::TIMER_START,
    &timer::TIMER_CANCEL,
    &timer::TIMER_EXPIRE_ENTRY,
    &timer::TIMER_EXPIRE_EXIT,
    &timer::TIMER_INIT,
    &varying::TIMER_HRTIMER_INIT,
    &signal::SIGNAL_GENERATE,
    &signal::SIGNAL_DELIVER,
    &sched::SCHED_PROCESS_FORK,
    &sched::SCHED_WAKEUP_NEW,
    &sched::SCHED_PROCESS_EXEC,
    &varying::SCHED_PROCESS_EXIT,
    &sched::SCHED_PROCESS_FREE,
    &sched::SCHED_PROCESS_WAIT,
    &module::MODULE_LOAD,
    &module::MODULE_FREE,
    &module::MODULE_REQUEST,
    &sched::SCHED_STAT_WAIT,
    &sched::SCHED_STAT_SLEEP,
    &sched::SCHED_STAT_IOWAIT,
    &sched::SCHED_STAT_BLOCKED,
    &sched::SCHED_PI_SETPRIO,
    &timer::TIMER_ITIMER_STATE,
    &timer::TIMER_ITIMER_EXPIRE,
    &module::MODULE_GET,
    &module::MODULE_PUT,
    &nmi::NMI_HANDLER,
    &task::TASK_RENAME,
];
