// SPDX-License-Identifier: GPL-2.0

//! `rtrace export parquet`: a table for each type of event, and tables that rtrace makes from several events.

mod calls;
mod columns;
mod events;
mod files;
mod interrupts;
mod losses;
mod made;
mod paths;
mod samples;
mod threads;
mod uring;

use super::choice::Choice;
use super::format::{Format, Loss, Now};
use super::pass::{self, Exported};
use super::Interruption;
use analysis::head::Extent;
use analysis::interrupts::Interrupt;
use analysis::pass::each;
use analysis::schedule::{Schedule, Span};
use analysis::{Catalogue, EventKey};
use anyhow::{bail, Context};
use calls::Calls;
use ctf::{Clock, Event, Item, Metadata};
use events::Events;
use files::FileTable;
use interrupts::InterruptTable;
use losses::LossTable;
use samples::Samples;
use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use store::Trace;
use symbols::Symbols;
use tables::{Folder, Row, Rows, TableId};
use terminal::{progress, say};
use threads::Threads;
use uring::UringTable;

/// An export of tables: its traces, target and choice.
pub struct Tables {
    /// The traces.
    pub dirs: Vec<PathBuf>,
    /// The folder of the tables.
    pub to: PathBuf,
    /// Whether existing files of the same traces are replaced.
    pub force: bool,
    /// Choice of events and times.
    pub choice: Choice,
}

/// Name of the host if the trace has none.
const NAMELESS: &str = "unknown";

/// Exports traces, one after the other. The files of a trace get their names after all of the trace was read.
pub fn export(options: &Tables) -> anyhow::Result<()> {
    let mut interruption = Interruption::catch()?;
    let mut damaged = Ok(());
    for dir in &options.dirs {
        let exported = one(dir, options, &mut interruption);
        let (exported, files) = exported.with_context(|| dir.display().to_string())?;
        super::say_losses(&exported);
        say(format_args!(
            "{} events exported, {} lost: {files} files in {}",
            exported.events,
            exported.losses.lost,
            options.to.display()
        ));
        let verdict = exported.losses.verdict();
        damaged = damaged.and(verdict.with_context(|| dir.display().to_string()));
    }
    damaged
}

/// Returns the host of a trace, as its tables name it.
pub fn host(metadata: &Metadata) -> &str {
    let host = metadata.env.get("hostname").map(String::as_str);
    host.filter(|host| !host.is_empty()).unwrap_or(NAMELESS)
}

/// Announces the tables of a trace, and adds no row.
pub fn announce(dir: &Path, trace: &Trace, rows: Box<dyn Rows>) -> anyhow::Result<()> {
    let chosen = Choice::default().events(&trace.metadata)?;
    Writer::new(dir, trace, &chosen, Folder::program(rows), 0)?;
    Ok(())
}

/// Gives the rows of a trace to `rows`. After each piece, `progress` gets the size of the piece, and may stop
/// the pass.
pub fn read(
    dir: &Path,
    trace: &Trace,
    rows: Box<dyn Rows>,
    progress: impl FnMut(u64) -> io::Result<()>,
) -> anyhow::Result<Exported> {
    let choice = Choice::default();
    let chosen = choice.events(&trace.metadata)?;
    let mut tables = Writer::new(dir, trace, &chosen, Folder::program(rows), 0)?;
    let out = &mut io::sink();
    let exported = pass::read(trace, &choice, chosen, &mut tables, out, progress)?;
    tables.folder.finish(false)?;
    Ok(exported)
}

fn one(
    dir: &Path,
    options: &Tables,
    interruption: &mut Interruption,
) -> anyhow::Result<(Exported, usize)> {
    let trace = Trace::open(dir)?;
    let chosen = options.choice.events(&trace.metadata)?;
    let host = host(&trace.metadata);
    let begin = epoch(&trace.metadata.clock, begin(&trace)?);
    // Chunks of a trace are traces with the same identity.
    let label = format!("{}-{begin}", trace.metadata.uuid);
    let folder = Folder::new(&options.to, host, &label)?;
    if let (Some(path), false) = (folder.there()?.first(), options.force) {
        bail!(
            "the trace was exported before: {} already exists (--force replaces all files of the trace)",
            path.display()
        );
    }
    let mut tables = Writer::new(dir, &trace, &chosen, folder, begin)?;
    let bar = progress::reading(trace.bytes)?;
    let progress = |bytes| {
        bar.inc(bytes);
        interruption.check()
    };
    let exported = pass::read(
        &trace,
        &options.choice,
        chosen,
        &mut tables,
        &mut io::sink(),
        progress,
    );
    bar.finish_and_clear();
    let exported = exported?;
    Ok((exported, tables.folder.finish(options.force)?))
}

/// Returns the begin of a trace, in clock ticks.
fn begin(trace: &Trace) -> system::Result<u64> {
    let mut extent = Extent::default();
    // The first packets of all streams precede every other item.
    let none = |_| Ok::<_, system::Error>(());
    each(trace, none, |_, item| match item {
        Item::Packet(packet) => {
            let header = packet.at.header;
            extent.add(header.timestamp_begin, header.timestamp_end);
            Ok(ControlFlow::Continue(()))
        }
        Item::Damaged { .. } => Ok(ControlFlow::Continue(())),
        Item::Whole { .. } | Item::Event(_) | Item::End { .. } => Ok(ControlFlow::Break(())),
    })?;
    Ok(extent.begin())
}

/// Returns a clock value in nanoseconds since the epoch, up to the year 2262.
fn epoch(clock: &Clock, ticks: u64) -> i64 {
    i64::try_from(clock.since_epoch(ticks)).unwrap_or(i64::MAX)
}

/// Begins a row with its time.
fn row(folder: &mut Folder, table: TableId, ns: i64) -> tables::Result<Row<'_>> {
    let mut row = folder.row(table, ns)?;
    row.integer(ns.div_euclid(1000) as u64);
    row.integer(ns as u64);
    Ok(row)
}

/// Writes the tables of a trace.
struct Writer {
    folder: Folder,
    events: Events,
    threads: Option<Threads>,
    calls: Option<Calls>,
    files: Option<FileTable>,
    uring: Option<UringTable>,
    interrupts: Option<InterruptTable>,
    samples: Option<Samples>,
    losses: Option<LossTable>,
}

impl Writer {
    fn new(
        dir: &Path,
        trace: &Trace,
        chosen: &HashSet<EventKey>,
        mut folder: Folder,
        begin: i64,
    ) -> tables::Result<Self> {
        let metadata = &trace.metadata;
        let catalogue = Catalogue::new(metadata);
        let out = &mut folder;
        Ok(Self {
            events: Events::new(metadata, chosen, out),
            threads: Threads::new(&catalogue, chosen, out, begin)?,
            calls: Calls::new(&catalogue, chosen, out, begin)?,
            files: FileTable::new(&catalogue, chosen, out, begin)?,
            uring: UringTable::new(&catalogue, chosen, out, begin)?,
            interrupts: InterruptTable::new(&catalogue, chosen, out, begin)?,
            samples: Samples::new(
                &catalogue,
                chosen,
                || Symbols::of(dir, metadata),
                out,
                begin,
            )?,
            losses: LossTable::new(metadata.clock, out, begin)?,
            folder,
        })
    }
}

impl Format for Writer {
    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, _out: &mut dyn Write) -> io::Result<()> {
        let folder = &mut self.folder;
        self.events
            .event(event, now, folder)
            .map_err(io::Error::other)?;
        if let Some(calls) = &mut self.calls {
            calls.event(event, now, folder).map_err(io::Error::other)?;
        }
        if let Some(files) = &mut self.files {
            files.event(event, now);
        }
        if let Some(uring) = &mut self.uring {
            uring.event(event, now, folder).map_err(io::Error::other)?;
        }
        if let Some(samples) = &mut self.samples {
            samples
                .event(event, now, folder)
                .map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn loss(&mut self, loss: &Loss, _out: &mut dyn Write) -> io::Result<()> {
        let Some(losses) = &self.losses else {
            return Ok(());
        };
        let added = losses.loss(loss, &mut self.folder);
        added.map_err(io::Error::other)
    }

    fn span(&mut self, span: &Span, schedule: &Schedule, _out: &mut dyn Write) -> io::Result<()> {
        let Some(threads) = &mut self.threads else {
            return Ok(());
        };
        threads
            .span(span, schedule, &mut self.folder)
            .map_err(io::Error::other)
    }

    fn interrupt(
        &mut self,
        interrupt: &Interrupt<'_>,
        schedule: &Schedule,
        _out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(interrupts) = &self.interrupts else {
            return Ok(());
        };
        let added = interrupts.interrupt(interrupt, schedule, &mut self.folder);
        added.map_err(io::Error::other)
    }

    fn lost(&mut self, _ns: u64, schedule: &Schedule, _out: &mut dyn Write) -> io::Result<()> {
        if let Some(files) = &mut self.files {
            files.lose(schedule);
        }
        if let Some(uring) = &mut self.uring {
            let added = uring.lose(schedule, &mut self.folder);
            added.map_err(io::Error::other)?;
        }
        let Some(calls) = &mut self.calls else {
            return Ok(());
        };
        let added = calls.lose(schedule, &mut self.folder);
        added.map_err(io::Error::other)
    }

    fn end(&mut self, _ns: u64, _out: &mut dyn Write) -> io::Result<()> {
        let folder = &mut self.folder;
        if let Some(calls) = &mut self.calls {
            calls.end(folder).map_err(io::Error::other)?;
        }
        if let Some(uring) = self.uring.take() {
            uring.end(folder).map_err(io::Error::other)?;
        }
        let files = self.files.take();
        files.map_or(Ok(()), |files| files.end(folder).map_err(io::Error::other))
    }
}
