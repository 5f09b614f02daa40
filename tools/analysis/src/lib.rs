// SPDX-License-Identifier: GPL-2.0

//! What can be found out of a trace's events, which come in order of time: who runs where, what threads
//! wait for, and the answers to the questions of `rtrace report`.
//!
//! A question is an [`Analysis`]. One [pass](pass) reads the trace for all of them.

#![forbid(unsafe_code)]

pub mod aux;
pub mod begun;
mod busy;
mod by_event;
mod calls;
mod catalogue;
mod cpu;
mod critical_path;
pub mod delay;
pub mod descriptors;
pub mod durations;
pub mod engine;
pub mod head;
pub mod interrupts;
mod io;
mod irq;
mod latency;
mod locks;
mod longest;
pub mod loss;
pub mod meanwhile;
pub mod pass;
mod profile;
mod question;
pub mod schedule;
pub mod schedule_events;
pub mod summary;
pub mod syscalls;
pub mod tasks;
pub mod text;
mod threads;
pub mod whose;

pub use by_event::ByEvent;
pub use catalogue::{bits, integer, key, text, Catalogue, EventKey};
pub use profile::{unit_of, Named, Sampled};
pub use question::Question;
pub use threads::Sort;

use begun::Doer;
use ctf::Event;
use interrupts::Interrupt;
use loss::Loss;
use schedule::{Happened, Schedule, Span};
use schedule_events::Switch;
use serde_json::Value as Json;
use std::fmt;
use whose::{Owner, Task};

/// Gathers the answer to a question from a trace's events, which come in order of time. Each takes
/// what it needs.
pub trait Analysis {
    /// The events that it is given. Each is known by its place in this list.
    fn events(&self) -> Vec<EventKey> {
        Vec::new()
    }

    /// Whether it is given all events, too.
    fn wants_all(&self) -> bool {
        false
    }

    /// An event of any kind. The schedule has it already.
    fn any(&mut self, _event: &Event<'_>, _now: &Moment<'_>) {}

    /// One of these events.
    fn event(&mut self, _which: usize, _event: &Event<'_>, _now: &Moment<'_>) {}

    /// A CPU went from one task to another. The schedule has it already.
    fn switch(&mut self, _switch: &Switch<'_>, _now: &Moment<'_>) {}

    /// The trace has events of this CPU.
    fn cpu(&mut self, _number: u32) {}

    /// What a thread did for a while has ended, or is not known any more.
    fn span(&mut self, _span: &Span, _schedule: &Schedule) {}

    /// Whether it is given interrupts.
    fn wants_interrupts(&self) -> bool {
        false
    }

    /// An interrupt was handled.
    fn interrupt(&mut self, _interrupt: &Interrupt<'_>, _schedule: &Schedule) {}

    /// On a CPU events may be missing from this time on. The schedule knows which.
    fn lost(&mut self, _schedule: &Schedule, _time: u64) {}

    /// Interrupts of the CPU at this place may be missing from here on.
    fn interrupts_lost(&mut self, _cpu: usize) {}

    /// Events of a stream may be missing.
    fn loss(&mut self, _loss: &Loss) {}

    /// The answer: the trace is over, after so many clock ticks.
    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        Box::new(Nothing)
    }
}

/// What is known when an event comes.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The clock.
    pub time: u64,
    /// The place of the event's CPU in the schedule.
    pub cpu: usize,
    /// The task that runs on each CPU after the event.
    pub schedule: &'a Schedule,
    /// The task that the event happened to, if that is known.
    pub task: Option<Task<'a>>,
    /// How the CPU has switched, if the event says that.
    pub switch: Option<Switch<'a>>,
}

impl<'a> Moment<'a> {
    /// At an event, of which the schedule says what it means.
    pub fn new(schedule: &'a Schedule, event: &Event<'_>, happened: &Happened<'a>) -> Self {
        Self {
            time: event.timestamp,
            cpu: happened.cpu,
            schedule,
            task: schedule.task(happened),
            switch: happened.switch,
        }
    }

    /// The thread; 0 is the idle task.
    pub fn tid(&self) -> Option<i64> {
        self.task.map(|task| task.tid)
    }

    /// The process, or at least the thread.
    pub fn owner(&self) -> Owner {
        Owner::of(self.task.as_ref())
    }

    /// The task that acts.
    pub fn doer(&self) -> Option<Doer> {
        self.task.map(|task| match task.serial {
            Some(serial) => Doer::Thread(serial),
            None => Doer::Idle(self.cpu),
        })
    }

    /// The name of the thread.
    pub fn comm(&self) -> Option<&'a [u8]> {
        self.task?.comm
    }

    /// The name of a process: that of its first thread, else of the thread.
    pub fn process_comm(&self, owner: Owner) -> Option<&'a [u8]> {
        let first = owner.pid().and_then(|pid| self.schedule.comm(pid));
        first.or_else(|| self.comm())
    }
}

/// The answer to a question.
pub trait Answer {
    /// What it is called in a JSON object.
    fn name(&self) -> &'static str;

    /// As a JSON value. Times are in nanoseconds.
    fn json(&self) -> serde_json::Result<Json>;

    /// As text, with at most `rows` rows in a table.
    fn text(&self, out: &mut String, rows: usize) -> fmt::Result;
}

/// The answer of an analysis whose owner reads what it gathered.
struct Nothing;

impl Answer for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn json(&self) -> serde_json::Result<Json> {
        Ok(Json::Null)
    }

    fn text(&self, _out: &mut String, _rows: usize) -> fmt::Result {
        Ok(())
    }
}

/// The trace lacks what a question is about.
#[derive(Debug, thiserror::Error)]
#[error(
    "{option} needs {events}, which the trace does not have; record them: `rtrace record {record}`"
)]
pub struct Missing {
    /// The option that asks the question.
    pub option: &'static str,
    /// Which events, in words.
    pub events: &'static str,
    /// Options to record them.
    pub record: &'static str,
}
