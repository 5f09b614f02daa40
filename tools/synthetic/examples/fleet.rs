// SPDX-License-Identifier: GPL-2.0

//! `fleet DIR MACHINES`: writes traces of MACHINES machines, `DIR/machine-NN-DAY`. Each machine has two, of
//! consecutive days. Each run writes the same.
//!
//! The traces have problems that queries shall find:
//! - On machine-03 threads wait for a CPU.
//! - machine-07 has many interrupts.
//! - machine-11 switches often.
//! - All machines open files slower on the second day.
//! - machine-05 loses events.
//! - On machine-09 the opens fail.

#![forbid(unsafe_code)]

use rtrace_abi::header::Layout;
use std::path::Path;
use std::process::ExitCode;
use synthetic::{Machine, PacketBuilder, OPENAT_EXIT, READ_EXIT, WAKING};

const CPUS: u32 = 2;
const NAMES: [&str; 6] = ["make", "cc1", "ld", "sh", "postgres", "nginx"];
const IDLE: (i32, &str) = (0, "swapper");
/// Packets of a CPU, and rounds of a packet.
const PACKETS: u64 = 4;
const ROUNDS: u64 = 30;
/// 2023-11-14, 23:59:59, so that a part of each trace is in the next day.
const FIRST: i64 = 1_700_006_399;
/// Ticks of 10 ns from the clock's start to that of the traces.
const BEGIN: u64 = 99_900_000;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [dir, machines] = words.as_slice() else {
        eprintln!("usage: fleet DIR MACHINES");
        return ExitCode::from(2);
    };
    let Ok(machines) = machines.parse::<u64>() else {
        eprintln!("fleet: {machines} is not a number");
        return ExitCode::from(2);
    };
    for machine in 0..machines {
        for day in 0..2 {
            let host = format!("machine-{machine:02}");
            let trace = Path::new(dir).join(format!("{host}-{day}"));
            let streams: Vec<_> = (0..CPUS)
                .map(|cpu| (cpu, stream(machine, day, cpu)))
                .collect();
            let machine = Machine {
                host: &host,
                since: FIRST + 86_400 * day as i64,
                is_sampled: true,
            };
            if let Err(error) = synthetic::write_of(&trace, machine, Layout::Compact, &streams) {
                eprintln!("fleet: {}: {error}", trace.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The packets of a CPU.
fn stream(machine: u64, day: u64, cpu: u32) -> Vec<Vec<u8>> {
    let mut random = (machine * 2 + day) * u64::from(CPUS) + u64::from(cpu) + 1;
    let mut below = move |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    // The first random numbers of similar seeds are similar.
    for _ in 0..20 {
        below(2);
    }
    let (mut now, mut out) = (BEGIN + u64::from(cpu), Vec::new());
    let (wait, interrupts, rounds) = match machine {
        3 => (200_000, 1, ROUNDS),
        7 => (2_000, 20, ROUNDS),
        11 => (2_000, 1, ROUNDS * 3),
        _ => (2_000, 1, ROUNDS),
    };
    for number in 0..PACKETS {
        let mut packet = PacketBuilder::new(Layout::Compact, cpu, number, now);
        let is_half = number >= PACKETS / 2;
        packet = packet.discarded(if machine == 5 && is_half { 17 } else { 0 });
        for _ in 0..rounds {
            // Each CPU has threads of its own.
            let thread = below(12) * u64::from(CPUS) + u64::from(cpu);
            let task = (1000 + thread as i32, NAMES[thread as usize % NAMES.len()]);
            let ip = 0xffff_ffff_8100_0000 + below(9) * below(9) * 64;
            let (fails, is_end) = (below(20) == 0 || machine == 9, below(50) == 0);
            let mut next = |most: u64| {
                now += 100 + below(most);
                now
            };
            packet = packet.wake(WAKING, next(5000), task);
            packet = packet.switch(next(wait), IDLE, task);
            packet = packet.openat(next(1000), "/etc/hosts");
            packet = packet.sample(next(1000), ip);
            let ret = if fails { -2 } else { 3 };
            packet = packet.syscall_exit(OPENAT_EXIT, next(3000 + 30_000 * day), ret);
            packet = packet.read(next(1000), 0x7f00_0000_1000);
            for _ in 0..interrupts {
                packet = packet.irq(next(2000), 24, "disk").irq_exit(next(300), 24);
            }
            packet = packet.softirq(next(100), 4).softirq_exit(next(600), 4);
            // Some calls do not return.
            if !is_end {
                let ret = if thread % 7 == 0 { -11 } else { 512 };
                packet = packet.syscall_exit(READ_EXIT, next(5000), ret);
            }
            packet = packet.switch_from(next(3000), task, 1 << (thread % 2), IDLE);
            packet = packet.sample(next(1000), ip);
        }
        now += 100;
        out.push(packet.every_type(now).close(now, 4096));
    }
    out
}
