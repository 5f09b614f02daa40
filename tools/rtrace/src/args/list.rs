// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`, as typed.

use super::setup::pattern;
use crate::complete;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

/// List the events that can be recorded, the contexts, or the functions of the kernel
///
/// Behind events marked [perf] rtrace has no probe: it takes them from perf, which costs several times as
/// much.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Also their names in ftrace and perf, where they are others, and their fields
    #[arg(short, long)]
    pub verbose: bool,

    /// List what can be recorded beside events, the names for `record --context`
    #[arg(long, conflicts_with_all = ["verbose", "patterns", "functions"])]
    pub contexts: bool,

    /// List the events of modules that are not loaded, which can be chosen before they are: by their names, or by a
    /// pattern that names the subsystem
    #[arg(long, conflicts_with_all = ["verbose", "contexts", "functions"])]
    pub awaited: bool,

    /// List the functions of the kernel, for `record -k`, whose names match this one: a shell pattern; its
    /// tracepoints behind `tracepoint:`
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["verbose", "patterns"])]
    #[arg(add = ArgValueCompleter::new(complete::functions))]
    pub functions: Option<String>,

    /// Print one JSON array
    #[arg(long)]
    pub json: bool,

    /// Only those that match one of these, as for `record -e`
    #[arg(value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    #[arg(add = ArgValueCompleter::new(complete::events))]
    pub patterns: Vec<String>,
}
