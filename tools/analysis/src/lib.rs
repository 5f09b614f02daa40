// SPDX-License-Identifier: GPL-2.0

//! Analyses of a trace's events, which arrive in order of time. They find the threads on each CPU, the
//! waits of threads, and the answers to the questions of `rtrace report`.
//!
//! A question is an [`Analysis`]. One [pass](pass) reads the trace for all of them.

#![forbid(unsafe_code)]

pub mod aux;
pub mod begun;
mod busy;
mod by_event;
mod by_id;
mod calls;
mod catalogue;
pub mod choice;
mod cpu;
mod critical_path;
pub mod delay;
pub mod descriptors;
pub mod durations;
pub mod engine;
pub mod form;
pub mod frame;
pub mod head;
pub mod initial;
pub mod interrupts;
pub mod io;
mod irq;
mod latency;
mod locks;
mod longest;
pub mod loss;
pub mod maps;
pub mod meanwhile;
pub mod pass;
mod profile;
mod question;
pub mod recent;
mod runners;
pub mod schedule;
pub mod schedule_events;
pub mod summary;
pub mod summary_text;
pub mod syscalls;
pub mod tasks;
pub mod text;
mod threads;
pub mod uring;
pub mod whose;
pub mod why;

pub use by_event::ByEvent;
pub use catalogue::{architecture, bits, integer, key, text, Catalogue, EventKey};
pub use critical_path::handlers;
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
use std::borrow::Cow;
use std::fmt;
use whose::{Owner, Task};

/// Gathers the answer to a question from a trace's events, which arrive in order of time. An analysis
/// implements the methods that it needs.
pub trait Analysis {
    /// Returns the events that the analysis receives. `event` identifies each by its index in this list.
    fn events(&self) -> Vec<EventKey> {
        Vec::new()
    }

    /// Returns how much time the analysis takes, relative to others.
    fn cost(&self) -> u32 {
        1
    }

    /// Returns whether `any` receives all events, too.
    fn wants_all(&self) -> bool {
        false
    }

    /// Processes an event of any kind, after the schedule has processed it.
    fn any(&mut self, _event: &Event<'_>, _now: &Moment<'_>) {}

    /// Processes an event of the list that `events` returned. `_which` is its index there.
    fn event(&mut self, _which: usize, _event: &Event<'_>, _now: &Moment<'_>) {}

    /// Handles a switch of a CPU from one task to another, after the schedule has processed it.
    fn switch(&mut self, _switch: &Switch<'_>, _now: &Moment<'_>) {}

    /// Announces a CPU that has events in the trace.
    fn cpu(&mut self, _number: u32) {}

    /// Handles a span: an activity of a thread has ended, or is not known any more.
    fn span(&mut self, _span: &Span, _schedule: &Schedule) {}

    /// Handles a span of a thread that is not chosen. It can explain a wait of a chosen thread.
    fn around(&mut self, _span: &Span, _schedule: &Schedule) {}

    /// Returns whether the analysis receives interrupts.
    fn wants_interrupts(&self) -> bool {
        false
    }

    /// Handles a completed interrupt.
    fn interrupt(&mut self, _interrupt: &Interrupt<'_>, _schedule: &Schedule) {}

    /// Handles a loss: events of a CPU may be missing from this time on. The schedule knows which CPU.
    fn lost(&mut self, _schedule: &Schedule, _time: u64) {}

    /// Handles a loss of interrupts of the CPU at this index: they may be missing from now on.
    fn interrupts_lost(&mut self, _cpu: usize) {}

    /// Handles a loss of a stream, whose events may be missing.
    fn loss(&mut self, _loss: &Loss) {}

    /// Returns the answer at the end of the trace, which has `_ticks` clock ticks.
    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        Box::new(Nothing)
    }
}

/// An analysis that can run in another thread.
pub type SendAnalysis<'a> = Box<dyn Analysis + Send + 'a>;

/// State of the trace at an event.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Time of the trace's clock.
    pub time: u64,
    /// Index of the event's CPU in the schedule.
    pub cpu: usize,
    /// The schedule, with the task that runs on each CPU after the event.
    pub schedule: &'a Schedule,
    /// The task that the event happened to, if it is known.
    pub task: Option<Task<'a>>,
    /// The switch of the CPU, if the event is one.
    pub switch: Option<Switch<'a>>,
}

impl<'a> Moment<'a> {
    /// Creates the moment of an event from the schedule and from the event's meaning.
    pub fn new(schedule: &'a Schedule, event: &Event<'_>, happened: &Happened<'a>) -> Self {
        Self {
            time: event.timestamp,
            cpu: happened.cpu,
            schedule,
            task: schedule.task(happened),
            switch: happened.switch,
        }
    }

    /// Returns the thread; 0 is the idle task.
    pub fn tid(&self) -> Option<i64> {
        self.task.map(|task| task.tid)
    }

    /// Returns the process; if it is not known, the thread.
    pub fn owner(&self) -> Owner {
        Owner::of(self.task.as_ref())
    }

    /// Returns the task of the event, as the doer of an operation.
    pub fn doer(&self) -> Option<Doer> {
        self.task.map(|task| match task.serial {
            Some(serial) => Doer::Thread(serial),
            None => Doer::Idle(self.cpu),
        })
    }

    /// Returns the name of the thread.
    pub fn comm(&self) -> Option<&'a [u8]> {
        self.task?.comm
    }

    /// Returns the name of a process: the name of its first thread; if that is not known, of the event's
    /// thread.
    pub fn process_comm(&self, owner: Owner) -> Option<&'a [u8]> {
        let first = owner.pid().and_then(|pid| self.schedule.comm(pid));
        first.or_else(|| self.comm())
    }
}

/// The answer to a question.
pub trait Answer {
    /// Returns the answer's name in a JSON object.
    fn name(&self) -> &'static str;

    /// Returns the answer as a JSON value. Times are in nanoseconds.
    fn json(&self) -> serde_json::Result<Json>;

    /// Writes the answer as text, with at most `rows` rows per table.
    fn text(&self, out: &mut String, rows: usize) -> fmt::Result;

    /// Returns what the trace lacks, if it lacks the object of the question.
    fn lacks(&self) -> Option<String> {
        None
    }
}

/// The empty answer of an analysis whose owner reads the gathered data directly.
pub struct Nothing;

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

/// Error of a trace that lacks the events for a question.
#[derive(Debug, thiserror::Error)]
#[error(
    "{option} needs {events}, which the trace does not have; record them: `rtrace record {record}`"
)]
pub struct Missing {
    /// Option that asks the question.
    pub option: &'static str,
    /// The needed events, in words.
    pub events: &'static str,
    /// Options of `rtrace record` that record these events.
    pub record: Cow<'static, str>,
}
