// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`, as typed.

use super::SizeArgs;
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use record::session::values::pattern;

/// List events, contexts, kernel functions, or probes of programs that can be recorded
///
/// rtrace has no probe for events marked [perf]: it records them through perf, at several times the cost.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show names in ftrace and perf if they differ, and fields
    #[arg(short, long)]
    pub verbose: bool,

    /// List the names for `record --context`
    #[arg(long, conflicts_with_all = ["verbose", "patterns", "functions", "usdt"])]
    pub contexts: bool,

    /// List the events of modules that are not loaded
    ///
    /// They can be chosen before the module is loaded: by their names, or by a pattern that names the subsystem.
    #[arg(long, conflicts_with_all = ["verbose", "contexts", "functions", "usdt"])]
    pub awaited: bool,

    /// List the kernel functions for `record -k` that match PATTERN
    ///
    /// PATTERN is a shell pattern. `tracepoint:PATTERN` lists tracepoints.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["verbose", "patterns", "usdt"])]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub functions: Option<String>,

    /// List the probes (USDT) in a program's code, for `record -u`
    ///
    /// WHERE is a file, the name of a program or library that runs or is in $PATH, or a PID: the probes of the program
    /// and of its libraries. Each location of a probe is a line, with the address in the file, the type and place of
    /// each argument, and the address of the semaphore, if the probe has one.
    #[arg(short = 'u', long = "usdt", value_name = "WHERE", value_hint = clap::ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["verbose", "patterns"])]
    pub usdt: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub size: SizeArgs,

    /// Only events that match one of these, as for `record -e`
    #[arg(value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub patterns: Vec<String>,
}
