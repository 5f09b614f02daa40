// SPDX-License-Identifier: GPL-2.0

//! Who runs on each CPU and what the other threads wait for, as far as the trace tells, and where
//! events are missing.
//!
//! A CPU is *whole* unless events of it may be missing at this moment. What runs on a CPU is known
//! from its first switch on, and again from the first behind a loss. What a thread waits for is known
//! only while all CPUs are whole: it may be woken, run and sleep again where events are missing.

use super::schedule_events::{self, Kind, Left, Switch};
use super::{Catalogue, EventKey};
use std::collections::HashMap;
use trace::ctf::Event;

/// The CPUs and threads of a trace at a moment.
#[derive(Debug)]
pub struct Schedule {
    /// The events that it is made from.
    events: Vec<(EventKey, Kind)>,
    cpus: Vec<Cpu>,
    /// How many CPUs are not whole.
    broken: usize,
    /// By thread id: those that have not ended.
    threads: HashMap<i64, Thread>,
    /// One that has, and of which the last switch may still be told.
    ended: Option<i64>,
}

/// A CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    /// Streams of it of which events may be missing.
    broken: u32,
    /// The thread that runs, if that is known: 0 is the idle task.
    running: Option<i64>,
    /// Since when no switch is missing.
    since: Option<u64>,
}

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    comm: Vec<u8>,
    process: Option<i64>,
    /// The parent of its process.
    parent: Option<i64>,
    /// What it does, and since when, if that is known.
    state: Option<(State, u64)>,
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

impl Span {
    /// Its length, in clock ticks.
    pub fn ticks(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Schedule {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        Self {
            events: schedule_events::find(catalogue),
            cpus: Vec::new(),
            broken: 0,
            threads: HashMap::new(),
            ended: None,
        }
    }

    /// The events that it is made from. Each is known by its place in this list.
    pub fn events(&self) -> Vec<EventKey> {
        self.events.iter().map(|(key, _)| *key).collect()
    }

    /// The place of the CPU of this number.
    pub fn place(&mut self, number: u32) -> usize {
        let place = self.cpus.iter().position(|cpu| cpu.number == number);
        place.unwrap_or_else(|| {
            self.cpus.push(Cpu {
                number,
                broken: 0,
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
        self.cpus[cpu].broken == 0
    }

    /// Whether all CPUs are.
    pub fn all_whole(&self) -> bool {
        self.broken == 0
    }

    /// Whether the thread is known to run, on a CPU that is whole. Nothing that happens elsewhere
    /// can be about it.
    pub fn runs(&self, tid: i64) -> bool {
        matches!(self.state(tid), Some((State::Running, _)))
    }

    /// What a thread does, and since when, if that is known.
    pub fn state(&self, tid: i64) -> Option<(State, u64)> {
        self.threads.get(&tid)?.state
    }

    /// The name that a thread had last.
    pub fn comm(&self, tid: i64) -> Option<&[u8]> {
        let comm = self.threads.get(&tid).map(|thread| thread.comm.as_slice());
        comm.filter(|comm| !comm.is_empty())
    }

    /// The process of a thread.
    pub fn process(&self, tid: i64) -> Option<i64> {
        self.threads.get(&tid)?.process
    }

    /// The parent of a thread's process; 0: it has none.
    pub fn parent(&self, tid: i64) -> Option<i64> {
        self.threads.get(&tid)?.parent
    }

    /// The first packet of a stream of this CPU begins, and nothing is missing before it.
    pub fn begin(&mut self, cpu: usize, time: u64) {
        let cpu = &mut self.cpus[cpu];
        if cpu.broken == 0 {
            cpu.since = Some(cpu.since.map_or(time, |since| since.min(time)));
        }
    }

    /// Events of a stream of this CPU may be missing from `time` on. What ends there is added to
    /// `spans`.
    pub fn lose(&mut self, cpu: usize, time: u64, spans: &mut Vec<Span>) {
        if self.cpus[cpu].broken == 0 {
            self.broken += 1;
        }
        self.cpus[cpu].broken += 1;
        self.leave(cpu, time, spans);
        self.forget(time, spans);
    }

    /// Nothing of that stream is missing from `time` on.
    pub fn regain(&mut self, cpu: usize, time: u64) {
        let cpu = &mut self.cpus[cpu];
        cpu.broken -= 1;
        if cpu.broken == 0 {
            self.broken -= 1;
            cpu.since = Some(time);
        }
    }

    /// The trace is over. What was not is added to `spans`.
    pub fn end(&mut self, time: u64, spans: &mut Vec<Span>) {
        for cpu in 0..self.cpus.len() {
            self.leave(cpu, time, spans);
        }
        self.forget(time, spans);
    }

    /// The event of this number in [`events`](Self::events) came on a CPU: what ends with it is added
    /// to `spans`; if the CPU has switched, the answer says how.
    pub fn event<'a>(
        &mut self,
        which: usize,
        event: &Event<'a>,
        cpu: usize,
        spans: &mut Vec<Span>,
    ) -> Option<Switch<'a>> {
        if let Some(tid) = self.ended.take() {
            self.threads.remove(&tid);
        }
        match self.events[which].1 {
            Kind::Switch(fields) => {
                let mut switch = fields.read(event)?;
                if self.is_whole(cpu) {
                    let before = self.running(cpu);
                    switch.instead_of = before.filter(|tid| *tid != switch.prev_tid);
                    self.switch(&switch, cpu, event.timestamp, spans);
                }
                Some(switch)
            }
            Kind::Wake(fields) => {
                let task = fields.read(event)?;
                self.thread(task.tid).call(task.comm);
                if self.all_whole() {
                    self.wake(task.tid, event.timestamp, spans);
                }
                None
            }
            Kind::Fork(fields) => {
                let fork = fields.read(event)?;
                for (tid, process) in [fork.parent, fork.child] {
                    self.thread(tid).process = Some(process);
                }
                let (tid, process) = fork.child;
                // A thread of the same process has the same parent.
                let parent = match process == fork.parent.1 {
                    true => self.parent(fork.parent.0),
                    false => Some(fork.parent.1),
                };
                let child = self.thread(tid);
                child.parent = parent;
                child.call(fork.child_comm);
                None
            }
            Kind::Exec(fields) => {
                let task = fields.read(event)?;
                self.thread(task.tid).call(task.comm);
                None
            }
            Kind::State(fields) => {
                let state = fields.read(event)?;
                let thread = self.thread(state.tid);
                thread.process = Some(state.process);
                thread.parent = Some(state.parent);
                thread.call(state.comm);
                None
            }
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, cpu: usize, time: u64, spans: &mut Vec<Span>) {
        let all_whole = self.all_whole();
        let since = self.cpus[cpu].since.replace(time);
        let before = self.cpus[cpu].running.replace(switch.next_tid);
        match switch.instead_of {
            Some(tid) => self.no_longer(tid),
            None => spans.extend(since.map(|from| Span {
                tid: switch.prev_tid,
                cpu: Some(cpu),
                state: State::Running,
                from,
                to: time,
                is_complete: before.is_some(),
            })),
        }
        // The idle tasks of all CPUs are called 0.
        if switch.prev_tid != 0 {
            let is_end = switch.left.is_end();
            self.ended = is_end.then_some(switch.prev_tid);
            let prev = self.thread(switch.prev_tid);
            prev.call(switch.prev_comm);
            prev.state = (all_whole && !is_end).then_some((switch.left.state(), time));
        }
        if switch.next_tid != 0 {
            let next = self.thread(switch.next_tid);
            next.call(switch.next_comm);
            match next.state.replace((State::Running, time)) {
                Some((State::Running, _)) | None => {}
                Some((state, from)) => spans.push(Span {
                    tid: switch.next_tid,
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
        let thread = self.thread(tid);
        match thread.state {
            Some((State::Running | State::Runnable { .. }, _)) => return,
            Some((state @ State::Blocked(_), from)) => spans.push(Span {
                tid,
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
        spans.extend(since.map(|from| Span {
            tid,
            cpu: Some(cpu),
            state: State::Running,
            from,
            to: time,
            is_complete: false,
        }));
    }

    /// What the threads do that do not run is not known any more.
    fn forget(&mut self, time: u64, spans: &mut Vec<Span>) {
        for (tid, thread) in &mut self.threads {
            if matches!(thread.state, Some((State::Running, _))) {
                continue;
            }
            spans.extend(thread.state.take().map(|(state, from)| Span {
                tid: *tid,
                cpu: None,
                state,
                from,
                to: time,
                is_complete: false,
            }));
        }
    }

    fn thread(&mut self, tid: i64) -> &mut Thread {
        self.threads.entry(tid).or_default()
    }

    /// A thread does not run any more; what it does is not known.
    fn no_longer(&mut self, tid: i64) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = None;
        }
    }
}

impl Thread {
    fn call(&mut self, comm: &[u8]) {
        if self.comm != comm {
            self.comm = comm.to_vec();
        }
    }
}
