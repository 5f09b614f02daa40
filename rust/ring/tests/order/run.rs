// SPDX-License-Identifier: GPL-2.0

//! Search of all executions of a case.

use super::cpu::{self, WriterCpu};
use super::machine::{Config, Consumer, Machine, Read, Write};
use loom::model::Builder;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Steps of the two CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Steps of the writer before the reader begins.
    pub before: &'static [Write],
    pub write: &'static [Write],
    pub read: &'static [Read],
}

/// Interrupts of the writer. A search tries each of the writer's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    None,
    /// A nested step of the writer.
    Nested(Write),
    /// The reader's request for a barrier.
    Barrier,
    /// Both, in any order; the reader's request may come during the nested step.
    Both(Write),
    /// The reader's snapshot.
    Snapshot,
}

impl Interrupts {
    fn nested(self) -> Option<Write> {
        match self {
            Self::Nested(step) | Self::Both(step) => Some(step),
            Self::None | Self::Barrier | Self::Snapshot => None,
        }
    }

    fn barrier(self) -> bool {
        matches!(self, Self::Barrier | Self::Both(_) | Self::Snapshot)
    }
}

#[derive(Default)]
struct Count {
    executions: AtomicUsize,
    /// Packets that the reader got while the writer ran.
    got: AtomicUsize,
}

/// Takes all packets, on the writer's CPU as long as the writer runs.
fn snapshot(machine: &Arc<Machine>, consumer: &mut Consumer) {
    machine.begin_snapshot(consumer);
    let reader = std::mem::replace(&mut consumer.reader, machine.ring.reader());
    // Not part of the modelled program: one CPU waits for the other here.
    let all = Arc::new(Mutex::new((reader, Vec::new(), None)));
    let exchange = {
        let (machine, all) = (machine.clone(), all.clone());
        move || {
            let (reader, taken, is_all) = &mut *all.lock().expect("no panic");
            *is_all = Some(machine.exchange(reader, taken));
        }
    };
    loop {
        cpu::run_there(Box::new(exchange.clone()));
        if all.lock().expect("no panic").2.is_none() {
            exchange();
        }
        if all.lock().expect("no panic").2.take() == Some(true) {
            break;
        }
    }
    let (reader, taken, _) = &mut *all.lock().expect("no panic");
    std::mem::swap(&mut consumer.reader, reader);
    machine.end_snapshot(consumer, std::mem::take(taken));
}

/// Searches all executions of `case` in which a runnable thread loses the CPU up to `preemptions`
/// times. Returns the number of executions.
pub fn all(config: Config, case: &Case, interrupts: Interrupts, preemptions: usize) -> usize {
    let mut search = Builder::new();
    search.preemption_bound = Some(preemptions);
    search.max_branches = 10_000;
    let count = Arc::new(Count::default());
    for reader_first in [false, true] {
        for nested in 0.. {
            let mut reached = true;
            for barrier in 0.. {
                let at = [nested, barrier];
                let [to_nested, to_barrier] =
                    one(&search, config, case, interrupts, at, reader_first, &count);
                reached = to_nested;
                if !interrupts.barrier() || !to_barrier {
                    break;
                }
            }
            if interrupts.nested().is_none() || !reached {
                break;
            }
        }
    }
    if !matches!(case.read, [Read::Flush]) {
        assert!(count.got.load(Relaxed) > 0, "the reader never got a packet");
    }
    count.executions.load(Relaxed)
}

/// Searches the executions with the nested step and the barrier at the operations `at`. Returns
/// whether the writer reached each of these operations in any execution.
fn one(
    search: &Builder,
    config: Config,
    case: &Case,
    interrupts: Interrupts,
    at: [u32; 2],
    reader_first: bool,
    count: &Arc<Count>,
) -> [bool; 2] {
    let reached = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let (happened, counted, case) = (reached.clone(), count.clone(), *case);
    search.check(move || {
        counted.executions.fetch_add(1, Relaxed);
        let now = run(config, &case, interrupts, at, reader_first, &counted);
        for (happened, now) in happened.iter().zip(now) {
            happened.fetch_or(now, Relaxed);
        }
    });
    [reached[0].load(Relaxed), reached[1].load(Relaxed)]
}

fn run(
    config: Config,
    case: &Case,
    interrupts: Interrupts,
    at: [u32; 2],
    reader_first: bool,
    count: &Count,
) -> [bool; 2] {
    let machine = Arc::new(Machine::new(config));
    for &step in case.before {
        machine.write(step);
    }
    let mut writer = WriterCpu::default();
    if let Some(step) = interrupts.nested() {
        let machine = machine.clone();
        writer.nested(at[0], move || machine.write(step));
    }
    let reader = interrupts.barrier().then(|| writer.interrupted(at[1]));
    let thread = {
        let (machine, steps) = (machine.clone(), case.read);
        loom::thread::spawn(move || {
            if let Some(reader) = reader {
                cpu::begin_read(reader);
            }
            let mut consumer = machine.consumer();
            for &step in steps {
                match step {
                    Read::Snapshot => snapshot(&machine, &mut consumer),
                    step => machine.read(&mut consumer, step),
                }
            }
            (consumer, cpu::end_read())
        })
    };
    if reader_first {
        // loom does not search for stores that could come before a thread's first load unless that
        // thread yields.
        loom::thread::yield_now();
    }
    cpu::begin_write(writer);
    for &step in case.write {
        machine.write(step);
    }
    let writer = cpu::end_write();
    let (mut consumer, reader) = thread.join().expect("the reader ends");
    let reached = writer.reached();
    drop((writer, reader));
    count.got.fetch_add(consumer.got, Relaxed);
    machine.check_end(&mut consumer);
    reached
}
