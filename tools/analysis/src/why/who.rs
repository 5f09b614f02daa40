// SPDX-License-Identifier: GPL-2.0

//! The threads whose waits are asked about.

use crate::interrupts::Interrupt;
use crate::schedule::{Schedule, Span};
use crate::schedule_events::Switch;
use crate::threads::{self, Sort, Waiter};
use crate::{Analysis, Answer, Catalogue, Missing, Moment, Nothing};
use rtrace_input::glob;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write;
use terminal::{duration, printable};

/// Number of names that a message has.
const NAMES: usize = 12;

/// Threads of a trace, as named by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The thread with this id.
    Thread(i64),
    /// All threads of a process.
    Process(i64),
    /// The threads whose names match a pattern.
    Named(String),
}

/// Fails if the trace lacks the events for the waits of threads.
pub fn check(catalogue: &Catalogue<'_>) -> Result<(), Missing> {
    match catalogue.has_switches() {
        true => Ok(()),
        false => Err(Missing {
            option: "`rtrace why`",
            events: "sched_switch",
            record: "-e sched,irq,syscalls -e 'block_rq_*' -e 'timer_*expire*'".into(),
        }),
    }
}

/// Analysis that gathers the threads of a trace.
pub struct Threads<'a> {
    threads: threads::Threads,
    found: &'a mut Vec<Waiter>,
}

impl<'a> Threads<'a> {
    /// Creates the analysis. At the end of the trace it adds all threads to `found`.
    pub fn new(catalogue: &Catalogue<'_>, found: &'a mut Vec<Waiter>) -> Result<Self, Missing> {
        check(catalogue)?;
        let threads = threads::Threads::new(catalogue, Sort::Blocked)?;
        Ok(Self { threads, found })
    }
}

impl Analysis for Threads<'_> {
    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.threads.switch(switch, now);
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        self.threads.span(span, schedule);
    }

    fn wants_interrupts(&self) -> bool {
        true
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        self.threads.interrupt(interrupt, schedule);
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        self.found.extend(self.threads.waiters());
        self.found
            .sort_by_key(|waiter| (Reverse(waiter.waiting_ns()), waiter.id));
        Box::new(Nothing)
    }
}

/// Returns the threads that `who` names. Otherwise the error says which threads the trace has.
pub fn find(all: &[Waiter], who: &Who) -> Result<Vec<Waiter>, String> {
    let is_of = |waiter: &&Waiter| match who {
        Who::Thread(tid) => waiter.tid == *tid,
        Who::Process(pid) => waiter.pid.unwrap_or(waiter.tid) == *pid,
        Who::Named(pattern) => glob::matches(pattern, waiter.comm.as_bytes()),
    };
    let found: Vec<_> = all.iter().filter(is_of).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let what = match who {
        Who::Thread(tid) => format!("no thread {tid} runs or waits in the trace"),
        Who::Process(pid) => format!("no process {pid} runs or waits in the trace"),
        Who::Named(name) => format!("no thread in the trace is called {}", printable(name)),
    };
    Err(match names(all) {
        names if names.is_empty() => what,
        names => format!("{what}; it has {}", names.join(", ")),
    })
}

/// Returns the names of the threads, those that ran longest first.
fn names(all: &[Waiter]) -> Vec<String> {
    let mut names: Vec<_> = commands(all).into_iter().map(|row| row.comm).collect();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let mut names: Vec<_> = names
        .iter()
        .map(|name| printable(name).to_string())
        .collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names
}

/// Times of all threads with a name.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Command {
    /// The name.
    pub comm: String,
    /// Number of threads.
    pub threads: u64,
    /// Sums of the times.
    pub running_ns: u64,
    /// Time in which they waited for a CPU.
    pub runnable_ns: u64,
    /// Time in which they waited for something else.
    pub blocked_ns: u64,
}

/// Returns the commands of a trace, in the order of the time in which they ran or waited for a CPU. A thread without work
/// only sleeps, so it comes last.
pub fn commands(all: &[Waiter]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for waiter in all {
        let place = commands.iter().position(|row| row.comm == waiter.comm);
        let place = place.unwrap_or_else(|| {
            commands.push(Command {
                comm: waiter.comm.clone(),
                threads: 0,
                running_ns: 0,
                runnable_ns: 0,
                blocked_ns: 0,
            });
            commands.len() - 1
        });
        let row = &mut commands[place];
        row.threads += 1;
        row.running_ns = row.running_ns.saturating_add(waiter.running_ns);
        row.runnable_ns = row.runnable_ns.saturating_add(waiter.runnable_ns);
        row.blocked_ns = row.blocked_ns.saturating_add(waiter.blocked_ns);
    }
    commands.sort_by_key(|row| Reverse(row.running_ns.saturating_add(row.runnable_ns)));
    commands
}

/// Returns a sentence that asks for one of the threads.
pub fn ask(all: &[Waiter]) -> String {
    let mut text =
        "which thread or command? `rtrace why NAME DIR`, or a thread id; the trace has\n"
            .to_owned();
    let rows = commands(all);
    for row in rows.iter().take(NAMES) {
        let times = [row.running_ns, row.runnable_ns, row.blocked_ns].map(duration);
        let [running, runnable, blocked] = times;
        let comm = printable(&row.comm).to_string();
        let _ = writeln!(
            text,
            "  {comm:<16} ran {running:>10}, runnable {runnable:>10}, blocked {blocked:>10}"
        );
    }
    if let more @ 1.. = rows.len().saturating_sub(NAMES) {
        let _ = writeln!(text, "  and {more} more (`rtrace report --threads`)");
    }
    text.trim_end().to_owned()
}
