// SPDX-License-Identifier: GPL-2.0

//! Two real threads. Miri reports each race of payload bytes and, depending on its seed, returns
//! old values (`tools/testing/run miri`). Without Miri this is a short stress run.
//!
//! The machine is that of `tests/order`: the same ring on std's words, with the barrier at
//! delivery. A process cannot execute the interrupt's barrier on another CPU.

mod cell;
#[path = "../order/log.rs"]
mod log;
#[path = "../order/machine.rs"]
mod machine;
#[path = "../order/outside.rs"]
mod outside;
mod platform;
#[path = "../common/slots.rs"]
mod slots;

use rtrace_ring as ring;

use machine::{Config, Machine, Read, Write};
use platform::Policy;
use ring::Mode;

const WRITES: [Write; 6] = [
    Write::Record(1),
    Write::Fill,
    Write::Record(2),
    Write::Record(1),
    Write::Switch,
    Write::Fill,
];
const READS: [Read; 7] = [
    Read::Get,
    Read::Put,
    Read::Get,
    Read::Unget,
    Read::Get,
    Read::Flush,
    Read::Put,
];

/// Number of times that the writer and the reader run all of their steps, and number of repetitions
/// of that.
const ROUNDS: usize = if cfg!(miri) { 6 } else { 200 };
const REPEATS: usize = if cfg!(miri) { 1 } else { 200 };

fn run(mode: Mode, origin: u64) {
    for _ in 0..REPEATS {
        let machine = Machine::new(Config {
            mode,
            policy: Policy::Delivery,
            origin,
        });
        let mut consumer = machine.consumer();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in WRITES.into_iter().cycle().take(ROUNDS * WRITES.len()) {
                    machine.write(step);
                }
            });
            for step in READS.into_iter().cycle().take(ROUNDS * READS.len()) {
                machine.read(&mut consumer, step);
            }
        });
        machine.check_end(&mut consumer);
    }
}

/// From position 0, and from just below the wrap.
#[test]
fn discard() {
    run(Mode::Discard, 0);
    run(Mode::Discard, 0u64.wrapping_sub(machine::BUFFER));
}

#[test]
fn overwrite() {
    run(Mode::Overwrite, 0);
    run(Mode::Overwrite, 0u64.wrapping_sub(machine::BUFFER));
}
