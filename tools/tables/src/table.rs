// SPDX-License-Identifier: GPL-2.0

//! A table that is being written.

use crate::column::Column;
use crate::part::{properties, PartFile};
use crate::row::Row;
use crate::{path, Result};
use parquet::file::properties::WriterPropertiesPtr;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of days with open files. An activity that ends after midnight belongs to the day on which it began.
const DAYS: usize = 2;

/// A table.
pub struct Table {
    name: String,
    /// Its number among all tables.
    id: usize,
    columns: Vec<Column>,
    properties: WriterPropertiesPtr,
    /// The open files, one for each day, the newest last.
    parts: Vec<PartFile>,
    /// The files so far: the folder of each, relative to the folder of all tables, and its name. Until the tables are
    /// complete, all files are in one folder, because folders take time.
    pub files: Vec<(PathBuf, String)>,
    /// Size of the rows in memory, in bytes, when it was last added up.
    pub counted: usize,
}

/// Place of the files.
pub struct Place {
    /// The folder of the files that are not complete.
    pub dir: PathBuf,
    /// The machine.
    pub host: String,
    /// The part of file names after `part-`. Numbers follow.
    pub label: String,
}

impl Table {
    /// A table with these columns.
    pub fn new(name: String, id: usize, columns: &[Column]) -> Self {
        Self {
            name,
            id,
            columns: columns.to_vec(),
            properties: Arc::new(properties(columns)),
            parts: Vec::new(),
            files: Vec::new(),
            counted: 0,
        }
    }

    /// Size of the rows in memory, in bytes.
    pub fn held(&self) -> usize {
        self.parts.iter().map(PartFile::held).sum()
    }

    /// Adds a row of a day.
    pub fn row(&mut self, day: i64, place: &Place) -> Result<Row<'_>> {
        let part = self.part(day, place)?;
        Ok(self.parts[part].row())
    }

    /// Makes sure that there is a file for a day, even if it stays empty.
    pub fn open(&mut self, day: i64, place: &Place) -> Result<()> {
        self.part(day, place).map(drop)
    }

    /// Index of the file for a day.
    fn part(&mut self, day: i64, place: &Place) -> Result<usize> {
        if let Some(part) = self.parts.iter().position(|part| part.day == day) {
            return Ok(part);
        }
        if self.parts.len() == DAYS {
            self.parts.remove(0).finish(&self.name)?;
        }
        let dir = path::partition(&self.name, &place.host, day);
        let (label, number) = (&place.label, self.files.len());
        let name = format!("part-{label}-{}-{number}.parquet", self.id);
        let path = place.dir.join(&name);
        let part = PartFile::create(&self.name, &self.columns, &self.properties, day, path)?;
        self.files.push((dir, name));
        self.parts.push(part);
        Ok(self.parts.len() - 1)
    }

    /// Writes the rows in memory to the files, in other threads.
    pub fn flush(&mut self) -> Result<()> {
        let mut parts = self.parts.iter_mut();
        parts.try_for_each(|part| part.flush(&self.name))
    }

    /// Waits for the threads that write to the files.
    pub fn wait(&mut self) -> Result<()> {
        let mut parts = self.parts.iter_mut();
        parts.try_for_each(|part| part.wait(&self.name))
    }

    /// Completes the table.
    pub fn finish(&mut self) -> Result<()> {
        let mut parts = self.parts.drain(..);
        parts.try_for_each(|part| part.finish(&self.name))
    }
}
