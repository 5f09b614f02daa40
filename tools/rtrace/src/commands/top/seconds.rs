// SPDX-License-Identifier: GPL-2.0

//! Who looks at a trace and makes a table of each second, or what else was chosen.

use super::table::{Column, Table};
use super::tally::Tally;
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

/// Makes tables.
pub struct Seconds {
    delay: Duration,
    sort: Column,
    /// Empty once the trace is described.
    account: Account,
    described: Option<Described>,
    ready: Vec<Table>,
}

/// What there is when the trace is described.
struct Described {
    engine: Engine<Tally>,
    /// The time from table to table, in clock ticks.
    ticks: u64,
    /// Whether no event was read yet, and no table was asked for.
    is_beginning: bool,
}

impl Seconds {
    /// A table each `delay`, sorted by a column, of a trace of which this is known.
    pub fn new(delay: Duration, sort: Column, account: Account) -> Self {
        Self {
            delay,
            sort,
            account,
            described: None,
            ready: Vec::new(),
        }
    }

    /// The tables that are ready.
    pub fn tables(&mut self) -> Vec<Table> {
        std::mem::take(&mut self.ready)
    }

    /// The trace is over: the table of what came after the last one, if there is a trace, and the account of it.
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

    /// All that happened before this time has come.
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
            // No event came in the delays after that: they are one table, if anything ran.
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
            .map_err(Error::system("no table can be made"))?;
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
        // The first packets of all streams come before all else.
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

/// The end of a channel for tables that has them made.
pub struct Sender {
    seconds: Seconds,
    sender: mpsc::Sender<Table>,
    ready: Arc<OwnedFd>,
}

/// The other end, which shows them.
pub struct Receiver {
    receiver: mpsc::Receiver<Table>,
    ready: Arc<OwnedFd>,
}

/// Has tables made in one thread and shown in another: who shows them waits for other things, too.
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
            // Nobody waits for it any more, if this fails.
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
    pub fn tables(&self) -> Vec<Table> {
        // Empty, if there are none.
        let _ = rustix::io::read(&*self.ready, &mut [0; 8]);
        self.receiver.try_iter().collect()
    }
}

impl AsFd for Receiver {
    /// Readable when tables have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}
