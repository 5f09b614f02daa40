// SPDX-License-Identifier: GPL-2.0

//! Counts what threads do, until a table is taken.

use super::table::{ThreadRow, TopTable};
use crate::args::Column;
use analysis::loss::Loss;
use analysis::schedule::{Schedule, Span};
use analysis::schedule_events::Activity;
use analysis::schedule_events::Switch;
use analysis::syscalls::{edge, Edge, Names, Which, ERRORS};
use analysis::tasks::Life;
use analysis::{key, Analysis, Answer, Catalogue, EventKey, Missing, Moment};
use ctf::{Clock, Event};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use system::printing;

/// The work of threads since the last table.
#[derive(Debug)]
pub struct Tally {
    clock: Clock,
    events: Vec<(EventKey, Kind)>,
    /// The names of system calls.
    calls: Names,
    /// The column by which tables are sorted.
    sort: Column,
    cpus: BTreeSet<u32>,
    /// Begin of the trace.
    begin: u64,
    /// Time of the last table.
    since: u64,
    /// By thread id, and by which of the threads that had this id.
    threads: HashMap<(i64, Life), Figures>,
    unknown_calls: u64,
    /// Events and packets lost.
    lost: (u64, u64),
}

/// Kind of an event.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// This call begins.
    Entry(Which),
    /// A call ends.
    Exit(Edge),
}

/// The work of a thread. Times are in clock ticks.
#[derive(Debug, Default)]
struct Figures {
    comm: Vec<u8>,
    ran: u64,
    switches: u64,
    wakeups: u64,
    worst: u64,
    calls: u64,
    errors: u64,
    /// Number of calls, by the call's number.
    by_call: HashMap<usize, u64>,
}

impl Tally {
    /// A tally of a trace with these events. Its tables are sorted by a column.
    pub fn new(catalogue: &Catalogue<'_>, sort: Column) -> Result<Self, Missing> {
        if !catalogue.has_switches() {
            return Err(Missing {
                option: "top",
                events: "sched_switch",
                record: "-e sched,syscalls".into(),
            });
        }
        let mut calls = Names::default();
        let mut events = Vec::new();
        for layout in catalogue.events() {
            match edge(layout) {
                Some((name, Edge::Entry)) => {
                    events.push((key(layout), Kind::Entry(calls.which(name))));
                }
                Some((_, edge)) => events.push((key(layout), Kind::Exit(edge))),
                None => {}
            }
        }
        Ok(Self {
            clock: catalogue.metadata().clock,
            events,
            calls,
            sort,
            cpus: BTreeSet::new(),
            begin: 0,
            since: 0,
            threads: HashMap::new(),
            unknown_calls: 0,
            lost: (0, 0),
        })
    }

    /// Sets the begin of the trace.
    pub fn begin(&mut self, time: u64) {
        self.begin = time;
        self.since = time;
    }

    /// Time of the last table.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Returns the table of the work until `time`, and begins a new one.
    pub fn take(&mut self, time: u64, schedule: &Schedule) -> TopTable {
        // Count the part before `time` of the times on a CPU that continue.
        for (tid, from) in schedule.running_since() {
            let since = self.since;
            let life = schedule.life(tid);
            self.figures((tid, life), schedule).ran += time.saturating_sub(from.max(since));
        }
        self.table(time)
    }

    fn table(&mut self, time: u64) -> TopTable {
        let begin = std::mem::replace(&mut self.since, time);
        let (lost, packets_lost) = std::mem::take(&mut self.lost);
        // Without the idle task of each CPU.
        self.threads.retain(|(tid, _), _| *tid != 0);
        let nanoseconds = |ticks| self.clock.nanoseconds(ticks);
        let threads = self.threads.drain();
        let rows = threads.map(|((tid, _), figures)| ThreadRow {
            tid,
            comm: printing::text(&figures.comm).into_owned(),
            cpu_ns: nanoseconds(figures.ran),
            switches: figures.switches,
            wakeups: figures.wakeups,
            worst_wait_ns: nanoseconds(figures.worst),
            calls: figures.calls,
            errors: figures.errors,
            top_call: top_call(&figures, self.calls.all()),
        });
        let mut table = TopTable {
            begin_ns: self.clock.since_epoch(begin),
            duration_ns: nanoseconds(time.saturating_sub(begin)),
            cpus: self.cpus.len(),
            lost,
            packets_lost,
            unknown_calls: std::mem::take(&mut self.unknown_calls),
            rows: rows.collect(),
        };
        table.sort(self.sort);
        table
    }

    /// The figures of a thread, which are created if they do not exist.
    fn figures(&mut self, thread: (i64, Life), schedule: &Schedule) -> &mut Figures {
        let figures = self.threads.entry(thread).or_default();
        if let Some(comm) = schedule.comm(thread.0).filter(|comm| *comm != figures.comm) {
            figures.comm = comm.to_vec();
        }
        figures
    }
}

impl Analysis for Tally {
    fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, now: &Moment<'_>) {
        let kind = self.events[which].1;
        let thread = now.task.map(|task| (task.tid, task.life));
        match (thread, kind) {
            (None, Kind::Entry(_)) => self.unknown_calls += 1,
            (None, Kind::Exit(_)) => {}
            (Some(thread), Kind::Entry(call)) => {
                let call = self.calls.place(call, event);
                let figures = self.figures(thread, now.schedule);
                figures.calls += 1;
                if let Some(call) = call {
                    *figures.by_call.entry(call).or_default() += 1;
                }
            }
            (Some(thread), Kind::Exit(edge)) => {
                if edge.result(event).is_some_and(|ret| ERRORS.contains(&ret)) {
                    self.figures(thread, now.schedule).errors += 1;
                }
            }
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        let next = switch.next_tid;
        let life = now.schedule.life(next);
        self.figures((next, life), now.schedule).switches += 1;
    }

    fn cpu(&mut self, number: u32) {
        self.cpus.insert(number);
    }

    fn loss(&mut self, loss: &Loss) {
        self.lost.0 += loss.events;
        self.lost.1 += loss.packets + loss.packets_before;
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        let since = self.since;
        let figures = self.figures((span.tid, span.life), schedule);
        match span.state {
            Activity::Running => figures.ran += span.to.saturating_sub(span.from.max(since)),
            Activity::Runnable { woken: true } if span.is_complete => {
                figures.wakeups += 1;
                figures.worst = figures.worst.max(span.ticks());
            }
            Activity::Runnable { .. } | Activity::Blocked(_) => {}
        }
    }

    /// The table of the time after the last table.
    fn answer(mut self: Box<Self>, ticks: u64) -> Box<dyn Answer> {
        Box::new(self.table(self.begin.saturating_add(ticks)))
    }
}

/// The name of the call that a thread made most often.
fn top_call(figures: &Figures, names: &[String]) -> Option<String> {
    let calls = figures.by_call.iter();
    let (call, _) = calls.max_by_key(|(call, count)| (**count, Reverse(**call)))?;
    names.get(*call).cloned()
}
