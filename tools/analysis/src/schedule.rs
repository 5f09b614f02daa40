// SPDX-License-Identifier: GPL-2.0

//! The schedule of a trace: the thread that runs on each CPU, and the waits of the other threads. It also
//! tracks the places where events are missing.
//!
//! The running thread of a CPU is known from the start of the trace on: the first switch of the CPU names it
//! ([`initial`](super::initial)). After a loss among the events of the schedule, it is known again from the next
//! switch on. The wait of a thread is known only while no event of the schedule may be missing on any CPU. On a CPU
//! with a loss, the thread may be woken, run and sleep again.
//!
//! A trace of cgroups has the switches and wake-ups of their threads, and an event about one of these threads can also be
//! about another thread. So the other threads have some events, and their times are not known. A thread is known to be
//! in one of the cgroups if it runs after the idle task or before it, or if it makes a system call.
//!
//! A CPU is *whole* while neither these events nor events
//! that begin or end an operation of a thread may be missing.

mod happened;

pub use happened::Happened;

use super::initial::InitialThreads;
use super::schedule_events::{self, Activity, ScheduleKind, Switch};
use super::tasks::{Life, Serial, Tasks};
use super::whose::{Owner, Whose};
use super::{ByEvent, Catalogue, EventKey};
use ctf::{Metadata, Wanted};
use rtrace_abi::tsdl;
use std::collections::HashSet;

/// Returns whether a trace has only the events of some cgroups.
pub(crate) fn is_of_cgroups(metadata: &Metadata) -> bool {
    metadata
        .env
        .get(tsdl::TASKS)
        .is_some_and(|tasks| tasks == tsdl::CGROUPS)
}

/// The CPUs and threads of a trace at one moment.
#[derive(Debug)]
pub struct Schedule {
    /// Events that the schedule is read from.
    events: ByEvent<ScheduleKind>,
    /// By stream class: the contexts that name the thread of an event.
    whose: Vec<Whose>,
    cpus: Vec<Cpu>,
    /// Number of CPUs that may lack events of the schedule.
    broken: usize,
    /// Number of CPUs that are not whole.
    not_whole: usize,
    /// The threads that run before the first switches.
    initial: InitialThreads,
    tasks: Tasks,
    /// Whether the trace has only the events of some cgroups.
    is_of_cgroups: bool,
    /// Begin of the wait for a CPU that ended with the last event.
    ended_wait: Option<u64>,
}

/// A CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    /// Number of the CPU's streams that may lack events of the schedule.
    broken: u32,
    /// Number of the CPU's streams that may lack begins or ends of operations.
    unpaired: u32,
    /// Number of the CPU's streams that may lack interrupts.
    uninterrupted: u32,
    /// The running thread, if it is known; 0 is the idle task.
    running: Option<i64>,
    /// Whether the trace has the switch to the running thread.
    is_begun: bool,
    /// Time since which no switch is missing.
    since: Option<u64>,
}

/// The kinds of events that a stream can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Events that the schedule is read from.
    pub schedule: bool,
    /// Events that begin or end an operation of a thread.
    pub pairs: bool,
    /// Begins and ends of interrupts.
    pub interrupts: bool,
}

/// An activity of a thread over a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The thread; 0 is the idle task of the CPU.
    pub tid: i64,
    /// Life of the thread's id.
    pub life: Life,
    /// Index of the CPU on which the thread ran or which it waited for; `None` if it is not known.
    pub cpu: Option<usize>,
    /// The activity.
    pub state: Activity,
    /// Begin, in clock ticks.
    pub from: u64,
    /// End, in clock ticks.
    pub to: u64,
    /// Whether the trace has both begin and end; otherwise the activity took longer.
    pub is_complete: bool,
}

impl Cpu {
    fn is_whole(&self) -> bool {
        self.broken == 0 && self.unpaired == 0
    }
}

impl Span {
    /// Returns the length in clock ticks.
    pub fn ticks(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Schedule {
    /// Creates the schedule for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, initial: InitialThreads) -> Self {
        let classes = catalogue.metadata().streams.iter();
        let mut tasks = Tasks::default();
        // Switches name threads better: by the name at their time.
        let foreign = catalogue.metadata().foreign.as_ref();
        if let Some(foreign) = foreign.filter(|_| !catalogue.has_switches()) {
            for (tid, comm) in foreign.names().iter().filter(|(tid, _)| *tid != 0) {
                tasks.thread(i64::from(*tid)).call(comm.as_bytes());
            }
        }
        Self {
            events: schedule_events::find(catalogue).into_iter().collect(),
            whose: classes.map(Whose::of).collect(),
            cpus: Vec::new(),
            broken: 0,
            not_whole: 0,
            initial,
            tasks,
            is_of_cgroups: is_of_cgroups(catalogue.metadata()),
            ended_wait: None,
        }
    }

    /// Returns the events that the schedule is read from.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.keys()
    }

    /// Returns which of the events with this key the schedule needs. It is read from some events. Others only record
    /// their thread, which one of several events with the same contexts shows.
    pub fn needs(&self, event: EventKey) -> Wanted {
        let whose = self.whose.get(event.0 as usize);
        match whose.is_some_and(Whose::has_any) {
            _ if self.events.get(&event).is_some() => Wanted::Each,
            // A system call shows that its thread is in one of the cgroups.
            true if self.is_of_cgroups => Wanted::Each,
            true => Wanted::NewContexts,
            false => Wanted::Never,
        }
    }

    /// Returns the index of the CPU with this number. Adds the CPU if it is new.
    pub fn place(&mut self, number: u32) -> usize {
        let place = self.cpus.iter().position(|cpu| cpu.number == number);
        place.unwrap_or_else(|| {
            self.cpus.push(Cpu {
                number,
                broken: 0,
                unpaired: 0,
                uninterrupted: 0,
                running: None,
                is_begun: false,
                since: None,
            });
            self.cpus.len() - 1
        })
    }

    /// Returns the number of the CPU at this index.
    pub fn number(&self, cpu: usize) -> u32 {
        self.cpus[cpu].number
    }

    /// Returns the thread that runs on a CPU, if it is known; 0 is the idle task.
    pub fn running(&self, cpu: usize) -> Option<i64> {
        self.cpus[cpu].running
    }

    /// Returns the running threads, 0 for each idle task, with the time since which each is known.
    pub fn running_since(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let cpus = self.cpus.iter();
        cpus.filter_map(|cpu| cpu.running.zip(cpu.since))
    }

    /// Returns whether the CPU is whole.
    pub fn is_whole(&self, cpu: usize) -> bool {
        self.cpus[cpu].is_whole()
    }

    /// Returns whether no interrupt of the CPU may be missing.
    pub fn has_interrupts(&self, cpu: usize) -> bool {
        self.cpus[cpu].uninterrupted == 0
    }

    /// Returns whether all CPUs are whole.
    pub fn all_whole(&self) -> bool {
        self.not_whole == 0
    }

    /// Returns whether the thread is known to run. An event on another CPU cannot concern a running thread.
    pub fn runs(&self, tid: i64) -> bool {
        matches!(self.state(tid), Some((Activity::Running, _)))
    }

    /// Returns the threads that are known to run on a whole CPU.
    pub fn runners(&self) -> HashSet<Serial> {
        let cpus = self.cpus.iter().filter(|cpu| cpu.is_whole());
        let tids = cpus.filter_map(|cpu| cpu.running);
        let runs = tids.filter(|tid| self.runs(*tid));
        runs.filter_map(|tid| Some(self.tasks.get(tid)?.serial))
            .collect()
    }

    /// Returns the state of a thread and its begin, if they are known.
    pub fn state(&self, tid: i64) -> Option<(Activity, u64)> {
        self.tasks.get(tid)?.state
    }

    /// Returns the begins of the waits for a CPU that have not ended, or ended with the last event.
    pub fn waits(&self) -> impl Iterator<Item = u64> + '_ {
        let states = self.tasks.all().filter_map(|(_, thread)| thread.state);
        let waits = states.filter(|(state, _)| matches!(state, Activity::Runnable { .. }));
        waits.map(|(_, from)| from).chain(self.ended_wait)
    }

    /// Returns the name of a thread.
    pub fn comm(&self, tid: i64) -> Option<&[u8]> {
        let comm = self.tasks.get(tid)?.comm();
        (!comm.is_empty()).then_some(comm)
    }

    /// Returns the process of a thread.
    pub fn process(&self, tid: i64) -> Option<i64> {
        self.tasks.get(tid)?.process
    }

    /// Returns the parent of a thread's process; 0 if it has no parent.
    pub fn parent(&self, tid: i64) -> Option<i64> {
        self.tasks.get(tid)?.parent
    }

    /// Returns the serial of the thread that has this id.
    pub fn serial(&self, tid: i64) -> Option<Serial> {
        Some(self.tasks.get(tid)?.serial)
    }

    /// Returns the current life of a thread id.
    pub fn life(&self, tid: i64) -> Life {
        self.tasks.life(tid)
    }

    /// Returns the current life of an owner's id.
    pub fn life_of(&self, owner: Owner) -> Life {
        owner.id().map_or(0, |id| self.tasks.life(id))
    }

    /// Begins the first packet of a stream of this CPU. No event is missing before the packet.
    pub fn begin(&mut self, cpu: usize, time: u64) {
        let known = &mut self.cpus[cpu];
        if known.broken == 0 {
            known.since = Some(known.since.map_or(time, |since| since.min(time)));
            self.first(cpu, time);
        }
    }

    /// Notes the thread that runs until the CPU's first switch.
    fn first(&mut self, cpu: usize, time: u64) {
        let Some(first) = self.initial.take(self.number(cpu), time) else {
            return;
        };
        self.cpus[cpu].running = Some(first.tid);
        if first.tid != 0 {
            let thread = self.tasks.thread(first.tid);
            thread.shows(&first.comm);
            thread.state = (!self.is_of_cgroups).then_some((Activity::Running, time));
        }
    }

    /// Begins a loss: events of a stream of this CPU may be missing from `time` on. Adds the spans that end
    /// there to `spans`.
    pub fn lose(&mut self, cpu: usize, kinds: Kinds, time: u64, spans: &mut Vec<Span>) {
        self.forget_ended();
        self.missing(cpu, kinds, |count| *count += 1);
        if kinds.schedule {
            self.leave(cpu, time, spans);
            self.forget(time, spans);
        }
    }

    /// Ends a loss: no event of that stream is missing from `time` on.
    pub fn regain(&mut self, cpu: usize, kinds: Kinds, time: u64) {
        self.missing(cpu, kinds, |count| *count -= 1);
        let known = &mut self.cpus[cpu];
        if kinds.schedule && known.broken == 0 {
            known.since = Some(time);
            self.first(cpu, time);
        }
    }

    /// Changes the number of streams of a CPU that may lack events of these kinds.
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

    /// Ends the trace. Adds the spans that have not ended to `spans`.
    pub fn end(&mut self, time: u64, spans: &mut Vec<Span>) {
        self.forget_ended();
        for cpu in 0..self.cpus.len() {
            self.leave(cpu, time, spans);
        }
        self.forget(time, spans);
    }

    /// Forgets the thread that has ended with the last event. If the trace contradicts itself, and another CPU still
    /// runs the thread, a new thread has the id.
    fn forget_ended(&mut self) {
        if let Some(tid) = self.tasks.forget_ended() {
            if self.cpus.iter().any(|cpu| cpu.running == Some(tid)) {
                self.tasks.thread(tid);
            }
        }
    }

    /// Gives the thread `old`, if it runs on this CPU, the id `new`.
    fn change_id(&mut self, cpu: usize, old: i64, new: i64, time: u64, spans: &mut Vec<Span>) {
        if self.running(cpu) != Some(old) {
            return;
        }
        let life = self.tasks.thread(old).life;
        let since = self.cpus[cpu].since.replace(time);
        spans.extend(since.map(|from| Span {
            tid: old,
            life,
            cpu: Some(cpu),
            state: Activity::Running,
            from,
            to: time,
            is_complete: true,
        }));
        self.cpus[cpu].running = Some(new);
    }

    /// Gives the thread `old` the id of its process.
    fn becomes(&mut self, cpu: usize, old: i64, pid: i64, time: u64, spans: &mut Vec<Span>) {
        // The first thread of the process may still be about to leave its CPU.
        for other in 0..self.cpus.len() {
            if other != cpu && self.running(other) == Some(pid) {
                self.leave(other, time, spans);
            }
        }
        self.change_id(cpu, old, pid, time, spans);
        self.tasks.becomes(old, pid);
        if let Some(thread) = self.tasks.get_mut(pid) {
            if let Some((Activity::Running, since)) = &mut thread.state {
                *since = time;
            }
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, cpu: usize, time: u64, spans: &mut Vec<Span>) {
        let is_complete = self.broken == 0;
        let since = self.cpus[cpu].since.replace(time);
        self.cpus[cpu].running = Some(switch.next_tid);
        let is_begun = std::mem::replace(&mut self.cpus[cpu].is_begun, true);
        if self.is_of_cgroups {
            self.choose(switch);
        }
        let since = since.filter(|_| self.knows(switch.prev_tid));
        match switch.instead_of {
            Some(tid) => self.no_longer(tid),
            None => spans.extend(since.map(|from| Span {
                tid: switch.prev_tid,
                life: self.tasks.life(switch.prev_tid),
                cpu: Some(cpu),
                state: Activity::Running,
                from,
                to: time,
                is_complete: is_begun,
            })),
        }
        // The idle tasks of all CPUs have the id 0.
        if switch.prev_tid != 0 {
            let is_known = is_complete && !switch.left.is_end() && self.knows(switch.prev_tid);
            let prev = self.tasks.thread(switch.prev_tid);
            prev.state = is_known.then_some((switch.left.state(), time));
        }
        if switch.next_tid != 0 && !self.knows(switch.next_tid) {
            self.no_longer(switch.next_tid);
        } else if switch.next_tid != 0 {
            let next = self.tasks.thread(switch.next_tid);
            match next.state.replace((Activity::Running, time)) {
                Some((Activity::Running, _)) | None => {}
                Some((state, from)) => {
                    let waited = matches!(state, Activity::Runnable { .. });
                    self.ended_wait = waited.then_some(from);
                    spans.push(Span {
                        tid: switch.next_tid,
                        life: next.life,
                        cpu: Some(cpu),
                        state,
                        from,
                        to: time,
                        is_complete: true,
                    });
                }
            }
        }
    }

    /// Notes which threads of a switch are in a cgroup of the trace. The idle tasks are in none, so the other thread of
    /// the switch is. A thread whose begin or end of running is missing is in none.
    fn choose(&mut self, switch: &Switch<'_>) {
        if let Some(before) = switch.instead_of {
            for tid in [before, switch.prev_tid] {
                if let Some(thread) = self.tasks.get_mut(tid) {
                    thread.is_chosen = false;
                }
            }
        }
        match (switch.prev_tid, switch.next_tid) {
            (0, 0) => {}
            (0, tid) | (tid, 0) => self.tasks.thread(tid).is_chosen = true,
            _ => {}
        }
    }

    /// Returns whether the trace has all switches and wake-ups of a thread, except lost ones.
    fn knows(&self, tid: i64) -> bool {
        let is_chosen = |tid| self.tasks.get(tid).is_some_and(|thread| thread.is_chosen);
        !self.is_of_cgroups || tid != 0 && is_chosen(tid)
    }

    /// Handles an event about a thread that is about to be woken, or was woken. Of several events about one
    /// wake-up, the first counts. If the thread runs or is runnable, the event is ignored: the thread did
    /// not sleep. The thread may be about to sleep, and leave its CPU after the first of these events. In that
    /// case the next event counts.
    fn wake(&mut self, tid: i64, time: u64, spans: &mut Vec<Span>) {
        if !self.knows(tid) {
            return;
        }
        let thread = self.tasks.thread(tid);
        match thread.state {
            Some((Activity::Running | Activity::Runnable { .. }, _)) => return,
            Some((state @ Activity::Blocked(_), from)) => spans.push(Span {
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
        thread.state = Some((Activity::Runnable { woken: true }, time));
    }

    /// Forgets the thread that runs on a CPU.
    fn leave(&mut self, cpu: usize, time: u64, spans: &mut Vec<Span>) {
        let since = self.cpus[cpu].since.take();
        self.cpus[cpu].is_begun = false;
        let Some(tid) = self.cpus[cpu].running.take() else {
            return;
        };
        self.no_longer(tid);
        let since = since.filter(|_| self.knows(tid));
        let life = self.tasks.life(tid);
        spans.extend(since.map(|from| Span {
            tid,
            life,
            cpu: Some(cpu),
            state: Activity::Running,
            from,
            to: time,
            is_complete: false,
        }));
    }

    /// Forgets the states of the threads that do not run.
    fn forget(&mut self, time: u64, spans: &mut Vec<Span>) {
        for (tid, thread) in self.tasks.all_mut() {
            thread.forget_rename();
            if matches!(thread.state, Some((Activity::Running, _))) {
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

    /// Forgets the state of a thread that no longer runs.
    fn no_longer(&mut self, tid: i64) {
        if let Some(thread) = self.tasks.get_mut(tid) {
            thread.state = None;
        }
    }
}
