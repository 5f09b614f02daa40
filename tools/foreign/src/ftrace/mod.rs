// SPDX-License-Identifier: GPL-2.0

//! The common part of formats with ftrace's events: `trace.dat` and `perf.data`.
//!
//! `format.rs` parses the kernel's descriptions of events. `plan.rs` compiles them to rtrace's layouts and to steps,
//! with rtrace's names (`names.rs`) and its events of system calls (`calls.rs`). `class.rs` makes a stream class of
//! them. `page.rs` reads the sub-buffers of the kernel's ring buffer.

mod calls;
mod class;
mod format;
mod names;
mod page;
mod plan;
mod symbols;

pub use class::Events;
pub use format::EventFormat;
pub use names::{event as event_name, field as field_name};
pub use page::{Missed, PageLayout};
