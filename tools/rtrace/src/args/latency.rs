// SPDX-License-Identifier: GPL-2.0

//! `rtrace latency`, as typed.

use super::{rows, AccessArgs};
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use control::BufferSize;
use ctf::LatencyKind;
use rtrace_input::cpulist::CpuList;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use system::quantity;

/// Measure how long threads wait for a CPU, and show why
///
/// A wait begins when a thread is woken, or when it leaves its CPU although it could continue to run: it is preempted,
/// or yields. The wait ends when the thread runs.
///
/// Each time a thread waits longer than any before, a line names the thread, the CPU, and the thread that left the
/// CPU then. The line says whether the thread was woken or preempted. At the end, the longest wait is shown: the thread
/// that woke the waiting thread or got its CPU, what the CPU did meanwhile (other threads, interrupts, softirqs), and
/// the kernel function in which the CPU was left.
///
/// With --preempt, the time counts from the request to give up the CPU until the thread does. It is as long as
/// preemption or interrupts are off. The call stack shows where the thread was preempted.
///
/// With --timer, the delay of a timer on each CPU is measured: the timer is late by as long as interrupts are off. It
/// interrupts the code that has just enabled interrupts, and the call stack of that code is shown. Where the processor
/// can count cycles, the functions that ran during the delay are shown, too.
///
/// The module measures, and keeps the events in flight recorders. rtrace takes a snapshot of these when the maximum
/// grows, or with --threshold at each wait that is as long. Times are local times of the day.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace latency                                until Ctrl-C
  rtrace latency --rt -C 2,3 --duration 60s     real-time threads, on two CPUs, for a minute
  rtrace latency --threshold 500us --count 1    the first wait of 500 us or more, with the trace around it
  rtrace latency -i DIR/1                       the same once more, of that trace
  rtrace latency --preempt --rt                 how long CPUs are kept from threads of real time
  rtrace latency --timer --threshold 200us --count 1    interrupts off for 200 us or more

Exit codes: as of `rtrace record`.")]
pub struct LatencyArgs {
    /// Measure how long threads keep a CPU
    ///
    /// The time counts from the request to give up the CPU until the thread does.
    #[arg(long, conflicts_with = "timer")]
    pub preempt: bool,

    /// With --preempt, also count lazy requests: to give up the CPU at the next tick, or on return to user space
    #[arg(hide_short_help = true)]
    #[arg(long, requires = "preempt", conflicts_with = "timer")]
    pub lazy: bool,

    /// Measure how late a timer of each CPU fires
    #[arg(long)]
    pub timer: bool,

    /// Period of that timer, from 100us to 1s [default: 1ms]
    #[arg(hide_short_help = true)]
    #[arg(long, value_name = "DURATION", value_parser = period, requires = "timer", conflicts_with = "preempt")]
    pub period: Option<Duration>,

    /// Only real-time threads (FIFO, RR, DEADLINE)
    ///
    /// With --preempt: those that get the CPU.
    #[arg(long)]
    pub rt: bool,

    /// Only threads of these processes
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,

    /// Only these CPUs: 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<Cpus>,

    /// Report each wait of at least DURATION
    ///
    /// Of several waits at the same time, the longest is reported. Without this option, each new maximum is
    /// reported.
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub threshold: Option<Duration>,

    /// End after N of these
    #[arg(long, value_name = "N", requires = "threshold")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Buffer of each CPU, as 1Mx4
    ///
    /// N sub-buffers of SIZE bytes (with K, M, G), both powers of two.
    #[arg(hide_short_help = true)]
    #[arg(short, long, value_name = "SIZExN")]
    pub buffer: Option<BufferSize>,

    /// Keep the traces around the waits in DIR
    ///
    /// The traces are DIR/1, DIR/2, ...; DIR is new or empty. By default none is kept; with --threshold DIR is
    /// ./rtrace-YYYYMMDD-HHMMSS, in UTC.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub access: AccessArgs,

    /// Show the longest wait of a trace
    ///
    /// DIR is the trace; without DIR, the newest in the current directory. The trace must have
    /// latency:wakeup_latency, with --preempt latency:preempt_latency, with --timer latency:timer_latency.
    #[arg(short, long, value_name = "DIR", num_args = 0..=1, conflicts_with_all = [
        "rt", "pids", "cpus", "threshold", "buffer", "output", "mode", "group", "command", "period",
        "lazy", "duration"
    ])]
    #[arg(add = ArgValueCompleter::new(complete::traces))]
    pub input: Option<Option<PathBuf>>,

    /// Rows of what a CPU did; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "20", value_parser = rows)]
    pub rows: usize,

    /// End after this time, as 10s
    ///
    /// The measurement ends after this time or with COMMAND. A COMMAND that still runs is waited for.
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    pub duration: Option<Duration>,

    /// With -i: print one JSON object
    #[arg(long, requires = "input")]
    pub json: bool,

    /// Command to run meanwhile
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl LatencyArgs {
    /// The kind of latency.
    pub fn measured(&self) -> LatencyKind {
        match (self.preempt, self.timer) {
            (true, _) => LatencyKind::Preempt,
            (_, true) => LatencyKind::Timer,
            _ => LatencyKind::Wakeup,
        }
    }
}

/// CPUs as ranges: the first and the last CPU of each range.
pub type Cpus = std::sync::Arc<[(u32, u32)]>;

/// Limit of CPU numbers: more CPUs than a kernel can have.
const CPUS: u32 = 1 << 14;

fn cpus(text: &str) -> Result<Cpus, String> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for item in CpuList::new(text, CPUS) {
        let item = item.map_err(|error| error.reason.to_string())?;
        for cpu in item.cpus() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => runs.push((cpu, cpu)),
            }
        }
    }
    if runs.is_empty() {
        return Err("the list names no CPU".to_owned());
    }
    Ok(runs.into())
}

/// A time of at least a microsecond.
fn time(text: &str) -> Result<Duration, String> {
    let time = quantity::duration(text)?;
    match time >= Duration::from_micros(1) && time <= Duration::from_secs(1000) {
        true => Ok(time),
        false => Err("expected a duration from 1us to 1000s".to_owned()),
    }
}

/// A time that the module takes as a period.
fn period(text: &str) -> Result<Duration, String> {
    let period = time(text)?;
    match period >= Duration::from_micros(100) && period <= Duration::from_secs(1) {
        true => Ok(period),
        false => Err("expected a duration from 100us to 1s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, us) in [
            ("500us", 500),
            ("2.5ms", 2_500),
            ("1s", 1_000_000),
            ("1us", 1),
        ] {
            assert_eq!(time(text), Ok(Duration::from_micros(us)), "{text}");
        }
        for wrong in [
            "", "500", "us", "0us", "-1ms", "17m", "1001s", "0.1us", "nans", "1e400s",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn periods() {
        assert_eq!(period("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(period("1s"), Ok(Duration::from_secs(1)));
        assert!(period("99us").is_err() && period("1.1s").is_err() && period("1").is_err());
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(*cpus("0,2-3,4,9").unwrap(), [(0, 0), (2, 4), (9, 9)]);
        assert_eq!(*cpus("0-7:1/4").unwrap(), [(0, 0), (4, 4)]);
        for wrong in ["", "a", "3-1", "16384"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }
}
