// SPDX-License-Identifier: GPL-2.0

//! Who runs on each CPU, as far as the trace tells, and where events are missing.
//!
//! A CPU is *whole* unless events of it may be missing at this moment. What runs on a CPU is known
//! from its first switch on, and again from the first behind a loss.

use super::analysis::{integer, key, text, Catalogue, EventKey};
use std::collections::HashMap;
use trace::ctf::{Event, EventLayout};

/// States of a task that has ended: `EXIT_DEAD`, `EXIT_ZOMBIE`.
const ENDED: i64 = 0x30;

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
}

/// A CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    /// Streams of it of which events may be missing.
    broken: u32,
    /// The thread that runs, if that is known: 0 is the idle task.
    running: Option<i64>,
}

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    comm: Vec<u8>,
    process: Option<i64>,
    /// Whether it runs on a CPU that is whole.
    runs: bool,
}

/// What an event tells, and in which fields.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Switch(SwitchFields),
    Fork {
        parent: [usize; 2],
        child: [usize; 2],
        comm: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct SwitchFields {
    prev_tid: usize,
    prev_comm: usize,
    prev_state: usize,
    next_tid: usize,
    next_comm: usize,
}

/// A CPU goes from one task to another.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    /// The thread that ran; 0 is the idle task.
    pub prev_tid: i64,
    /// In which state it was left: `TASK_...` of the kernel, 0 if it could run on.
    prev_state: i64,
    prev_comm: &'a [u8],
    next_tid: i64,
    next_comm: &'a [u8],
}

impl Schedule {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>) -> Self {
        let switch = catalogue.event("sched_switch").and_then(switch_fields);
        let fork = catalogue.event("sched_process_fork").and_then(fork_fields);
        Self {
            events: switch.into_iter().chain(fork).collect(),
            cpus: Vec::new(),
            broken: 0,
            threads: HashMap::new(),
        }
    }

    /// The events that it is made from. Each is known by its place in this list.
    pub fn events(&self) -> impl Iterator<Item = EventKey> + '_ {
        self.events.iter().map(|(key, _)| *key)
    }

    /// The place of the CPU of this number.
    pub fn place(&mut self, number: u32) -> usize {
        let place = self.cpus.iter().position(|cpu| cpu.number == number);
        place.unwrap_or_else(|| {
            self.cpus.push(Cpu {
                number,
                broken: 0,
                running: None,
            });
            self.cpus.len() - 1
        })
    }

    /// The thread that runs on a CPU, if that is known: 0 is the idle task.
    pub fn running(&self, cpu: usize) -> Option<i64> {
        self.cpus[cpu].running
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
        self.threads.get(&tid).is_some_and(|thread| thread.runs)
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

    /// Events of a stream of this CPU may be missing from here on.
    pub fn lose(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        if cpu.broken == 0 {
            self.broken += 1;
        }
        cpu.broken += 1;
        if let Some(tid) = cpu.running.take() {
            self.stops(tid);
        }
    }

    /// Nothing of that stream is missing from here on.
    pub fn regain(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        cpu.broken -= 1;
        if cpu.broken == 0 {
            self.broken -= 1;
        }
    }

    /// The event of this number in [`events`](Self::events) came on a CPU; if that has switched, how.
    pub fn event<'a>(&mut self, which: usize, event: &Event<'a>, cpu: usize) -> Option<Switch<'a>> {
        match self.events[which].1 {
            Kind::Switch(fields) => {
                let switch = fields.read(event)?;
                if self.is_whole(cpu) {
                    self.switch(&switch, cpu);
                }
                Some(switch)
            }
            Kind::Fork {
                parent,
                child,
                comm,
            } => {
                for [tid, process] in [parent, child] {
                    let tid = integer(event.value(tid))?;
                    self.thread(tid).process = integer(event.value(process));
                }
                let tid = integer(event.value(child[0]))?;
                let comm = text(event.value(comm))?;
                self.thread(tid).call(comm);
                None
            }
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, cpu: usize) {
        let before = self.cpus[cpu].running.replace(switch.next_tid);
        // Another than the one that was switched to: its switch is not in the trace.
        if let Some(tid) = before.filter(|tid| *tid != switch.prev_tid) {
            self.stops(tid);
        }
        // The idle tasks of all CPUs are called 0.
        if switch.prev_tid != 0 {
            self.thread(switch.prev_tid).call(switch.prev_comm);
            self.stops(switch.prev_tid);
            if switch.prev_state & ENDED != 0 {
                self.threads.remove(&switch.prev_tid);
            }
        }
        if switch.next_tid != 0 {
            let next = self.thread(switch.next_tid);
            next.call(switch.next_comm);
            next.runs = true;
        }
    }

    fn thread(&mut self, tid: i64) -> &mut Thread {
        self.threads.entry(tid).or_default()
    }

    fn stops(&mut self, tid: i64) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.runs = false;
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

impl SwitchFields {
    fn read<'a>(&self, event: &Event<'a>) -> Option<Switch<'a>> {
        Some(Switch {
            prev_tid: integer(event.value(self.prev_tid))?,
            prev_state: integer(event.value(self.prev_state))?,
            prev_comm: text(event.value(self.prev_comm))?,
            next_tid: integer(event.value(self.next_tid))?,
            next_comm: text(event.value(self.next_comm))?,
        })
    }
}

fn switch_fields(layout: &EventLayout) -> Option<(EventKey, Kind)> {
    let fields = SwitchFields {
        prev_tid: layout.field("prev_tid")?,
        prev_comm: layout.field("prev_comm")?,
        prev_state: layout.field("prev_state")?,
        next_tid: layout.field("next_tid")?,
        next_comm: layout.field("next_comm")?,
    };
    Some((key(layout), Kind::Switch(fields)))
}

fn fork_fields(layout: &EventLayout) -> Option<(EventKey, Kind)> {
    let fields = Kind::Fork {
        parent: [layout.field("parent_tid")?, layout.field("parent_pid")?],
        child: [layout.field("child_tid")?, layout.field("child_pid")?],
        comm: layout.field("child_comm")?,
    };
    Some((key(layout), fields))
}
