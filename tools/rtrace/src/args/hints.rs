// SPDX-License-Identifier: GPL-2.0

//! Hints for options of perf, strace and others that rtrace does not have.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::Error;

/// Options by command and name, and the hint for each. All commands of a line have the same hint.
const HINTS: [(&[&str], &str, &str); 9] = [
    (
        &["record", "trace", "profile"],
        "-f",
        "processes that COMMAND starts are always included",
    ),
    (
        &["record", "trace", "profile", "start", "latency"],
        "-m",
        "-b SIZExN sets the size of the buffers, as -b 1Mx4",
    ),
    (
        &["record", "trace", "profile", "start"],
        "-t",
        "-p PID records a process with all its threads",
    ),
    (&["profile"], "-g", "call stacks are always recorded"),
    (
        &["trace", "start", "latency", "top"],
        "-a",
        "all CPUs and processes are the default",
    ),
    (
        &["record", "trace", "profile", "start"],
        "-c",
        "`rtrace report` counts events; `rtrace trace --summary` counts system calls",
    ),
    (
        &["report", "why", "export"],
        "-i",
        "the trace is the argument DIR, without an option",
    ),
    (
        &["latency"],
        "-t",
        "--threshold DURATION reports each wait of at least that duration",
    ),
    (
        &["record", "start"],
        "-z",
        "traces are not compressed; --rotate and --keep bound their size",
    ),
];

/// Replaces the parser's advice where a better one is known. `words` is the command line.
pub fn improve(error: &mut Error, words: &[String]) {
    let command = |name: &str| words.iter().any(|word| word == name);
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => {
            // "To pass it as a value, use `--`" would run the option as a command.
            error.remove(ContextKind::Suggested);
            let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
                return;
            };
            let mut hints = HINTS.iter();
            let known = hints.find(|(commands, known, _)| {
                known == option && commands.iter().any(|name| command(name))
            });
            known.map(|(_, _, hint)| (*hint).to_owned())
        }
        ErrorKind::InvalidSubcommand if command("export") => Some(
            "the format comes first: `rtrace export perfetto DIR`; `rtrace export --help` lists the formats"
                .to_owned(),
        ),
        _ => None,
    };
    if let Some(tip) = tip {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
}
