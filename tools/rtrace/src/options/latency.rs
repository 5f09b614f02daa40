// SPDX-License-Identifier: GPL-2.0

//! What `rtrace latency` works with.

use super::record::Conditions;
use super::{access, rows, trace, Action};
use crate::args::LatencyArgs;
use crate::run::condition::Condition;
use crate::session::channels::{ChannelSetup, Filter};
use crate::session::setup::Setup;
use control::{BufferSize, Latency as Measured, Mode, FIRST_CHANNEL};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use store::OutputOptions;
use terminal::date;

/// What is recorded of what the CPUs did meanwhile.
const EVENTS: [&str; 6] = [
    "sched_switch",
    "sched_waking",
    "irq_handler_entry",
    "irq_handler_exit",
    "irq_softirq_entry",
    "irq_softirq_exit",
];

/// The channel of timers that came late: their events have the stack of what they interrupted.
pub const TIMERS: &str = "timers";

/// How often the processor is sampled in an NMI, per second and CPU, if it can be: some times in a millisecond.
const SAMPLE_FREQUENCY: u32 = 5000;

/// Latencies to measure.
pub struct Latency {
    /// What is measured.
    pub measured: Measured,
    /// Whether lazy requests count.
    pub lazy: bool,
    /// How often timers fire.
    pub period: Option<Duration>,
    /// What to record.
    pub setup: Setup,
    /// When to look at it.
    pub conditions: Conditions,
    /// The processes whose waits are meant; all, if it is empty.
    pub pids: Vec<u32>,
    /// Which waits are meant, as a filter of the event; all, if there is none.
    pub filter: Option<String>,
    /// How long a wait must be; none: longer than any before.
    pub threshold: Option<Duration>,
    /// Where traces are kept, if they are.
    pub dir: Option<PathBuf>,
    /// How they are written.
    pub output_options: OutputOptions,
    /// Rows of what a CPU did.
    pub rows: usize,
    /// The command to run, if any.
    pub command: Option<(OsString, Vec<OsString>)>,
}

/// From the command line.
pub(super) fn latency(args: LatencyArgs) -> Result<Action, clap::Error> {
    let rows = rows(args.rows);
    let measured = match (args.preempt, args.timer) {
        (true, _) => Measured::Preempt,
        (_, true) => Measured::Timer,
        _ => Measured::Wakeup,
    };
    if let Some(dir) = args.input {
        return Ok(Action::LatencyOf {
            dir: trace(dir)?,
            measured,
            rows: (!args.json).then_some(rows),
        });
    }
    let filter = filter(&args, measured);
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
    let default = || format!("rtrace-{}", date::now()).into();
    let mut command = args.command.into_iter();
    let mut setup = Setup {
        channels,
        sample_frequency: args.timer.then(|| SAMPLE_FREQUENCY.into()),
        ..Setup::default()
    };
    setup.fill(Some(Mode::Overwrite), Some(size));
    Ok(Action::Latency(Box::new(Latency {
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
        pids: args.pids,
        dir: args.output.or_else(|| args.threshold.map(|_| default())),
        threshold: args.threshold,
        output_options: OutputOptions {
            access: access(&args.access),
            ..OutputOptions::default()
        },
        rows,
        command: command.next().map(|program| (program, command.collect())),
    })))
}

/// Which delays were asked for.
fn filter(args: &LatencyArgs, measured: Measured) -> Option<String> {
    let any = |parts: Vec<String>| format!("({})", parts.join(" || "));
    let pids = args.pids.iter().map(|pid| format!("pid == {pid}"));
    let cpus = args.cpus.iter().flat_map(|cpus| cpus.iter());
    // Where it is, and who has to wait for it, or is interrupted.
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
        // As the event has it: priorities of real time are below 0.
        args.rt.then(|| format!("{prio} < 0")),
        (!args.pids.is_empty()).then(|| any(pids.collect())),
        args.cpus.is_some().then(|| any(cpus.collect())),
    ];
    let all: Vec<_> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" && "))
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use crate::options::{from_cli, Action};

    fn filter(words: &[&str]) -> Option<String> {
        let words = ["rtrace", "latency"].iter().chain(words);
        let (_, action) = from_cli(Cli::from_words(words).unwrap()).unwrap();
        match action {
            Action::Latency(options) => options.filter,
            _ => panic!("something else"),
        }
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
