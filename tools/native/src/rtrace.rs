// SPDX-License-Identifier: GPL-2.0

//! The module's record path as a writer.

use crate::channel::{Buffer, Channel, Entry, Output, Probe, Stopped};
use crate::machine::{interrupt, Alarm};
use crate::platform::Process;
use crate::writer::{pin_reader, Outcome, Scenario, Writer, SIGNAL_PERIOD_US};
use anyhow::{bail, ensure, Context, Result};
use rtrace_record::buffer::Shape;
use rtrace_record::clock::{ClockSource, TraceClock};
use rtrace_record::format::Format;
use rtrace_record::header::EventHeader;
use rtrace_record::memory::{NulTerminated, RecordWriter, Tail};
use rtrace_ring::Mode;
use rustix::fs::{memfd_create, MemfdFlags};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{sleep, spawn, JoinHandle};
use std::time::Duration;

/// Size in bytes of the file that the reader writes again and again.
const FILE: u64 = 64 << 20;
/// Pause of the reader when there is nothing to read.
const REST: Duration = Duration::from_micros(50);

/// A task, for records of switches between two tasks.
struct Task {
    comm: [u8; 16],
    tid: i32,
    prio: i32,
}

static TASKS: [Task; 2] = [
    Task {
        comm: *b"kworker/u8:3-ev\0",
        tid: 4711,
        prio: 120,
    },
    Task {
        comm: *b"swapper/0\0\0\0\0\0\0\0",
        tid: 0,
        prio: 120,
    },
];

/// 14 bytes with its NUL.
static NAME: &[u8; 13] = b"virtio1-req.0";

/// Defines a module with a function `probe`, in the same way as rust/source/typed/declare.rs.
macro_rules! probe {
    (
        $name:ident($probe:ident $(, $arg:ident: $ty:ty)*)
        { $($fty:ty = $read:expr),* $(,)? } $(string $value:expr)?
    ) => {
        mod $name {
            use super::*;

            const FIXED: u64 = 0 $(+ size_of::<$fty>() as u64)*;
            // A string has a NUL at least.
            const LEAST: u64 = FIXED $(+ { stringify!($value); 1 })?;

            #[inline(never)]
            pub(super) fn probe<F: Format>($probe: &Probe $(, $arg: $ty)*) {
                let entered = match $probe.enter() {
                    Ok(entered) => entered,
                    Err(stopped) => return admit::<F>($probe $(, $arg)*, stopped),
                };
                if F::Clock::IS_CALL {
                    record_with_call::<F>($probe $(, $arg)*, entered);
                } else {
                    record::<F>($probe $(, $arg)*, entered);
                }
            }

            #[inline(always)]
            fn record<F: Format>($probe: &Probe $(, $arg: $ty)*, entered: Entry<'_>) {
                let recorded = probe!(@record Buffer::record_open::<F, _>, entered, $probe,
                    [$($value)?] [$($fty = $read),*]);
                if let Err(entered) = recorded {
                    record_any::<F>($probe $(, $arg)*, entered);
                }
            }

            #[inline(never)]
            fn record_with_call<F: Format>($probe: &Probe $(, $arg: $ty)*, entered: Entry<'_>) {
                record::<F>($probe $(, $arg)*, entered);
            }

            #[cold]
            #[inline(never)]
            fn admit<F: Format>($probe: &Probe $(, $arg: $ty)*, stopped: Stopped<'_>) {
                if let Some(entered) = $probe.admit(stopped, F::Header::SHORT + LEAST) {
                    record_any::<F>($probe $(, $arg)*, entered);
                }
            }

            #[cold]
            #[inline(never)]
            fn record_any<F: Format>($probe: &Probe $(, $arg: $ty)*, entered: Entry<'_>) {
                probe!(@record Buffer::record_any::<F, _>, entered, $probe,
                    [$($value)?] [$($fty = $read),*]);
            }
        }
    };
    (@record $record:expr, $entered:ident, $probe:ident,
        [$($value:expr)?] [$($fty:ty = $read:expr),*]
    ) => {
        $record(
            $entered,
            &$probe.label,
            #[inline(always)]
            || {
                let tail = probe!(@tail $($value)?);
                (
                    FIXED.wrapping_add(tail.len() as u64),
                    #[inline(always)]
                    move |to: RecordWriter<'_>| to$(.put::<$fty>($read))*.put_tail(&tail),
                )
            },
        )
    };
    (@tail) => { () };
    (@tail $value:expr) => { NulTerminated($value) };
}

probe! { small(probe, vec: u16) { u16 = vec } }

probe! { medium(probe, irq: i32, name: &[u8]) { i32 = irq } string name }

// As `medium`. In the middle of the record the same probe runs completely, as in an interrupt.
probe! {
    medium_nested(probe, irq: i32, name: &[u8])
    { i32 = { interrupt(|| medium::probe::<F>(probe, irq, name)); irq } } string name
}

probe! {
    large(probe, prev: &Task, next: &Task, prev_state: i64) {
        [u8; 16] = prev.comm, i32 = prev.tid, i32 = prev.prio, i64 = prev_state,
        [u8; 16] = next.comm, i32 = next.tid, i32 = next.prio,
    }
}

/// Fires records of `bytes` bytes, one after the other. The probe is called through a pointer, as a tracepoint
/// calls it.
fn fire<F: Format>(event: &Probe, scenario: Scenario, bytes: u64, records: u64) {
    match (scenario, bytes) {
        (Scenario::Nested, _) => {
            let probe = black_box(medium_nested::probe::<F> as fn(&Probe, i32, &[u8]));
            (0..records / 2).for_each(|i| probe(event, i as i32, NAME));
        }
        (_, 6) => {
            let probe = black_box(small::probe::<F> as fn(&Probe, u16));
            (0..records).for_each(|i| probe(event, i as u16));
        }
        (_, 22) => {
            let probe = black_box(medium::probe::<F> as fn(&Probe, i32, &[u8]));
            (0..records).for_each(|i| probe(event, i as i32, NAME));
        }
        _ => {
            let probe = black_box(large::probe::<F> as fn(&Probe, &Task, &Task, i64));
            let [prev, next] = &TASKS;
            (0..records).for_each(|i| probe(event, prev, next, i as i64));
        }
    }
}

/// The module's writer.
struct RingWriter {
    channel: Arc<Channel>,
    probe: Arc<Probe>,
    scenario: Scenario,
    bytes: u64,
    fire: fn(&Probe, Scenario, u64, u64),
    fired: u64,
    alarm: Option<(Alarm, Arc<AtomicU64>)>,
    reader: Option<Drain>,
}

/// Creates the writer for a scenario. `clock` must be the one of `F`.
pub(crate) fn writer<F: Format>(
    clock: TraceClock<Process>,
    scenario: Scenario,
    bytes: u64,
) -> Result<Box<dyn Writer>> {
    let channel = Arc::new(Channel::new(shape(scenario), clock)?);
    let probe = Arc::new(Probe::new(&channel, 1));
    let mut writer = RingWriter {
        alarm: None,
        reader: None,
        channel,
        probe,
        scenario,
        bytes,
        fire: fire::<F>,
        fired: 0,
    };
    match scenario {
        Scenario::Signal => {
            let signals = Arc::new(AtomicU64::new(0));
            let (probe, counter) = (writer.probe.clone(), signals.clone());
            let tick = move || {
                medium::probe::<F>(&probe, 0, NAME);
                counter.fetch_add(1, Ordering::Relaxed);
            };
            writer.alarm = Some((Alarm::new(SIGNAL_PERIOD_US, tick)?, signals));
        }
        Scenario::Reader => writer.reader = Some(Drain::new(writer.channel.clone())?),
        Scenario::Full => {
            while writer.channel.full() == 0 {
                writer.fire(1000);
            }
        }
        Scenario::Overwrite | Scenario::Switch | Scenario::Nested => {}
    }
    Ok(Box::new(writer))
}

fn shape(scenario: Scenario) -> Shape {
    Shape {
        mode: match scenario {
            Scenario::Full => Mode::Discard,
            _ => Mode::Overwrite,
        },
        subbuf_size: match scenario {
            Scenario::Switch => 4096,
            _ => 1 << 20,
        },
        subbuf_count: 4,
        origin: 0,
    }
}

impl Writer for RingWriter {
    fn fire(&mut self, records: u64) {
        // Nested records come in pairs.
        let records = match self.scenario {
            Scenario::Nested => records.next_multiple_of(2),
            _ => records,
        };
        (self.fire)(&self.probe, self.scenario, self.bytes, records);
        self.fired += records;
    }

    fn finish(mut self: Box<Self>) -> Result<Outcome> {
        let signals = match self.alarm.take() {
            Some((alarm, signals)) => {
                drop(alarm);
                signals.load(Ordering::Relaxed)
            }
            None => 0,
        };
        let read = match self.reader.take() {
            Some(reader) => reader.stop()?,
            None => 0,
        };
        let outcome = Outcome {
            fired: self.fired + signals,
            recorded: self.channel.recorded(),
            lost: self.channel.discarded(),
            read,
            signals,
        };
        ensure!(
            outcome.fired == outcome.recorded + outcome.lost,
            "records are unaccounted for: {outcome:?}"
        );
        let expected = match self.scenario {
            Scenario::Full => outcome.lost > outcome.recorded,
            Scenario::Reader => outcome.lost == 0 && read > 0,
            Scenario::Signal => outcome.lost == 0 && signals > 0,
            _ => outcome.lost == 0,
        };
        ensure!(expected, "{}: {outcome:?}", self.scenario.name());
        Ok(outcome)
    }
}

/// A thread that moves packets out, as fast as it can.
struct Drain {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Drain {
    fn new(channel: Arc<Channel>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let file = memfd_create("rtrace-native", MemfdFlags::CLOEXEC)?;
        let mut out = Output::new(file.into(), FILE);
        let stopped = stop.clone();
        let thread = spawn(move || {
            pin_reader();
            let mut read = 0;
            while !stopped.load(Ordering::Relaxed) {
                match channel.drain(&mut out) {
                    Ok(Some(records)) => read += records,
                    Ok(None) => sleep(REST),
                    Err(why) => bail!("the reader failed: {why:#}"),
                }
            }
            Ok(read)
        });
        Ok(Self { stop, thread })
    }

    fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the reader panicked")?
    }
}
