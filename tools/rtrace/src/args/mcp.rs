// SPDX-License-Identifier: GPL-2.0

//! `rtrace mcp`, as typed.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use system::quantity;

/// Serve answers about traces to a program, such as one with a language model
///
/// The program speaks the Model Context Protocol over standard input and output. The tools are list, report, why, query,
/// diff and page; with --allow-record also record. They read and write only below DIR, and run no command unless
/// --allow-commands is given. The end of standard input ends the server, after the answers to all requests. A signal
/// ends it at once; a recording then ends as with Ctrl-C.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace mcp --dir /var/lib/traces
  rtrace mcp --dir traces --allow-record --most-time 10s --most-bytes 64M")]
pub struct McpArgs {
    /// Directory of the traces. The tools read and write files only below it
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,

    /// Offer the tool record, which records the whole machine or a process
    #[arg(long)]
    pub allow_record: bool,

    /// Let record run commands, with all rights of this user
    #[arg(long, requires = "allow_record")]
    pub allow_commands: bool,

    /// Longest recording, as 10s
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = quantity::duration)]
    pub most_time: Duration,

    /// Size of a trace at which its recording ends, with K, M or G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = quantity::size)]
    pub most_bytes: u64,
}
