// SPDX-License-Identifier: GPL-2.0

//! `rtrace top`: prints the work of threads, second by second.

mod batch;
mod page;
mod screen;
mod seconds;
mod table;
mod tally;

use crate::args::{trace, TopArgs};
use analysis::frame::totals;
use analysis::loss::Account;
use analysis::pass::each;
use anyhow::Context;
use batch::Batch;
use consumer::viewer::View;
use control::{BufferSize, Mode, FIRST_CHANNEL};
use record::place::Place;
use record::run::live;
use record::session::channels::ChannelSetup;
use record::session::setup::Setup;
use screen::Screen;
use seconds::{channel, Seconds};
use std::io::{stdin, stdout, IsTerminal};
use std::ops::ControlFlow;
use std::path::Path;
use store::Trace;
pub use table::TopTable;
use terminal::say;

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

/// Shows tables until their number is reached, or the user ends it.
pub fn top(place: &Place, mut args: TopArgs) -> anyhow::Result<()> {
    if args.once {
        args.count = Some(1);
    }
    if let Some(dir) = args.input.take() {
        return recorded(&trace(dir)?, &args);
    }
    let seconds = Seconds::new(args.interval, args.sort, Account::default());
    let (sender, receiver) = channel(seconds)?;
    live::look(place, &setup(), &Vec::new, &[], sender, |recording| {
        let is_batch = args.batch || args.once || args.json;
        if is_batch || !stdout().is_terminal() || !stdin().is_terminal() {
            Batch::new(&args).run(recording, &receiver)
        } else {
            Screen::open(&args)?.run(recording, &receiver)
        }
    })
}

/// Settings of the session.
fn setup() -> Setup {
    let events = EVENTS.map(|event| event.to_owned().into());
    Setup {
        channels: vec![ChannelSetup {
            events: Some(events.into()),
            mode: Some(Mode::Discard),
            size: Some(BufferSize::DEFAULT),
            ..ChannelSetup::named(FIRST_CHANNEL)
        }],
        ..Setup::default()
    }
}

/// Prints the tables of the trace in a directory.
fn recorded(dir: &Path, args: &TopArgs) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let mut seconds = Seconds::new(args.interval, args.sort, Account::of(&trace));
    let mut batch = Batch::new(args);
    seconds
        .describe(&trace.metadata)
        .with_context(|| dir.display().to_string())?;
    let is_all_read = each(
        &trace,
        |_| Ok::<_, anyhow::Error>(()),
        |stream, item| {
            seconds.item(stream, item)?;
            for table in seconds.tables() {
                if !batch.print(&table)? {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if !is_all_read {
        return Ok(());
    }
    let (table, account) = seconds.rest();
    if let Some(table) = table {
        batch.print(&*table)?;
    }
    let losses = account.total();
    account.warnings().iter().for_each(say);
    say(totals(&losses));
    Ok(losses.verdict()?)
}
