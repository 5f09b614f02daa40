// SPDX-License-Identifier: GPL-2.0

//! `rtrace top`: prints the work of threads, second by second.

mod batch;
mod page;
mod screen;
mod seconds;
mod table;
mod tally;

pub use table::Column;

use crate::args::TopArgs;
use crate::options::{self, Top};
use crate::place::Place;
use crate::run::live;
use analysis::loss::Account;
use analysis::pass::each;
use analysis::text::totals;
use anyhow::Context;
use batch::Batch;
use consumer::viewer::View;
use screen::Screen;
use seconds::{channel, Seconds};
use std::io::{stdin, stdout, IsTerminal};
use std::ops::ControlFlow;
use std::path::Path;
use store::Trace;
use terminal::say;

/// Shows tables until their number is reached, or the user ends it.
pub fn top(place: &Place, args: TopArgs) -> anyhow::Result<()> {
    let options = &options::top(args)?;
    if let Some(dir) = &options.input {
        return recorded(dir, options);
    }
    let seconds = Seconds::new(options.delay, options.sort, Account::default());
    let (sender, receiver) = channel(seconds)?;
    live::look(place, &options.setup, &Vec::new, sender, |recording| {
        if options.batch || !stdout().is_terminal() || !stdin().is_terminal() {
            Batch::new(options).run(recording, &receiver)
        } else {
            Screen::open(options)?.run(recording, &receiver)
        }
    })
}

/// Prints the tables of the trace in a directory.
fn recorded(dir: &Path, options: &Top) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    let mut seconds = Seconds::new(options.delay, options.sort, Account::of(&trace));
    let mut batch = Batch::new(options);
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
