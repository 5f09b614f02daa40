// SPDX-License-Identifier: GPL-2.0

//! View that makes a table of each second, or of another period.

use super::table::TopTable;
use super::tally::Tally;
use crate::args::Column;
use analysis::engine::Engine;
use analysis::loss::Account;
use analysis::{Analysis, Answer, Catalogue};
use consumer::viewer::View;
use ctf::{Item, Metadata};
use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{mpsc, Arc};
use std::time::Duration;
use system::{Error, Result};

/// Maker of tables.
pub struct Seconds {
    delay: Duration,
    sort: Column,
    /// Losses of the trace. Empty once the trace is described.
    account: Account,
    described: Option<Described>,
    ready: Vec<TopTable>,
}

/// State that exists once the trace is described.
struct Described {
    engine: Engine<Tally>,
    /// Period of a table, in clock ticks.
    ticks: u64,
    /// Whether no event was read yet, and no table was requested.
    is_beginning: bool,
}

impl Seconds {
    /// A maker of a table each `delay`, sorted by a column. `account` has the known losses of the trace.
    pub fn new(delay: Duration, sort: Column, account: Account) -> Self {
        Self {
            delay,
            sort,
            account,
            described: None,
            ready: Vec::new(),
        }
    }

    /// Takes the tables that are ready.
    pub fn tables(&mut self) -> Vec<TopTable> {
        std::mem::take(&mut self.ready)
    }

    /// Ends the trace. Returns the table of the time after the last table, if the trace is described, and the account
    /// of losses.
    pub fn rest(self) -> (Option<Box<dyn Answer>>, Account) {
        let Some(Described { engine, .. }) = self.described else {
            return (None, self.account);
        };
        let end = engine.extent().end();
        let ended = engine.end(end);
        let mut tallies = ended.analyses.into_iter();
        let answer = tallies
            .next()
            .map(|tally| tally.answer(ended.extent.ticks()));
        (answer, ended.account)
    }

    /// Makes the tables up to `time`. All events before `time` have been read.
    fn reach(&mut self, time: u64) {
        let Some(Described {
            engine,
            ticks,
            is_beginning,
        }) = &mut self.described
        else {
            return;
        };
        *is_beginning = false;
        let (schedule, tallies) = engine.parts();
        for tally in tallies {
            let since = |tally: &Tally| tally.since().checked_add(*ticks);
            let Some(next) = since(tally).filter(|at| *at <= time) else {
                continue;
            };
            self.ready.push(tally.take(next, schedule));
            // The following periods had no events. They become one table, if a thread ran.
            let delays = (time - next) / *ticks;
            if delays > 0 {
                let table = tally.take(next + delays * *ticks, schedule);
                if delays == 1 || !table.rows.is_empty() {
                    self.ready.push(table);
                }
            }
        }
    }
}

impl View for Seconds {
    fn describe(&mut self, metadata: &Metadata) -> Result<()> {
        if self.described.is_some() {
            return Ok(());
        }
        let catalogue = Catalogue::new(metadata);
        let tally = Tally::new(&catalogue, self.sort);
        let tally = tally
            .map_err(io::Error::other)
            .map_err(Error::system("cannot make a table of this trace"))?;
        let frequency = u128::from(metadata.clock.frequency);
        let ticks = self.delay.as_nanos() * frequency / 1_000_000_000;
        self.described = Some(Described {
            engine: Engine::new(
                &catalogue,
                std::mem::take(&mut self.account),
                vec![Box::new(tally)],
            ),
            ticks: u64::try_from(ticks).unwrap_or(u64::MAX).max(1),
            is_beginning: true,
        });
        Ok(())
    }

    fn item(&mut self, stream: usize, item: &Item<'_>) -> Result<()> {
        if let Item::Event(event) = item {
            self.reach(event.timestamp);
        }
        let Some(Described {
            engine,
            is_beginning,
            ..
        }) = &mut self.described
        else {
            return Ok(());
        };
        engine.item(stream, item);
        // The first packets of all streams are read before any event.
        if *is_beginning {
            let begin = engine.extent().begin();
            for tally in engine.parts().1 {
                tally.begin(begin);
            }
        }
        Ok(())
    }

    fn pause(&mut self, time: u64) -> Result<()> {
        self.reach(time);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Sending end of a channel for tables. It makes the tables.
pub struct Sender {
    seconds: Seconds,
    sender: mpsc::Sender<TopTable>,
    ready: Arc<OwnedFd>,
}

/// Receiving end. It shows the tables.
pub struct Receiver {
    receiver: mpsc::Receiver<TopTable>,
    ready: Arc<OwnedFd>,
}

/// Creates a channel: one thread makes the tables, and another one shows them, because that thread waits for other
/// events, too.
pub fn channel(seconds: Seconds) -> Result<(Sender, Receiver)> {
    let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let ready = Arc::new(ready.map_err(Error::system("cannot make an eventfd"))?);
    let (sender, receiver) = mpsc::channel();
    let sender = Sender {
        seconds,
        sender,
        ready: Arc::clone(&ready),
    };
    Ok((sender, Receiver { receiver, ready }))
}

impl View for Sender {
    fn describe(&mut self, metadata: &Metadata) -> Result<()> {
        self.seconds.describe(metadata)
    }

    fn item(&mut self, stream: usize, item: &Item<'_>) -> Result<()> {
        self.seconds.item(stream, item)
    }

    fn pause(&mut self, time: u64) -> Result<()> {
        self.seconds.pause(time)?;
        for table in self.seconds.tables() {
            // If the send fails, the receiver is gone and needs no table.
            let _ = self.sender.send(table);
            let _ = rustix::io::write(&*self.ready, &1_u64.to_ne_bytes());
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.seconds.end()
    }
}

impl Receiver {
    /// The tables that have come since the last call.
    pub fn tables(&self) -> Vec<TopTable> {
        // The read fails if there are no tables.
        let _ = rustix::io::read(&*self.ready, &mut [0; 8]);
        self.receiver.try_iter().collect()
    }
}

impl AsFd for Receiver {
    /// Readable when tables are ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
