// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`, as typed.

use super::SizeArgs;
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use record::session::values::pattern;

/// List events, contexts, or kernel functions that can be recorded
///
/// rtrace has no probe for events marked [perf]: it records them through perf, at several times the cost.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show names in ftrace and perf if they differ, and fields
    #[arg(short, long)]
    pub verbose: bool,

    /// List the names for `record --context`
    #[arg(long, conflicts_with_all = ["verbose", "patterns", "functions"])]
    pub contexts: bool,

    /// List the events of modules that are not loaded
    ///
    /// They can be chosen before the module is loaded: by their names, or by a pattern that names the subsystem.
    #[arg(long, conflicts_with_all = ["verbose", "contexts", "functions"])]
    pub awaited: bool,

    /// List the kernel functions for `record -k` that match PATTERN
    ///
    /// PATTERN is a shell pattern. `tracepoint:PATTERN` lists tracepoints.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["verbose", "patterns"])]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub functions: Option<String>,

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
