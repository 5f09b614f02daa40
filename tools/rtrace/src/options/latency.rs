// SPDX-License-Identifier: GPL-2.0

//! What `rtrace latency` works with.

use super::record::Conditions;
use super::{access, rows, Action};
use crate::args::LatencyArgs;
use crate::channels::{ChannelSetup, Filter};
use crate::condition::Condition;
use crate::date;
use crate::latency::EVENT;
use crate::setup::Setup;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use trace::output::OutputOptions;
use trace::settings::{BufferSize, Mode};
use trace::tracer::FIRST_CHANNEL;

/// What is recorded: how long threads waited, and what the CPUs did meanwhile.
const EVENTS: [&str; 7] = [
    EVENT,
    "sched_switch",
    "sched_waking",
    "irq_handler_entry",
    "irq_handler_exit",
    "irq_softirq_entry",
    "irq_softirq_exit",
];

/// Latencies to measure.
pub struct Latency {
    /// What to record.
    pub setup: Setup,
    /// When to look at it.
    pub conditions: Conditions,
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
pub(super) fn latency(args: LatencyArgs) -> Action {
    let rows = rows(args.rows);
    if let Some(dir) = args.input {
        return Action::LatencyOf { dir, rows };
    }
    let filter = filter(&args);
    let on_event = filter.iter().map(|filter| Filter {
        pattern: EVENT.to_owned(),
        expression: filter.clone().into(),
    });
    let channel = ChannelSetup {
        events: Some(EVENTS.map(|event| event.to_owned().into()).into()),
        mode: Some(Mode::Overwrite),
        size: Some(args.buffer.unwrap_or(BufferSize::DEFAULT)),
        filters: on_event.collect(),
        ..ChannelSetup::named(FIRST_CHANNEL)
    };
    let default = || format!("rtrace-{}", date::now()).into();
    let mut command = args.command.into_iter();
    Action::Latency(Box::new(Latency {
        setup: Setup {
            channels: vec![channel],
            ..Setup::default()
        },
        conditions: Conditions {
            snapshot_on: vec![Condition::Event {
                pattern: EVENT.to_owned(),
                filter: filter.clone(),
            }],
            snapshots: args.count,
            ..Conditions::default()
        },
        filter,
        dir: args.output.or_else(|| args.threshold.map(|_| default())),
        threshold: args.threshold,
        output_options: OutputOptions {
            access: access(&args.access),
            ..OutputOptions::default()
        },
        rows,
        command: command.next().map(|program| (program, command.collect())),
    }))
}

/// Which waits were asked for.
fn filter(args: &LatencyArgs) -> Option<String> {
    let any = |parts: Vec<String>| format!("({})", parts.join(" || "));
    let pids = args.pids.iter().map(|pid| format!("pid == {pid}"));
    let cpus = args.cpus.iter().flat_map(|cpus| cpus.iter());
    let cpus = cpus.map(|(first, last)| match first == last {
        true => format!("target_cpu == {first}"),
        false => format!("target_cpu >= {first} && target_cpu <= {last}"),
    });
    let all = [
        // As the event has it: priorities of real time are below 0.
        args.rt.then(|| "prio < 0".to_owned()),
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
    }
}
