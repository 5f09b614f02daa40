// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace top`, converted from the arguments as typed.

use super::trace;
use crate::args::TopArgs;
use crate::commands::top::Column;
use crate::session::channels::ChannelSetup;
use crate::session::setup::Setup;
use control::{BufferSize, Mode, FIRST_CHANNEL};
use std::path::PathBuf;
use std::time::Duration;

/// Events that the tables need.
const EVENTS: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
    "task_rename",
    "syscalls",
];

/// Choice of the tables.
pub struct Top {
    /// The directory of a recorded trace. Without it, the tables are of the running system.
    pub input: Option<PathBuf>,
    /// Settings of the session, without `input`.
    pub setup: Setup,
    /// Time from table to table.
    pub delay: Duration,
    /// Number of tables after which the program ends.
    pub count: Option<u64>,
    /// Whether tables are printed one after the other, even on a terminal.
    pub batch: bool,
    /// The column to sort by.
    pub sort: Column,
    /// Rows of a table that is printed.
    pub rows: usize,
    /// Whether the tables are printed as JSON.
    pub json: bool,
}

/// Converts the arguments.
pub fn top(args: TopArgs) -> Result<Top, clap::Error> {
    let events = EVENTS.map(|event| event.to_owned().into());
    let channel = ChannelSetup {
        events: Some(events.into()),
        mode: Some(Mode::Discard),
        size: Some(BufferSize::DEFAULT),
        ..ChannelSetup::named(FIRST_CHANNEL)
    };
    Ok(Top {
        batch: args.batch || args.once || args.json || args.input.is_some(),
        count: if args.once { Some(1) } else { args.count },
        rows: args.rows,
        input: args.input.map(trace).transpose()?,
        setup: Setup {
            channels: vec![channel],
            ..Setup::default()
        },
        delay: args.delay,
        sort: args.sort,
        json: args.json,
    })
}
