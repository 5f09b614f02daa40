// SPDX-License-Identifier: GPL-2.0

//! `rtrace export aux`: the chunks of AUX areas, in a file for each area, and an index of them.

use super::csv_row::CsvRow;
use super::folder::NewFolder;
use super::Interruption;
use analysis::aux::{self, Chunk};
use analysis::loss::{Content, Damages, Losses};
use analysis::pass::each;
use analysis::Catalogue;
use anyhow::Context;
use ctf::{Areas, Event, Item};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use store::Trace;
use terminal::{progress, say, tell};

/// The index.
const INDEX: &str = "index.csv";

/// The file of an area.
struct AreaFile {
    name: String,
    out: BufWriter<File>,
    /// Bytes in it.
    len: u64,
}

/// Folder that an export of AUX areas writes.
struct Folder<'a> {
    to: &'a Path,
    trace: &'a Trace,
    areas: Areas,
    index: BufWriter<File>,
    row: CsvRow,
    /// Files by stream class and CPU.
    files: BTreeMap<(u32, u32), AreaFile>,
    chunks: u64,
    bytes: u64,
    missing: u64,
    damages: Damages,
}

/// Creates `to`, which must not exist, with the chunks of the trace in `from`.
pub fn export(from: &Path, to: &Path) -> anyhow::Result<()> {
    let trace = Trace::open(from)?;
    let catalogue = Catalogue::new(&trace.metadata);
    aux::events(&catalogue, "`export aux`").with_context(|| from.display().to_string())?;
    let areas = store::areas(from, trace.metadata.uuid)?;
    let mut damages = Damages::of(&trace);
    for damage in &areas.damages {
        damages.add(damage.clone());
    }
    let mut interruption = Interruption::catch()?;
    let new = NewFolder::new(to)?;
    let mut folder = Folder {
        to: new.path(),
        damages,
        trace: &trace,
        areas,
        index: create(&new.path().join(INDEX))?,
        row: CsvRow::default(),
        files: BTreeMap::new(),
        chunks: 0,
        bytes: 0,
        missing: 0,
    };
    let bar = progress::reading(trace.bytes)?;
    let read = folder.read(|bytes| {
        bar.inc(bytes);
        interruption.check()
    });
    bar.finish_and_clear();
    read?;
    let losses = Losses::new(
        &Content::default(),
        None,
        std::mem::take(&mut folder.damages),
    );
    losses.warnings().iter().for_each(say);
    let Folder {
        chunks,
        bytes,
        missing,
        ..
    } = folder;
    new.finish()?;
    tell(format_args!(
        "{chunks} chunks, {bytes} bytes in {}",
        to.display()
    ));
    if missing > 0 {
        say(format_args!(
            "{missing} chunks are missing or incomplete: they were overwritten, or not written"
        ));
    }
    Ok(losses.verdict()?)
}

impl Folder<'_> {
    fn read(&mut self, mut progress: impl FnMut(u64) -> io::Result<()>) -> anyhow::Result<()> {
        writeln!(
            self.index,
            "time,event,cpu,file,at,size,lost,flags,position"
        )
        .with_context(|| self.cannot(INDEX))?;
        let progress = |bytes| Ok::<_, anyhow::Error>(progress(bytes)?);
        each(self.trace, progress, |_, item| {
            match item {
                Item::Event(event) => {
                    if let Some(chunk) = Chunk::of(event) {
                        self.chunk(event, &chunk)?;
                    }
                }
                Item::Damaged { damage, .. } => self.damages.add((*damage).clone()),
                Item::Packet(_) | Item::Whole { .. } | Item::End { .. } => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for file in self.files.values_mut() {
            let flushed = file.out.flush();
            flushed
                .with_context(|| format!("cannot write {}", self.to.join(&file.name).display()))?;
        }
        self.index.flush().with_context(|| self.cannot(INDEX))
    }

    fn chunk(&mut self, event: &Event<'_>, chunk: &Chunk) -> anyhow::Result<()> {
        let class = event.layout.stream_id;
        let area = self.areas.of(class, chunk.cpu);
        let bytes = match area {
            Some(area) => area.read(chunk.position, chunk.size)?,
            None => None,
        };
        let name = self.name(class, chunk.cpu);
        let file = match self.files.entry((class, chunk.cpu)) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(AreaFile {
                out: create(&self.to.join(&name))?,
                name,
                len: 0,
            }),
        };
        let mut at = String::new();
        if let Some(bytes) = &bytes {
            at = file.len.to_string();
            let written = file.out.write_all(bytes);
            written
                .with_context(|| format!("cannot write {}", self.to.join(&file.name).display()))?;
            file.len += chunk.size;
        }
        let ns = self.trace.metadata.clock.nanoseconds(event.timestamp);
        let row = add_row(
            &mut self.row,
            ns,
            &event.layout.name,
            chunk,
            &file.name,
            &at,
        );
        row.map_err(io::Error::other)
            .and_then(|()| self.row.end(&mut self.index))
            .with_context(|| self.cannot(INDEX))?;
        self.chunks += 1;
        self.missing += u64::from(bytes.is_none());
        self.bytes += bytes.map_or(0, |bytes| bytes.len() as u64);
        Ok(())
    }

    /// Returns the file name of an area: the name that its CPU's stream of events has.
    fn name(&self, class: u32, cpu: u32) -> String {
        match self.areas.of(class, cpu) {
            Some(area) => format!("{}_cpu{cpu}", area.channel()),
            None => format!("stream{class}_cpu{cpu}"),
        }
    }

    fn cannot(&self, name: &str) -> String {
        format!("cannot write {}", self.to.join(name).display())
    }
}

/// Adds the row of a chunk at offset `at` of `file`.
fn add_row(
    row: &mut CsvRow,
    ns: u64,
    event: &str,
    chunk: &Chunk,
    file: &str,
    at: &str,
) -> fmt::Result {
    let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    row.cell(format_args!("{s}.{ns:09}"))?;
    row.cell(event)?;
    row.cell(chunk.cpu)?;
    row.cell(file)?;
    row.cell(at)?;
    row.cell(chunk.size)?;
    row.cell(chunk.lost)?;
    row.cell(format_args!("{:#x}", chunk.flags))?;
    row.cell(chunk.position)
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let file = made.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}
