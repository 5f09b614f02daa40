// SPDX-License-Identifier: GPL-2.0

//! Who runs on each CPU and what the other threads wait for, as far as the trace tells, and where
//! events are missing.
//!
//! What runs on a CPU is known from its first switch on, and again from the first after a loss among the events that
//! the schedule is made from. What a thread waits for is known only while no such event may be missing on any CPU: it
//! may be woken, run and sleep again there. A CPU is *whole* unless such an event, or one that begins or ends what a
//! thread does, may be missing.

mod happened;

pub use happened::Happened;

use super::schedule_events::{self, Kind, Left, Switch};
use super::tasks::{Life, Serial, Tasks};
use super::whose::{Owner, Whose};
use super::{ByEvent, Catalogue, EventKey};
use std::collections::HashSet;

/// The CPUs and threads of a trace at a moment.
#[derive(Debug)]
pub struct Schedule {
    /// The events that it is made from.
    events: ByEvent<Kind>,
    /// By stream class: the contexts that say whose an event is.
    whose: Vec<Whose>,
    cpus: Vec<Cpu>,
    /// CPUs of which events of the schedule may be missing.
    broken: usize,
    /// CPUs that are not whole.
    not_whole: usize,
    tasks: Tasks,
}

/// A CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    /// Streams of it of which events of the schedule may be missing.
    broken: u32,
    /// Streams of it of which the begin or the end of what threads do may be missing.
    unpaired: u32,
    /// Streams of it of which interrupts may be missing.
    uninterrupted: u32,
    /// The thread that runs, if that is known: 0 is the idle task.
    running: Option<i64>,
    /// Since when no switch is missing.
    since: Option<u64>,
}

/// The kinds of events that a stream can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Events that the schedule is made from.
    pub schedule: bool,
    /// Events that begin or end what a thread does.
    pub pairs: bool,
    /// Begins and ends of interrupts.
    pub interrupts: bool,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It could run and has to wait for a CPU: since it was woken, or was sent off its CPU.
    Runnable {
        /// Which of the two.
        woken: bool,
    },
    /// It waits for something else, and left its CPU so.
    Blocked(Left),
}

/// What a thread did for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The thread; 0 is the idle task of the CPU.
    pub tid: i64,
    /// Which of the threads that had the id.
    pub life: Life,
    /// The place of the CPU on which it ran, or which it waited for; none where that is not known.
    pub cpu: Option<usize>,
    /// What it did.
    pub state: State,
    /// From this time.
    pub from: u64,
    /// To that.
    pub to: u64,
    /// Whether the trace has its begin and its end: else it took longer.
    pub is_complete: bool,
}

impl Cpu {
    fn is_whole(&self) -> bool {
        self.broken == 0 && self.unpaired == 0
    }
}

impl Span {
    /// Its length, in clock ticks.
    pub fn ticks(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Schedule {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let classes = catalogue.metadata().streams.iter();
        Self {
            events: schedule_events::find(catalogue).into_iter().collect(),
            whose: classes.map(Whose::of).collect(),
            cpus: Vec::new(),
            broken: 0,
            not_whole: 0,
            tasks: Tasks::default(),
        }
    }

    /// The events that it is made from.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.keys()
    }

    /// The place of the CPU of this number.
    pub fn place(&mut self, number: u32) -> usize {
        let place = self.cpus.iter().position(|cpu| cpu.number == number);
        place.unwrap_or_else(|| {
            self.cpus.push(Cpu {
                number,
                broken: 0,
                unpaired: 0,
                uninterrupted: 0,
                running: None,
                since: None,
            });
            self.cpus.len() - 1
        })
    }

    /// The number of the CPU at this place.
    pub fn number(&self, cpu: usize) -> u32 {
        self.cpus[cpu].number
    }

    /// The thread that runs on a CPU, if that is known: 0 is the idle task.
    pub fn running(&self, cpu: usize) -> Option<i64> {
        self.cpus[cpu].running
    }

    /// The threads that run, 0 for each idle task, and since when that is known.
    pub fn running_since(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let cpus = self.cpus.iter();
        cpus.filter_map(|cpu| cpu.running.zip(cpu.since))
    }

    /// Whether the CPU is whole.
    pub fn is_whole(&self, cpu: usize) -> bool {
        self.cpus[cpu].is_whole()
    }

    /// Whether no interrupt of the CPU may be missing.
    pub fn has_interrupts(&self, cpu: usize) -> bool {
        self.cpus[cpu].uninterrupted == 0
    }

    /// Whether all CPUs are whole.
    pub fn all_whole(&self) -> bool {
        self.not_whole == 0
    }

    /// Whether the thread is known to run. Nothing that happens elsewhere can be about it.
    pub fn runs(&self, tid: i64) -> bool {
        matches!(self.state(tid), Some((State::Running, _)))
    }

    /// The threads that are known to run, on a CPU that is whole.
    pub fn runners(&self) -> HashSet<Serial> {
        let cpus = self.cpus.iter().filter(|cpu| cpu.is_whole());
        let tids = cpus.filter_map(|cpu| cpu.running);
        let runs = tids.filter(|tid| self.runs(*tid));
        runs.filter_map(|tid| Some(self.tasks.get(tid)?.serial))
            .collect()
    }

    /// What a thread does, and since when, if that is known.
    pub fn state(&self, tid: i64) -> Option<(State, u64)> {
        self.tasks.get(tid)?.state
    }

    /// The name of a thread.
    pub fn comm(&self, tid: i64) -> Option<&[u8]> {
        let comm = self.tasks.get(tid)?.comm();
        (!comm.is_empty()).then_some(comm)
    }

    /// The process of a thread.
    pub fn process(&self, tid: i64) -> Option<i64> {
        self.tasks.get(tid)?.process
    }

    /// The parent of a thread's process; 0: it has none.
    pub fn parent(&self, tid: i64) -> Option<i64> {
        self.tasks.get(tid)?.parent
    }

    /// The thread of this id.
    pub fn serial(&self, tid: i64) -> Option<Serial> {
        Some(self.tasks.get(tid)?.serial)
    }

    /// Which of the threads that had this id it is.
    pub fn life(&self, tid: i64) -> Life {
        self.tasks.life(tid)
    }

    /// Which of the processes or threads that had its id an owner is.
    pub fn life_of(&self, owner: Owner) -> Life {
        owner.id().map_or(0, |id| self.tasks.life(id))
    }

    /// The first packet of a stream of this CPU begins, and nothing is missing before it.
    pub fn begin(&mut self, cpu: usize, time: u64) {
        let cpu = &mut self.cpus[cpu];
        if cpu.broken == 0 {
            cpu.since = Some(cpu.since.map_or(time, |since| since.min(time)));
        }
    }

    /// Events of a stream of this CPU may be missing from `time` on. What ends there is added to `spans`.
    pub fn lose(&mut self, cpu: usize, kinds: Kinds, time: u64, spans: &mut Vec<Span>) {
        self.missing(cpu, kinds, |count| *count += 1);
        if kinds.schedule {
            self.leave(cpu, time, spans);
            self.forget(time, spans);
        }
    }

    /// No event of that stream is missing from `time` on.
    pub fn regain(&mut self, cpu: usize, kinds: Kinds, time: u64) {
        self.missing(cpu, kinds, |count| *count -= 1);
        let cpu = &mut self.cpus[cpu];
        if kinds.schedule && cpu.broken == 0 {
            cpu.since = Some(time);
        }
    }

    /// Changes the number of streams of a CPU of which events of these kinds may be missing.
    fn missing(&mut self, cpu: usize, kinds: Kinds, change: impl Fn(&mut u32)) {
        let cpu = &mut self.cpus[cpu];
        self.broken -= usize::from(cpu.broken > 0);
        self.not_whole -= usize::from(!cpu.is_whole());
        for (is_of, count) in [
            (kinds.schedule, &mut cpu.broken),
            (kinds.pairs, &mut cpu.unpaired),
            (kinds.interrupts, &mut cpu.uninterrupted),
        ] {
            if is_of {
                change(count);
            }
        }
        self.broken += usize::from(cpu.broken > 0);
        self.not_whole += usize::from(!cpu.is_whole());
    }

    /// The trace is over. What was not is added to `spans`.
    pub fn end(&mut self, time: u64, spans: &mut Vec<Span>) {
        for cpu in 0..self.cpus.len() {
            self.leave(cpu, time, spans);
        }
        self.forget(time, spans);
    }

    /// The thread `old` has the id of its process from now on.
    fn becomes(&mut self, cpu: usize, old: i64, pid: i64, time: u64, spans: &mut Vec<Span>) {
        // The first thread may still be about to leave its CPU.
        for other in 0..self.cpus.len() {
            if other != cpu && self.running(other) == Some(pid) {
                self.leave(other, time, spans);
            }
        }
        let life = self.tasks.thread(old).life;
        if self.running(cpu) == Some(old) {
            let since = self.cpus[cpu].since.replace(time);
            spans.extend(since.map(|from| Span {
                tid: old,
                life,
                cpu: Some(cpu),
                state: State::Running,
                from,
                to: time,
                is_complete: true,
            }));
            self.cpus[cpu].running = Some(pid);
        }
        self.tasks.becomes(old, pid);
        if let Some(thread) = self.tasks.get_mut(pid) {
            if let Some((State::Running, since)) = &mut thread.state {
                *since = time;
            }
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, cpu: usize, time: u64, spans: &mut Vec<Span>) {
        let is_complete = self.broken == 0;
        let since = self.cpus[cpu].since.replace(time);
        let before = self.cpus[cpu].running.replace(switch.next_tid);
        match switch.instead_of {
            Some(tid) => self.no_longer(tid),
            None => spans.extend(since.map(|from| Span {
                tid: switch.prev_tid,
                life: self.tasks.life(switch.prev_tid),
                cpu: Some(cpu),
                state: State::Running,
                from,
                to: time,
                is_complete: before.is_some(),
            })),
        }
        // The idle tasks of all CPUs are called 0.
        if switch.prev_tid != 0 {
            let is_known = is_complete && !switch.left.is_end();
            let prev = self.tasks.thread(switch.prev_tid);
            prev.state = is_known.then_some((switch.left.state(), time));
        }
        if switch.next_tid != 0 {
            let next = self.tasks.thread(switch.next_tid);
            match next.state.replace((State::Running, time)) {
                Some((State::Running, _)) | None => {}
                Some((state, from)) => spans.push(Span {
                    tid: switch.next_tid,
                    life: next.life,
                    cpu: Some(cpu),
                    state,
                    from,
                    to: time,
                    is_complete: true,
                }),
            }
        }
    }

    /// A thread is about to be woken, or was. Of several events about one wake-up the first counts.
    /// One that runs or could run is not woken, whatever the kernel says: it did not sleep. But it may
    /// be on its way to sleep, and the switch from it may come after the first of these events: then
    /// the next counts.
    fn wake(&mut self, tid: i64, time: u64, spans: &mut Vec<Span>) {
        let thread = self.tasks.thread(tid);
        match thread.state {
            Some((State::Running | State::Runnable { .. }, _)) => return,
            Some((state @ State::Blocked(_), from)) => spans.push(Span {
                tid,
                life: thread.life,
                cpu: None,
                state,
                from,
                to: time,
                is_complete: true,
            }),
            None => {}
        }
        thread.state = Some((State::Runnable { woken: true }, time));
    }

    /// What runs on a CPU is not known any more.
    fn leave(&mut self, cpu: usize, time: u64, spans: &mut Vec<Span>) {
        let since = self.cpus[cpu].since.take();
        let Some(tid) = self.cpus[cpu].running.take() else {
            return;
        };
        self.no_longer(tid);
        let life = self.tasks.life(tid);
        spans.extend(since.map(|from| Span {
            tid,
            life,
            cpu: Some(cpu),
            state: State::Running,
            from,
            to: time,
            is_complete: false,
        }));
    }

    /// What the threads do that do not run is not known any more.
    fn forget(&mut self, time: u64, spans: &mut Vec<Span>) {
        for (tid, thread) in self.tasks.all_mut() {
            thread.forget_rename();
            if matches!(thread.state, Some((State::Running, _))) {
                continue;
            }
            spans.extend(thread.state.take().map(|(state, from)| Span {
                tid,
                life: thread.life,
                cpu: None,
                state,
                from,
                to: time,
                is_complete: false,
            }));
        }
    }

    /// A thread does not run any more; what it does is not known.
    fn no_longer(&mut self, tid: i64) {
        if let Some(thread) = self.tasks.get_mut(tid) {
            thread.state = None;
        }
    }
}
