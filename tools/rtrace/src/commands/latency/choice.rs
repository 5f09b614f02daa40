// SPDX-License-Identifier: GPL-2.0

//! Choice of the delays, and settings of the session that measures them.

use crate::args::LatencyArgs;
use control::{BufferSize, Mode, FIRST_CHANNEL};
use ctf::LatencyKind;
use record::session::channels::{ChannelSetup, Filter};
use record::session::setup::Setup;

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

/// Settings of the session, whose latency event has the filter `filter`.
pub fn setup(args: &LatencyArgs, filter: Option<&String>) -> Setup {
    let event = args.measured().pattern();
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
        events.push(event.to_owned().into());
        channel.filters = Vec::from_iter(filter.map(|filter| Filter {
            patterns: vec![event.to_owned()],
            expression: filter.clone().into(),
        }));
    }
    let mut setup = Setup {
        channels,
        sample_frequency: args.timer.then(|| SAMPLE_FREQUENCY.into()),
        ..Setup::default()
    };
    let size = args.buffer.unwrap_or(BufferSize::DEFAULT);
    setup.fill(Some(Mode::Overwrite), Some(size));
    setup
}

/// Filter for the delays that the options choose.
pub fn filter(args: &LatencyArgs) -> Option<String> {
    let any = |parts: Vec<String>| format!("({})", parts.join(" || "));
    let pids = args.pids.iter().map(|pid| format!("pid == {pid}"));
    let cpus = args.cpus.iter().flat_map(|cpus| cpus.iter());
    // The fields with the CPU of the delay and with the priority of the thread that waits or is interrupted.
    let (cpu, prio) = match args.measured() {
        LatencyKind::Wakeup => ("target_cpu", "prio"),
        LatencyKind::Preempt => ("CPU", "next_prio"),
        LatencyKind::Timer => ("CPU", "prio"),
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
pub fn chosen(args: &LatencyArgs) -> String {
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
    use crate::args::{Cli, Command, LatencyArgs};

    fn args(words: &[&str]) -> LatencyArgs {
        let words = ["rtrace", "latency"].iter().chain(words);
        match Cli::from_words(words).unwrap().command {
            Command::Latency(args) => args,
            _ => panic!("something else"),
        }
    }

    #[test]
    fn the_choice_is_named() {
        let chosen = |words: &[&str]| super::chosen(&args(words));
        assert_eq!(chosen(&[]), "");
        assert_eq!(chosen(&["-p", "7"]), "process 7");
        let all = chosen(&["--rt", "-p", "7,8", "-C", "0,2-3"]);
        assert_eq!(all, "real-time threads, process 7,8, CPU 0,2-3");
    }

    #[test]
    fn what_is_asked_for_is_a_filter() {
        let filter = |words: &[&str]| super::filter(&args(words));
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
