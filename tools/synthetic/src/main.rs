// SPDX-License-Identifier: GPL-2.0

//! Writes a trace of any size, to measure how fast it is read: `synthetic DIR EVENTS [CPUS]`.
//!
//! On each CPU 16 threads take turns. Each opens and reads a file, and is interrupted. The trace is the same at each
//! run.

#![forbid(unsafe_code)]

use rtrace_abi::header::Layout;
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use synthetic::{PacketBuilder, OPENAT_EXIT, READ_EXIT, UUID, WAKING};

/// Events in a packet: such a packet has about 256 KiB.
const PACKET: u64 = 10_000;

/// Threads of a CPU.
const THREADS: u64 = 16;

/// Ticks between two events.
const STEP: u64 = 97;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (dir, events, cpus) = match arguments.as_slice() {
        [dir, events] => (dir, events.parse::<u64>()?, 2),
        [dir, events, cpus] => (dir, events.parse()?, cpus.parse::<u32>()?),
        _ => return Err("usage: synthetic DIR EVENTS [CPUS]".into()),
    };
    let dir = Path::new(dir);
    fs::create_dir_all(dir)?;
    fs::write(
        dir.join("metadata"),
        synthetic::metadata(UUID, Layout::Compact),
    )?;
    for cpu in 0..cpus {
        stream(dir, cpu, events / u64::from(cpus))?;
    }
    Ok(())
}

/// Writes the stream of a CPU.
fn stream(dir: &Path, cpu: u32, events: u64) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(dir.join(format!("channel0_cpu{cpu}")))?);
    let mut time = 1_000 + u64::from(cpu) * 13;
    for number in 0..events.div_ceil(PACKET) {
        let mut packet = PacketBuilder::new(Layout::Compact, cpu, number, time);
        for event in number * PACKET..events.min((number + 1) * PACKET) {
            time += STEP;
            packet = add(packet, cpu, event, time);
        }
        file.write_all(&packet.close(time + 1, 4096))?;
        time += 2;
    }
    file.flush()?;
    Ok(())
}

/// Adds the event of this number on a CPU.
fn add(packet: PacketBuilder, cpu: u32, event: u64, time: u64) -> PacketBuilder {
    let name = |turn: u64| {
        let place = turn % THREADS;
        let tid = 1_000 + i32::try_from(u64::from(cpu) * THREADS + place).unwrap_or_default();
        (tid, format!("worker-{place}"))
    };
    let (turn, step) = (event / 12, event % 12);
    let (now, next) = (name(turn), name(turn + 1));
    match step {
        0 => packet.irq(time, 24, "virtio0-input.0"),
        1 => packet.irq_exit(time, 24),
        2 | 5 => packet.softirq(time, 3),
        3 | 6 => packet.softirq_exit(time, 3),
        4 => packet.wake(WAKING, time, (next.0, &next.1)),
        7 => packet.openat(time, "/etc/ld.so.cache"),
        8 => packet.syscall_exit(OPENAT_EXIT, time, 3),
        9 => packet.read(time, 0x7fff_1234_5678),
        10 => packet.syscall_exit(READ_EXIT, time, 4096),
        _ => packet.switch_from(time, (now.0, &now.1), 1, (next.0, &next.1)),
    }
}
