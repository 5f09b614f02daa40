// SPDX-License-Identifier: GPL-2.0

//! The tables of one trace, until they are complete.

use crate::column::Column;
use crate::path;
use crate::row::Row;
use crate::table::{Place, Table};
use crate::{Error, Result};
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempDir};

/// Bytes of rows in memory, in all tables.
const MEMORY: usize = 64 << 20;

/// Tables that are being written, in a hidden folder of the one in which they will be. Dropping this removes
/// them.
pub struct Folder {
    to: PathBuf,
    temporary: TempDir,
    _made: Option<Made>,
    place: Place,
    tables: Vec<Table>,
    /// Bytes in memory, in all tables, and how many there may be.
    held: usize,
    memory: usize,
}

/// Which table of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableId(usize);

impl Folder {
    /// For tables in `to`, which is made where it is missing, with rows of this host. The names of their files
    /// have `label` in them.
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
        })
    }

    /// A new table. Several may have the same name, and other columns.
    pub fn table(&mut self, name: impl Into<String>, columns: &[Column]) -> TableId {
        let id = self.tables.len();
        self.tables.push(Table::new(name.into(), id, columns));
        TableId(id)
    }

    /// A new row, of a time in nanoseconds since the epoch.
    pub fn row(&mut self, TableId(id): TableId, ns: i64) -> Result<Row<'_>> {
        if self.held >= self.memory {
            self.flush_largest()?;
        }
        let table = &mut self.tables[id];
        let held = table.held();
        self.held = self.held + held - std::mem::replace(&mut table.counted, held);
        table.row(path::day(ns), &self.place)
    }

    /// The table has a file for the day of this time, if only an empty one.
    pub fn open(&mut self, TableId(id): TableId, ns: i64) -> Result<()> {
        self.tables[id].open(path::day(ns), &self.place)
    }

    /// Writes what the table has in memory that has most there.
    fn flush_largest(&mut self) -> Result<()> {
        if let Some(table) = self.tables.iter_mut().max_by_key(|table| table.counted) {
            table.flush()?;
            self.held -= std::mem::take(&mut table.counted);
        }
        Ok(())
    }

    /// The tables are complete: their files get their names. Where files of this host and label are there
    /// already, they are replaced by these, or that is an error. On an error all is as it was. Returns how
    /// many files there are.
    pub fn finish(mut self, replaces: bool) -> Result<usize> {
        for table in &mut self.tables {
            table.finish()?;
        }
        let old = self.there()?;
        match old.first() {
            Some(path) if !replaces => return Err(Error::Exists(path.clone())),
            _ => {}
        }
        // The old ones go with the folder.
        let aside = |(number, path)| (path, self.place.dir.join(format!("old-{number}")));
        let aside = old.into_iter().enumerate().map(aside);
        let new = self.tables.iter().flat_map(|table| &table.files);
        let new: Vec<_> = new
            .map(|file| (self.place.dir.join(file), self.to.join(file)))
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

    /// The files of this host and label that are there.
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

/// The folders in a folder, if that is there; but those that are hidden.
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

/// A folder that was made, and is removed if it is empty in the end.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes the folders of `path` within `top`, as far as they are empty.
fn remove_empty(path: &Path, top: &Path) {
    let dirs = path.ancestors().skip(1).take_while(|dir| *dir != top);
    for dir in dirs {
        let _ = fs::remove_dir(dir);
    }
}

/// Makes a folder, and those that it is in. They are for their owner, as traces are.
pub fn make(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(Error::write(dir))
}

/// Gives a file its name, which nothing has.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(dir) = to.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(test)]
mod tests;
