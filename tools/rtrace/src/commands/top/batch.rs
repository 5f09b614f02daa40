// SPDX-License-Identifier: GPL-2.0

//! Tables printed one after the other.

use super::seconds::Receiver;
use crate::args::TopArgs;
use crate::schema::Schema;
use analysis::Answer;
use anyhow::Context;
use record::run::live::Recording;
use rustix::event::{poll, PollFd, PollFlags};
use terminal::print_on;

/// Printer of tables.
pub struct Batch {
    /// Number of tables left to print.
    left: u64,
    rows: usize,
    is_json: bool,
    is_first: bool,
}

impl Batch {
    /// A printer with the options of the command line.
    pub fn new(args: &TopArgs) -> Self {
        Self {
            left: args.count.unwrap_or(u64::MAX),
            rows: args.rows,
            is_json: args.json,
            is_first: true,
        }
    }

    /// Prints tables until the number of tables is reached or a signal arrives.
    pub fn run(mut self, recording: Recording<'_>, receiver: &Receiver) -> anyhow::Result<()> {
        loop {
            let mut fds = [
                PollFd::new(receiver, PollFlags::IN),
                PollFd::new(&recording.signals, PollFlags::IN),
                PollFd::new(&recording.over, PollFlags::IN),
            ];
            rustix::io::retry_on_intr(|| poll(&mut fds, None))
                .context("cannot wait for the next table")?;
            let is_over = fds[1..].iter().any(|fd| !fd.revents().is_empty());
            for table in receiver.tables() {
                if !self.print(&table)? {
                    return Ok(());
                }
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Prints a table. Returns whether another one is needed.
    pub fn print(&mut self, table: &dyn Answer) -> anyhow::Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let mut text = String::new();
        if self.is_json {
            text = Schema::Top.line(&table.json()?)?;
        } else {
            if !std::mem::take(&mut self.is_first) {
                text.push('\n');
            }
            table.text(&mut text, self.rows)?;
        }
        self.left -= 1;
        Ok(print_on(&text)? && self.left > 0)
    }
}
