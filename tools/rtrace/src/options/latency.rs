// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace latency`, converted from the arguments as typed.

use super::record::Conditions;
use crate::args::LatencyArgs;
use crate::run::condition::Condition;
use crate::session::channels::{ChannelSetup, Filter};
use crate::session::setup::Setup;
use control::{BufferSize, Latency as Measured, Mode, FIRST_CHANNEL};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use store::OutputOptions;
use system::time;

/// Events that show what the CPUs did during a delay.
const EVENTS: [&str; 7] = [
    "sched_switch",
    "sched_waking",
    "irq_handler_entry",
    "irq_handler_exit",
    "irq_softirq_entry",
    "irq_softirq_exit",
    "task_rename",
];

/// The channel of timers that fired late. Their events have the call stack of the interrupted code.
pub const TIMERS: &str = "timers";

/// Samples per second and CPU, taken in an NMI if the processor can: several per millisecond.
const SAMPLE_FREQUENCY: u32 = 5000;

/// Latencies to measure.
pub struct Latency {
    /// The kind of latency.
    pub measured: Measured,
    /// Whether lazy requests count.
    pub lazy: bool,
    /// Period of the timers.
    pub period: Option<Duration>,
    /// Settings of the session.
    pub setup: Setup,
    /// Conditions for a snapshot or for the end.
    pub conditions: Conditions,
    /// The processes whose waits count; all, if it is empty.
    pub pids: Vec<u32>,
    /// Filter of the latency event, for the waits that count; all, if there is none.
    pub filter: Option<String>,
    /// The same choice in words; empty, if there is none.
    pub chosen: String,
    /// Minimum duration of a wait to report. Without it: each new maximum.
    pub threshold: Option<Duration>,
    /// Directory of the kept traces, if they are kept.
    pub dir: Option<PathBuf>,
    /// How the traces are written.
    pub output_options: OutputOptions,
    /// Rows in the table of what a CPU did.
    pub rows: usize,
    /// The command to run, if any.
    pub command: Option<(OsString, Vec<OsString>)>,
}

/// Converts the arguments.
pub fn latency(args: LatencyArgs) -> Latency {
    let measured = args.measured();
    let filter = filter(&args, measured);
    let chosen = chosen(&args);
    let on_event = filter.iter().map(|filter| Filter {
        patterns: vec![measured.pattern().to_owned()],
        expression: filter.clone().into(),
    });
    let mut channels = vec![ChannelSetup {
        events: Some(EVENTS.map(|event| event.to_owned().into()).into()),
        ..ChannelSetup::named(FIRST_CHANNEL)
    }];
    if args.timer {
        let contexts = vec!["callstack-kernel".to_owned()];
        channels.push(ChannelSetup {
            contexts: Some(contexts.into()),
            ..ChannelSetup::named(TIMERS)
        });
    }
    if let Some(channel) = channels.last_mut() {
        let events = channel.events.get_or_insert_default();
        events.push(measured.pattern().to_owned().into());
        channel.filters = on_event.collect();
    }
    let size = args.buffer.unwrap_or(BufferSize::DEFAULT);
    let default = || format!("rtrace-{}", time::name_of_now()).into();
    let mut command = args.command.into_iter();
    let mut setup = Setup {
        channels,
        sample_frequency: args.timer.then(|| SAMPLE_FREQUENCY.into()),
        ..Setup::default()
    };
    setup.fill(Some(Mode::Overwrite), Some(size));
    Latency {
        measured,
        lazy: args.lazy,
        period: args.period,
        setup,
        conditions: Conditions {
            snapshot_on: vec![Condition::Event {
                pattern: measured.pattern().to_owned(),
                filter: filter.clone(),
            }],
            snapshots: args.count,
            duration: args.duration,
            ..Conditions::default()
        },
        filter,
        chosen,
        pids: args.pids,
        dir: args.output.or_else(|| args.threshold.map(|_| default())),
        threshold: args.threshold,
        output_options: args.access.output(),
        rows: args.rows,
        command: command.next().map(|program| (program, command.collect())),
    }
}

/// Filter for the delays that the options choose.
fn filter(args: &LatencyArgs, measured: Measured) -> Option<String> {
    let any = |parts: Vec<String>| format!("({})", parts.join(" || "));
    let pids = args.pids.iter().map(|pid| format!("pid == {pid}"));
    let cpus = args.cpus.iter().flat_map(|cpus| cpus.iter());
    // The fields with the CPU of the delay and with the priority of the thread that waits or is interrupted.
    let (cpu, prio) = match measured {
        Measured::Wakeup => ("target_cpu", "prio"),
        Measured::Preempt => ("CPU", "next_prio"),
        Measured::Timer => ("CPU", "prio"),
    };
    let cpus = cpus.map(|(first, last)| match first == last {
        true => format!("{cpu} == {first}"),
        false => format!("{cpu} >= {first} && {cpu} <= {last}"),
    });
    let all = [
        // Priorities of real-time threads are below 0 in the event.
        args.rt.then(|| format!("{prio} < 0")),
        (!args.pids.is_empty()).then(|| any(pids.collect())),
        args.cpus.is_some().then(|| any(cpus.collect())),
    ];
    let all: Vec<_> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" && "))
}

/// Names the threads and CPUs that the options choose.
fn chosen(args: &LatencyArgs) -> String {
    let list = |what: &str, numbers: Vec<String>| {
        (!numbers.is_empty()).then(|| format!("{what} {}", numbers.join(",")))
    };
    let cpus = args.cpus.iter().flat_map(|cpus| cpus.iter());
    let cpus = cpus.map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let chosen = [
        args.rt.then(|| "real-time threads".to_owned()),
        list("process", args.pids.iter().map(u32::to_string).collect()),
        list("CPU", cpus.collect()),
    ];
    let chosen: Vec<_> = chosen.into_iter().flatten().collect();
    chosen.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{latency, Latency};
    use crate::args::{Cli, Command};

    fn options(words: &[&str]) -> Latency {
        let words = ["rtrace", "latency"].iter().chain(words);
        match Cli::from_words(words).unwrap().command {
            Command::Latency(args) => latency(args),
            _ => panic!("something else"),
        }
    }

    fn filter(words: &[&str]) -> Option<String> {
        options(words).filter
    }

    #[test]
    fn the_choice_is_named() {
        let chosen = |words: &[&str]| options(words).chosen;
        assert_eq!(chosen(&[]), "");
        assert_eq!(chosen(&["-p", "7"]), "process 7");
        let all = chosen(&["--rt", "-p", "7,8", "-C", "0,2-3"]);
        assert_eq!(all, "real-time threads, process 7,8, CPU 0,2-3");
    }

    #[test]
    fn what_is_asked_for_is_a_filter() {
        assert_eq!(filter(&[]), None);
        let said = filter(&["--rt", "-p", "7,8", "-C", "0,2-3"]).unwrap();
        let expected = "prio < 0 && (pid == 7 || pid == 8) && \
                        (target_cpu == 0 || target_cpu >= 2 && target_cpu <= 3)";
        assert_eq!(said, expected);
        let said = filter(&["--timer", "-C", "0,2-3"]).unwrap();
        assert_eq!(said, "(CPU == 0 || CPU >= 2 && CPU <= 3)");
        let said = filter(&["--preempt", "--rt", "-p", "7", "-C", "1"]).unwrap();
        assert_eq!(said, "next_prio < 0 && (pid == 7) && (CPU == 1)");
    }
}
