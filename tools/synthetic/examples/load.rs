// SPDX-License-Identifier: GPL-2.0

//! `load DIR EVENTS`: writes a trace of about EVENTS events, to test how a tool handles it.
//!
//! On four CPUs threads are woken, run, read, are interrupted and sleep. On CPU 2 events are lost in the
//! middle, and packets later. Some threads have names that a tool must not use as its own markup.

#![forbid(unsafe_code)]

use rtrace_abi::header::Layout;
use std::path::Path;
use std::process::ExitCode;
use synthetic::{PacketBuilder, READ_EXIT, WAKING};

const CPUS: u32 = 4;
const NAMES: [&str; 8] = [
    "make",
    "cc1",
    "ld",
    "sh",
    "</script>",
    "<img src=x>",
    "\"><b>'&lt;",
    "kworker/0:1",
];
const IDLE: (i32, &str) = (0, "swapper");
/// Rounds of a packet, and events of a round.
const ROUNDS: u64 = 100;
const EVENTS: u64 = 9;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [dir, events] = words.as_slice() else {
        eprintln!("usage: load DIR EVENTS");
        return ExitCode::from(2);
    };
    let Ok(events) = events.parse::<u64>() else {
        eprintln!("load: {events} is not a number");
        return ExitCode::from(2);
    };
    let packets = events.div_ceil(EVENTS * ROUNDS * u64::from(CPUS)).max(8);
    let streams: Vec<_> = (0..CPUS).map(|cpu| (cpu, stream(cpu, packets))).collect();
    if let Err(error) = synthetic::write(Path::new(dir), Layout::Compact, &streams) {
        eprintln!("load: {dir}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The packets of a CPU.
fn stream(cpu: u32, packets: u64) -> Vec<Vec<u8>> {
    let mut random = u64::from(cpu) + 1;
    let mut below = move |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    let (mut now, mut out) = (u64::from(cpu), Vec::new());
    for number in 0..packets {
        let mut packet = PacketBuilder::new(Layout::Compact, cpu, number, now);
        let is_half = number >= packets / 2;
        packet = packet.discarded(if cpu == 2 && is_half { 1234 } else { 0 });
        for _ in 0..ROUNDS {
            // Each CPU has threads of its own.
            let thread = below(10) * u64::from(CPUS) + u64::from(cpu);
            let task = (1000 + thread as i32, NAMES[thread as usize % NAMES.len()]);
            let mut next = |most: u64| {
                now += 100 + below(most);
                now
            };
            packet = packet.wake(WAKING, next(5000), task);
            packet = packet.switch(next(2000), IDLE, task);
            packet = packet.read(next(1000), 0x7f00_0000_1000);
            packet = packet.irq(next(2000), 24, "disk");
            packet = packet.irq_exit(next(300), 24);
            packet = packet.softirq(next(100), 4);
            packet = packet.softirq_exit(next(600), 4);
            let ret = if thread % 7 == 0 { -11 } else { 512 };
            packet = packet.syscall_exit(READ_EXIT, next(5000), ret);
            packet = packet.switch_from(next(3000), task, 1 << (thread % 2), IDLE);
        }
        // Three packets are missing.
        if cpu != 2 || !(packets * 3 / 4..packets * 3 / 4 + 3).contains(&number) {
            out.push(packet.close(now, 4096));
        }
    }
    out
}
