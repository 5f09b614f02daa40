// SPDX-License-Identifier: GPL-2.0

//! Goes through the executions of a case.

use crate::cpu::{self, WriterCpu};
use crate::machine::{Config, Machine, Read, Write};
use loom::model::Builder;
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// What the two CPUs do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What was written before.
    pub before: &'static [Write],
    pub write: &'static [Write],
    pub read: &'static [Read],
}

/// What interrupts the writer, at each of its operations in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    None,
    /// A nested record.
    Record,
    /// The reader, which asks for a barrier.
    Barrier,
}

/// How often the running thread loses the CPU although it could go on.
fn preemptions() -> usize {
    if std::env::var("RTRACE_VERIFY").is_ok_and(|value| value == "long") {
        2
    } else {
        1
    }
}

#[derive(Default)]
struct Count {
    executions: AtomicUsize,
    /// Packets that were got while the writer was there.
    got: AtomicUsize,
}

/// All the executions of `case`. Returns how many there were.
pub fn all(config: Config, case: &Case, interrupts: Interrupts) -> usize {
    let count = Arc::new(Count::default());
    for reader_first in [false, true] {
        let mut at = 0;
        while one(config, case, interrupts, at, reader_first, &count) {
            at += 1;
        }
    }
    if !matches!(case.read, [Read::Flush]) {
        assert!(count.got.load(Relaxed) > 0, "the reader never got a packet");
    }
    count.executions.load(Relaxed)
}

/// Those with the interrupt at operation `at`. Returns whether the writer came to it.
fn one(
    config: Config,
    case: &Case,
    interrupts: Interrupts,
    at: u32,
    reader_first: bool,
    count: &Arc<Count>,
) -> bool {
    let reached = Arc::new(AtomicBool::new(false));
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions());
    builder.max_branches = 10_000;
    let (happened, counted, case) = (reached.clone(), count.clone(), *case);
    builder.check(move || {
        counted.executions.fetch_add(1, Relaxed);
        if run(config, &case, interrupts, at, reader_first, &counted) {
            happened.store(true, Relaxed);
        }
    });
    reached.load(Relaxed)
}

fn run(
    config: Config,
    case: &Case,
    interrupts: Interrupts,
    at: u32,
    reader_first: bool,
    count: &Count,
) -> bool {
    let machine = Arc::new(Machine::new(config));
    for &step in case.before {
        machine.write(step);
    }
    let (writer, reader) = match interrupts {
        Interrupts::None => (None, None),
        Interrupts::Record => {
            let machine = machine.clone();
            let nested = WriterCpu::nested(at, move || machine.write(Write::Record(1)));
            (Some(nested), None)
        }
        Interrupts::Barrier => {
            let (writer, reader) = WriterCpu::interrupted(at);
            (Some(writer), Some(reader))
        }
    };
    let thread = {
        let (machine, steps) = (machine.clone(), case.read);
        loom::thread::spawn(move || {
            if let Some(reader) = reader {
                cpu::begin_read(reader);
            }
            let mut consumer = machine.consumer();
            for &step in steps {
                machine.read(&mut consumer, step);
            }
            (consumer, cpu::end_read())
        })
    };
    if reader_first {
        // loom does not search what comes before a load that nobody's store precedes.
        loom::thread::yield_now();
    }
    if let Some(writer) = writer {
        cpu::begin_write(writer);
    }
    for &step in case.write {
        machine.write(step);
    }
    let ended = cpu::end_write();
    let (mut consumer, line) = thread.join().expect("the reader ends");
    let happened = ended.as_ref().is_some_and(|(_, happened)| *happened);
    drop((ended, line));
    count.got.fetch_add(consumer.got, Relaxed);
    machine.check_end(&mut consumer);
    happened
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("")
}

/// Requires `work` to fail with a message that contains `reason`.
pub fn must_fail(reason: &str, work: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else {
        panic!("nothing was found");
    };
    let message = message(&*panic);
    assert!(message.contains(reason), "found something else: {message}");
}
