// SPDX-License-Identifier: GPL-2.0

//! The files of the tables of one trace, until they are complete.

use crate::column::Column;
use crate::path;
use crate::row::Row;
use crate::table::{Place, Table};
use crate::{Error, Result, TableId};
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs::{self, DirBuilder};
use std::io;
use std::iter;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use tempfile::{Builder, TempDir};

/// Maximum memory for rows of all tables, in bytes. As much again is being written at most.
const MEMORY: usize = 32 << 20;

/// Files that are being written, in a hidden folder inside their destination. The drop removes them.
pub struct Files {
    to: PathBuf,
    temporary: TempDir,
    _made: Option<Made>,
    place: Place,
    tables: Vec<Table>,
    /// Memory for rows of all tables, in bytes, and its limit.
    held: usize,
    memory: usize,
    /// The table whose rows are being written.
    writing: Option<usize>,
}

impl Files {
    /// Creates tables in `to`, with rows of this host. Creates `to` if it does not exist. The names of the
    /// files contain `label`.
    pub fn new(to: &Path, host: &str, label: &str) -> Result<Self> {
        let made = (!to.exists()).then(|| Made(to.to_owned()));
        make(to)?;
        let temporary = Builder::new().prefix(".export-").tempdir_in(to);
        let temporary = temporary.map_err(Error::write(to))?;
        Ok(Self {
            to: to.to_owned(),
            place: Place {
                dir: temporary.path().to_owned(),
                host: host.to_owned(),
                label: label.to_owned(),
            },
            temporary,
            _made: made,
            tables: Vec::new(),
            held: 0,
            memory: MEMORY,
            writing: None,
        })
    }

    /// Adds a table. Several tables may have the same name with different columns.
    pub fn table(&mut self, name: impl Into<String>, columns: &[Column]) -> TableId {
        let id = self.tables.len();
        self.tables.push(Table::new(name.into(), id, columns));
        TableId(id)
    }

    /// Adds a row with a time in nanoseconds since the epoch.
    pub fn row(&mut self, TableId(id): TableId, ns: i64) -> Result<Row<'_>> {
        if self.held >= self.memory {
            self.flush_largest()?;
        }
        let table = &mut self.tables[id];
        let held = table.held();
        self.held = self.held + held - std::mem::replace(&mut table.counted, held);
        table.row(path::day(ns), &self.place)
    }

    /// Makes sure that the table has a file for the day of this time, even if it stays empty.
    pub fn open(&mut self, TableId(id): TableId, ns: i64) -> Result<()> {
        self.tables[id].open(path::day(ns), &self.place)
    }

    /// Writes the rows of the table that uses the most memory.
    fn flush_largest(&mut self) -> Result<()> {
        if let Some(writing) = self.writing.take() {
            self.tables[writing].wait()?;
        }
        let tables = self.tables.iter_mut().enumerate();
        if let Some((id, table)) = tables.max_by_key(|(_, table)| table.counted) {
            table.flush()?;
            self.held -= std::mem::take(&mut table.counted);
            self.writing = Some(id);
        }
        Ok(())
    }

    /// Completes the files of all tables, on all CPUs.
    fn finish_tables(&mut self) -> Result<()> {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let threads = cpus.min(self.tables.len());
        let tables = Mutex::new(self.tables.iter_mut());
        let next = || tables.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || iter::from_fn(next).try_for_each(Table::finish);
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).filter_map(start).collect();
            let own = work();
            let others = others.into_iter().map(|thread| {
                let what = "a thread that writes tables has ended";
                let ended = |_| Err(Error::write(&self.to)(io::Error::other(what)));
                thread.join().unwrap_or_else(ended)
            });
            others.fold(own, Result::and)
        })
    }

    /// Completes the tables: their files get their final names. If there are files of this host and label, they
    /// are replaced if `replaces` is set; otherwise the call fails. An error leaves everything unchanged.
    /// Returns the number of files.
    pub fn finish(mut self, replaces: bool) -> Result<usize> {
        self.finish_tables()?;
        let old = self.there()?;
        match old.first() {
            Some(path) if !replaces => return Err(Error::Exists(path.clone())),
            _ => {}
        }
        // The old files are removed together with the hidden folder.
        let aside = |(number, path)| (path, self.place.dir.join(format!("old-{number}")));
        let aside = old.into_iter().enumerate().map(aside);
        let new = self.tables.iter().flat_map(|table| &table.files);
        let new: Vec<_> = new
            .map(|(dir, name)| (self.place.dir.join(name), self.to.join(dir).join(name)))
            .collect();
        let files = new.len();
        let mut done: Vec<(PathBuf, PathBuf)> = Vec::new();
        for (from, to) in aside.chain(new) {
            if let Err(error) = rename(&from, &to) {
                for (from, to) in done.iter().rev() {
                    let _ = rename(to, from);
                }
                done.push((from, to.clone()));
                for (_, to) in &done {
                    remove_empty(to, &self.to);
                }
                return Err(Error::write(&to)(error));
            }
            done.push((from, to));
        }
        let removed = self.temporary.close();
        removed.map_err(Error::write(&self.to))?;
        Ok(files)
    }

    /// Existing files of this host and label.
    pub fn there(&self) -> Result<Vec<PathBuf>> {
        let begin = format!("part-{}-", self.place.label);
        let mut found = Vec::new();
        for table in folders(&self.to)? {
            for day in folders(&table.join(path::host(&self.place.host)))? {
                for file in fs::read_dir(&day).map_err(Error::write(&day))? {
                    let file = file.map_err(Error::write(&day))?;
                    if file.file_name().to_string_lossy().starts_with(&begin) {
                        found.push(file.path());
                    }
                }
            }
        }
        Ok(found)
    }
}

/// The folders in a folder, except hidden ones. Empty if the folder does not exist.
fn folders(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::write(dir))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::write(dir))?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// A folder that was created here. It is removed if it is empty at the end.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes the empty folders between `path` and `top`.
fn remove_empty(path: &Path, top: &Path) {
    let dirs = path.ancestors().skip(1).take_while(|dir| *dir != top);
    for dir in dirs {
        let _ = fs::remove_dir(dir);
    }
}

/// Creates a folder and its parents. Only their owner has access, as for traces.
fn make(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(Error::write(dir))
}

/// Gives a file its final name, which must not exist yet.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(dir) = to.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(test)]
mod tests;
