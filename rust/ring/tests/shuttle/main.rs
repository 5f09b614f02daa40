// SPDX-License-Identifier: GPL-2.0

//! Long random runs: a writer whose contexts nest at random, and a reader, on two CPUs.
//!
//! The machine is that of `tests/order`: the same ring on shuttle's words. shuttle searches
//! interleavings only; each store is visible at once. Its strength is length. The other suites
//! search everything that can happen in a few steps. This one runs samples of hundreds of steps,
//! over many laps, also from just below the wrap of the positions.

mod cell;
#[path = "../order/log.rs"]
mod log;
#[path = "../order/machine.rs"]
mod machine;
mod nested;
#[path = "../order/outside.rs"]
mod outside;
mod platform;
#[path = "../common/say.rs"]
mod say;
#[path = "../common/slots.rs"]
mod slots;

// The copies in tests/faults use rings of their own.
#[cfg(fault)]
use super::ring;
#[cfg(not(fault))]
use rtrace_ring as ring;

use machine::{Config, Machine, Read, Write};
use platform::Policy;
use ring::Mode;
use shuttle::rand::{thread_rng, Rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::Runner;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Instant;

/// Amount of work done.
#[derive(Default)]
struct Count {
    executions: AtomicU64,
    /// Steps of nested contexts.
    nested: AtomicU64,
    /// Packets that the reader got while the writer ran.
    got: AtomicU64,
}

fn random_write() -> Write {
    match thread_rng().gen_range(0..8) {
        0..=3 => Write::Record(1),
        4 => Write::Record(2),
        5..=6 => Write::Fill,
        _ => Write::Switch,
    }
}

fn random_read() -> Read {
    match thread_rng().gen_range(0..16) {
        0..=7 => Read::Get,
        8..=12 => Read::Put,
        13..=14 => Read::Unget,
        _ => Read::Flush,
    }
}

/// One execution with `steps` steps on each side.
fn execution(steps: u32, count: &Count) {
    let mut random = thread_rng();
    let machine = Arc::new(Machine::new(Config {
        mode: if random.gen() {
            Mode::Discard
        } else {
            Mode::Overwrite
        },
        policy: Policy::Delivery,
        // Position 0, and the last laps before the positions wrap.
        origin: 0u64.wrapping_sub(machine::BUFFER * random.gen_range(0..3)),
    }));
    let writer = {
        let machine = machine.clone();
        shuttle::thread::spawn(move || {
            nested::begin(machine.clone(), steps / 4);
            for _ in 0..steps {
                machine.write(random_write());
            }
            nested::end()
        })
    };
    let mut consumer = machine.consumer();
    for _ in 0..steps {
        machine.read(&mut consumer, random_read());
    }
    let nested = writer.join().expect("the writer ends");
    count.executions.fetch_add(1, Relaxed);
    count.nested.fetch_add(nested.into(), Relaxed);
    count.got.fetch_add(consumer.got as u64, Relaxed);
    machine.check_end(&mut consumer);
}

fn run(name: &str, scheduler: impl Scheduler + 'static, steps: u32) {
    let begin = Instant::now();
    let count = Arc::new(Count::default());
    let counted = count.clone();
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    Runner::new(scheduler, config).run(move || execution(steps, &counted));
    let [executions, nested, got] =
        [&count.executions, &count.nested, &count.got].map(|count| count.load(Relaxed));
    assert!(nested > 0 && got > 0, "nothing nested, or nothing was read");
    say::say(&format!(
        "shuttle, {name}: {executions} executions of {steps} steps, {nested} nested, \
         {got} packets read meanwhile, {:.1} s",
        begin.elapsed().as_secs_f32()
    ));
}

/// Size of a run: number of executions, and steps of each.
pub type Size = (usize, u32);
pub const SHORT: Size = (8_000, 60);
const LONG: Size = (100_000, 200);

/// Any thread may run next at each access.
pub fn random((executions, steps): Size, seed: u64) {
    let scheduler = RandomScheduler::new_from_seed(seed, executions);
    run("random", scheduler, steps);
}

/// Few switches between the threads, at random places. Finds faults that need a long run of one
/// thread.
pub fn few_preemptions((executions, steps): Size, seed: u64) {
    let scheduler = PctScheduler::new_from_seed(seed, 5, executions);
    run("few preemptions", scheduler, steps);
}

fn size() -> Size {
    if std::env::var("RTRACE_VERIFY").is_ok_and(|value| value == "long") {
        LONG
    } else {
        SHORT
    }
}

/// Seed of the run. It is the same each time, unless `RTRACE_SEED` is set.
fn seed() -> u64 {
    std::env::var("RTRACE_SEED").map_or(1, |seed| seed.parse().expect("a number"))
}

#[test]
fn random_schedules() {
    random(size(), seed());
}

#[test]
fn schedules_with_few_preemptions() {
    few_preemptions(size(), seed());
}
