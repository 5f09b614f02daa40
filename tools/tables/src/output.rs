// SPDX-License-Identifier: GPL-2.0

//! The tables of one trace: as files, or for a program.

use crate::column::Column;
use crate::folder::Files;
use crate::row::Row;
use crate::rows::{Program, Rows, TableId};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The tables of a trace, while their rows are added.
pub struct Folder(To);

enum To {
    Files(Files),
    Program(Program),
}

impl Folder {
    /// Creates files in `to`, with rows of this host. Creates `to` if it does not exist. The names of the files
    /// contain `label`. They are in a hidden folder inside `to` until [`Self::finish`]; the drop removes them.
    pub fn new(to: &Path, host: &str, label: &str) -> Result<Self> {
        Files::new(to, host, label).map(To::Files).map(Self)
    }

    /// Hands all rows to a program.
    pub fn program(rows: Box<dyn Rows>) -> Self {
        Self(To::Program(Program::new(rows)))
    }

    /// Adds a table. Several tables may have the same name with different columns.
    pub fn table(&mut self, name: impl Into<String>, columns: &[Column]) -> TableId {
        match &mut self.0 {
            To::Files(files) => files.table(name, columns),
            To::Program(program) => program.table(&name.into(), columns),
        }
    }

    /// Whether the rows of a table are wanted.
    pub fn wants(&self, table: TableId) -> bool {
        match &self.0 {
            To::Files(_) => true,
            To::Program(program) => program.wants(table),
        }
    }

    /// Adds a row with a time in nanoseconds since the epoch.
    pub fn row(&mut self, table: TableId, ns: i64) -> Result<Row<'_>> {
        match &mut self.0 {
            To::Files(files) => files.row(table, ns),
            To::Program(program) => {
                program.check().map_err(Error::Rows)?;
                Ok(Row::taken(program.row(table, ns)))
            }
        }
    }

    /// Makes sure that the table has a file for the day of this time, even if it stays empty.
    pub fn open(&mut self, table: TableId, ns: i64) -> Result<()> {
        match &mut self.0 {
            To::Files(files) => files.open(table, ns),
            To::Program(_) => Ok(()),
        }
    }

    /// Completes the tables: files get their final names. If there are files of this host and label, they are
    /// replaced if `replaces` is set; otherwise the call fails. An error leaves everything unchanged. Returns the
    /// number of files.
    pub fn finish(self, replaces: bool) -> Result<usize> {
        match self.0 {
            To::Files(files) => files.finish(replaces),
            To::Program(mut program) => program.check().map_err(Error::Rows).map(|()| 0),
        }
    }

    /// Existing files of this host and label.
    pub fn there(&self) -> Result<Vec<PathBuf>> {
        match &self.0 {
            To::Files(files) => files.there(),
            To::Program(_) => Ok(Vec::new()),
        }
    }
}
