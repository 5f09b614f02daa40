// SPDX-License-Identifier: GPL-2.0

//! A simulated machine: its threads make calls, sleep, wake up and move between CPUs. Also its trace, and the
//! true figures of the trace.
//!
//! Each kind of interval always has the same length. If a reader pairs the wrong events, their distance
//! differs.

use rtrace_abi::header::Layout;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs;
use std::path::Path;
use synthetic::{Channel, PacketBuilder, OPENAT_EXIT, READ_EXIT, WAKING};

/// A step of the machine, in clock ticks. Each thread uses other ticks of a step, so that no two events have
/// the same time.
const STEP: u64 = 16;
/// A tick, in nanoseconds.
pub const TICK_NS: u64 = 1_000_000_000 / synthetic::FREQUENCY;

/// Steps of a read. During the read, the thread sleeps and moves to another CPU.
const READ: u64 = 1000;
/// Steps from the begin of a read until the thread sleeps.
const BEFORE: u64 = 100;
/// Steps from the wake-up of a thread until it runs.
const WAIT: u64 = 200;
/// Steps for which the thread sleeps.
const SLEEP: u64 = 500;
/// Steps of an open.
const OPEN: u64 = 300;

/// These times in nanoseconds.
pub const READ_NS: u64 = READ * STEP * TICK_NS;
pub const WAIT_NS: u64 = WAIT * STEP * TICK_NS;
pub const OPEN_NS: u64 = OPEN * STEP * TICK_NS;

/// Event on a CPU.
#[derive(Clone, Copy, Debug)]
enum Event {
    Read,
    ReadExit,
    Open,
    OpenExit(i64),
    /// The entry (true), or the exit.
    Irq(bool),
    Softirq(bool),
    /// Wake-up of this thread.
    Waking(i32),
    /// Switch from a thread, which leaves the CPU in this state, to another one.
    Switch(i32, i64, i32),
}

/// Next action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Wakes up, in a read or not.
    Wake(bool),
    /// Starts to run, in a read or not.
    Run(bool),
    Read,
    Sleep,
    ReadExit,
    Open,
    OpenExit,
}

/// True figures of a trace.
#[derive(Debug, Default)]
pub struct Truth {
    pub reads: u64,
    pub reads_ended: u64,
    pub opens: u64,
    pub opens_ended: u64,
    pub opens_failed: u64,
    /// Number of wake-ups after which the thread ran.
    pub waits: u64,
    /// Time of each thread's first wake-up, in clock ticks.
    pub begins: HashMap<i32, u64>,
    /// Time of the last event.
    pub end: u64,
}

/// Kind of the events missing in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// Whole packets are missing.
    Packets,
    /// Single events are missing.
    Events,
}

/// Pseudorandom numbers: splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// Simulates `threads` threads, at most as many as CPUs, and writes the trace.
pub fn write(dir: &Path, random: &mut Random, cpus: usize, threads: i32, loss: Loss) -> Truth {
    let (machine, truth) = Machine::run(random, cpus, threads, false);
    let streams = streams(random, machine, 0, loss, truth.end);
    synthetic::write(dir, Layout::Compact, &streams).unwrap();
    truth
}

/// Channels of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    One,
    /// One channel each for the schedule, system calls, and interrupts. Each channel has its own losses.
    Three,
}

/// Writes the trace of a machine with 4 CPUs and with interrupts.
pub fn write_with_interrupts(dir: &Path, random: &mut Random, channels: Channels, loss: Loss) {
    let (all, truth) = Machine::run(random, 4, 3, true);
    let of = |event: &Event| match (channels, event) {
        (Channels::One, _) | (_, Event::Waking(_) | Event::Switch(..)) => 0,
        (_, Event::Read | Event::ReadExit | Event::Open | Event::OpenExit(_)) => 1,
        (_, Event::Irq(_) | Event::Softirq(_)) => 2,
    };
    let names = ["channel0", "calls", "interrupts"];
    let names = &names[..if channels == Channels::One { 1 } else { 3 }];
    let streams: Vec<_> = (0..)
        .zip(names)
        .map(|(class, _)| {
            let own = |events: &Vec<(u64, Event)>| {
                let events = events.iter().copied();
                events.filter(|(_, event)| of(event) == class).collect()
            };
            streams(
                random,
                all.iter().map(own).collect(),
                class,
                loss,
                truth.end,
            )
        })
        .collect();
    let channels: Vec<_> = names
        .iter()
        .zip(&streams)
        .map(|(name, streams)| Channel {
            name,
            layout: Layout::Compact,
            streams,
        })
        .collect();
    synthetic::write_channels(dir, &channels).unwrap();
    if names.len() == 1 {
        return;
    }
    // Each channel describes only its own events.
    let path = dir.join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let kept = text.split_inclusive("};\n\n").filter(|block| {
        let mut own = ["sched_", "syscall_", "irq_"].into_iter().enumerate();
        !block.trim_start().starts_with("event {")
            || own.any(|(class, prefix)| {
                block.contains(&format!("stream_id = {class};"))
                    && block.contains(&format!("name = \"{prefix}"))
            })
    });
    let kept: String = kept.collect();
    fs::write(&path, kept).unwrap();
}

/// Returns the streams of a channel with these events by CPU.
fn streams(
    random: &mut Random,
    events: Vec<Vec<(u64, Event)>>,
    class: u32,
    loss: Loss,
    end: u64,
) -> Vec<(u32, Vec<Vec<u8>>)> {
    let cpus = (0_u32..).zip(events);
    cpus.map(|(cpu, events)| {
        (
            cpu,
            packets_of(random, (cpu, class), &events, loss, end, add),
        )
    })
    .collect()
}

impl Machine {
    /// Returns the events of each CPU, in order of time.
    fn run(
        random: &mut Random,
        cpus: usize,
        threads: i32,
        has_interrupts: bool,
    ) -> (Vec<Vec<(u64, Event)>>, Truth) {
        let mut machine = Machine {
            has_interrupts,
            events: vec![Vec::new(); cpus],
            runs: vec![0; cpus],
            truth: Truth::default(),
        };
        let mut queue = BinaryHeap::new();
        for tid in 1..=threads {
            queue.push(Reverse((STEP * 10 + tid as u64, tid, Next::Wake(false))));
        }
        for _ in 0..400 {
            let Some(Reverse((time, tid, next))) = queue.pop() else {
                break;
            };
            let (steps, then) = machine.does(random, time, tid, next);
            queue.push(Reverse((time + steps * STEP, tid, then)));
        }
        for events in &mut machine.events {
            events.retain(|(time, _)| *time <= machine.truth.end);
            events.sort_by_key(|(time, _)| *time);
        }
        (machine.events, machine.truth)
    }
}

struct Machine {
    /// Whether each open has an interrupt and a softirq.
    has_interrupts: bool,
    /// Events by CPU.
    events: Vec<Vec<(u64, Event)>>,
    /// The thread on each CPU; 0 if none.
    runs: Vec<i32>,
    truth: Truth,
}

impl Machine {
    /// Does the action of a thread. Returns the number of steps until the next action, and that action.
    fn does(&mut self, random: &mut Random, time: u64, tid: i32, next: Next) -> (u64, Next) {
        let any = random.below(self.runs.len() as u64) as usize;
        let own = self.runs.iter().position(|running| *running == tid);
        let idle = (any..any + self.runs.len())
            .map(|cpu| cpu % self.runs.len())
            .find(|cpu| self.runs[*cpu] == 0);
        let cpu = own.or(idle).expect("no more threads than CPUs");
        let truth = &mut self.truth;
        truth.end = time;
        let events = &mut self.events[cpu];
        match next {
            Next::Wake(reads) => {
                truth.begins.entry(tid).or_insert(time);
                self.events[any].push((time, Event::Waking(tid)));
                (WAIT, Next::Run(reads))
            }
            Next::Run(reads) => {
                truth.waits += 1;
                events.push((time, Event::Switch(0, 0, tid)));
                self.runs[cpu] = tid;
                let then = if reads { Next::ReadExit } else { Next::Open };
                (READ - WAIT - SLEEP - BEFORE, then)
            }
            Next::ReadExit => {
                truth.reads_ended += 1;
                events.push((time, Event::ReadExit));
                (1 + random.below(300), Next::Open)
            }
            Next::Open => {
                truth.opens += 1;
                events.push((time, Event::Open));
                if self.has_interrupts {
                    for (steps, event) in [
                        (50, Event::Softirq(true)),
                        (60, Event::Irq(true)),
                        (70, Event::Irq(false)),
                        (90, Event::Softirq(false)),
                    ] {
                        events.push((time + steps * STEP, event));
                    }
                }
                (OPEN, Next::OpenExit)
            }
            Next::OpenExit => {
                truth.opens_ended += 1;
                let failed = random.below(3) == 0;
                truth.opens_failed += u64::from(failed);
                let ret = if failed { -2 } else { 3 };
                events.push((time, Event::OpenExit(ret)));
                (1 + random.below(300), Next::Read)
            }
            Next::Read => {
                truth.reads += 1;
                events.push((time, Event::Read));
                (BEFORE, Next::Sleep)
            }
            Next::Sleep => {
                events.push((time, Event::Switch(tid, 1, 0)));
                self.runs[cpu] = 0;
                (SLEEP, Next::Wake(true))
            }
        }
    }
}

/// Returns the packets of a CPU with these events, without the lost ones. `add` adds an event to a packet. The
/// last packet is closed at the machine's end.
pub fn packets<E: Copy>(
    random: &mut Random,
    cpu: u32,
    events: &[(u64, E)],
    loss: Loss,
    end: u64,
    add: fn(PacketBuilder, u64, E) -> PacketBuilder,
) -> Vec<Vec<u8>> {
    packets_of(random, (cpu, 0), events, loss, end, add)
}

/// Returns the packets of a stream class.
fn packets_of<E: Copy>(
    random: &mut Random,
    (cpu, class): (u32, u32),
    events: &[(u64, E)],
    loss: Loss,
    end: u64,
    add: fn(PacketBuilder, u64, E) -> PacketBuilder,
) -> Vec<Vec<u8>> {
    let (mut packets, mut number, mut discarded) = (Vec::new(), 0, 0);
    let mut rest = events;
    while !rest.is_empty() {
        let length = (1 + random.below(12) as usize).min(rest.len());
        let (events, left) = rest.split_at(length);
        rest = left;
        // The last packet is never lost, because no later packet would show the loss.
        let hit = random.below(4) == 0 && !rest.is_empty();
        let packet = PacketBuilder::new(Layout::Compact, cpu, number, events[0].0);
        let mut packet = packet.stream(class);
        number += 1;
        if hit && loss == Loss::Packets {
            continue;
        }
        for &(time, event) in events {
            if hit && loss == Loss::Events && random.below(2) == 0 {
                discarded += 1;
            } else {
                packet = add(packet, time, event);
            }
        }
        let end = if rest.is_empty() {
            end
        } else {
            events[length - 1].0
        };
        packets.push(packet.discarded(discarded).close(end, 8));
    }
    packets
}

fn add(packet: PacketBuilder, time: u64, event: Event) -> PacketBuilder {
    let name = |tid| if tid == 0 { "swapper" } else { "worker" };
    let task = |tid| (tid, name(tid));
    match event {
        Event::Read => packet.read(time, 0),
        Event::ReadExit => packet.syscall_exit(READ_EXIT, time, 1),
        Event::Open => packet.openat(time, "/etc/hosts"),
        Event::OpenExit(ret) => packet.syscall_exit(OPENAT_EXIT, time, ret),
        Event::Irq(true) => packet.irq(time, 24, "disk"),
        Event::Irq(false) => packet.irq_exit(time, 24),
        Event::Softirq(true) => packet.softirq(time, 1),
        Event::Softirq(false) => packet.softirq_exit(time, 1),
        Event::Waking(tid) => packet.wake(WAKING, time, task(tid)),
        Event::Switch(prev, state, next) => packet.switch_from(time, task(prev), state, task(next)),
    }
}
