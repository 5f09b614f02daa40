// SPDX-License-Identifier: GPL-2.0

//! A table that is being written.

use crate::cells::{cells, Cells};
use crate::column::Column;
use crate::folder::make;
use crate::part::{properties, Part};
use crate::{path, Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::file::properties::WriterProperties;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows that are gathered before they are encoded, and bytes of them.
const ROWS: usize = 1024;
const BYTES: usize = 1 << 18;

/// Days of which files are open: what takes long ends behind midnight, and belongs to the day before.
const DAYS: usize = 2;

/// A table.
pub struct Table {
    name: String,
    /// Its number among all tables.
    id: usize,
    schema: SchemaRef,
    properties: WriterProperties,
    cells: Vec<Box<dyn Cells>>,
    /// Those of the rows that are not encoded yet: their number, their bytes, more or less, and their day.
    rows: usize,
    bytes: usize,
    day: i64,
    /// One for each day, the newest last.
    parts: Vec<Part>,
    /// The files so far, by their places in the folder of all tables.
    pub files: Vec<PathBuf>,
    /// Bytes in memory, as they were added up last.
    pub counted: usize,
}

/// A row to be filled, cell by cell, in the order of the columns. Cells that are not filled are empty.
pub struct Row<'a> {
    cells: std::slice::IterMut<'a, Box<dyn Cells>>,
    bytes: &'a mut usize,
}

/// Where files are written.
pub struct Place {
    /// The folder of all tables.
    pub dir: PathBuf,
    /// The machine.
    pub host: String,
    /// What the names of files have behind `part-`: numbers come behind it.
    pub label: String,
}

impl Table {
    /// A table with these columns.
    pub fn new(name: String, id: usize, columns: &[Column]) -> Self {
        let fields: Vec<_> = columns.iter().map(Column::field).collect();
        Self {
            name,
            id,
            schema: Arc::new(Schema::new(fields)),
            properties: properties(columns),
            cells: columns.iter().map(cells).collect(),
            rows: 0,
            bytes: 0,
            day: 0,
            parts: Vec::new(),
            files: Vec::new(),
            counted: 0,
        }
    }

    /// Bytes in memory.
    pub fn held(&self) -> usize {
        self.bytes + self.parts.iter().map(|part| part.held).sum::<usize>()
    }

    /// Encodes the rows so far, if there are enough, or the next one is of another day.
    pub fn make_room(&mut self, day: i64, place: &Place) -> Result<()> {
        if self.rows >= ROWS || self.bytes >= BYTES || day != self.day {
            self.encode(place)?;
            self.day = day;
        }
        Ok(())
    }

    /// A new row.
    pub fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row {
            cells: self.cells.iter_mut(),
            bytes: &mut self.bytes,
        }
    }

    /// Makes sure that there is a file for a day, if only an empty one.
    pub fn open(&mut self, day: i64, place: &Place) -> Result<()> {
        self.part(day, place).map(drop)
    }

    /// Encodes the rows that have been gathered.
    fn encode(&mut self, place: &Place) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = self.cells.iter_mut().map(|cells| cells.take()).collect();
        let rows = RecordBatch::try_new(self.schema.clone(), columns);
        let rows = rows.map_err(|error| Error::Parquet {
            table: self.name.clone(),
            error: error.into(),
        })?;
        (self.rows, self.bytes) = (0, 0);
        let part = self.part(self.day, place)?;
        self.parts[part].write(&self.name, &rows)
    }

    /// The place of the file for a day.
    fn part(&mut self, day: i64, place: &Place) -> Result<usize> {
        if let Some(part) = self.parts.iter().position(|part| part.day == day) {
            return Ok(part);
        }
        if self.parts.len() == DAYS {
            self.parts.remove(0).finish(&self.name)?;
        }
        let dir = path::partition(&self.name, &place.host, day);
        make(&place.dir.join(&dir))?;
        let (label, number) = (&place.label, self.files.len());
        let file = dir.join(format!("part-{label}-{}-{number}.parquet", self.id));
        let path = place.dir.join(&file);
        let part = Part::create(&self.name, &self.schema, &self.properties, day, path)?;
        self.files.push(file);
        self.parts.push(part);
        Ok(self.parts.len() - 1)
    }

    /// Writes what is in memory to the files.
    pub fn flush(&mut self, place: &Place) -> Result<()> {
        self.encode(place)?;
        let mut parts = self.parts.iter_mut();
        parts.try_for_each(|part| part.flush(&self.name))
    }

    /// The table is complete.
    pub fn finish(&mut self, place: &Place) -> Result<()> {
        self.encode(place)?;
        let mut parts = self.parts.drain(..);
        parts.try_for_each(|part| part.finish(&self.name))
    }
}

impl Row<'_> {
    /// An integer as its bits: a signed one as sign-extended.
    pub fn integer(&mut self, bits: u64) {
        *self.bytes += 8;
        if let Some(cells) = self.cells.next() {
            cells.integer(bits);
        }
    }

    /// A signed integer, if there is one.
    pub fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.integer(number as u64),
            None => self.null(),
        }
    }

    /// A text, if there is one. What is not UTF-8 in it is replaced.
    pub fn text(&mut self, text: Option<&[u8]>) {
        let Some(text) = text else {
            return self.null();
        };
        *self.bytes += text.len() + 8;
        if let Some(cells) = self.cells.next() {
            cells.text(&String::from_utf8_lossy(text));
        }
    }

    /// Integers, each as its bits.
    pub fn list(&mut self, list: impl Iterator<Item = u64>) {
        let mut length = 0;
        if let Some(cells) = self.cells.next() {
            cells.list(&mut list.inspect(|_| length += 1));
        }
        *self.bytes += (length + 1) * 8;
    }

    /// An empty cell.
    pub fn null(&mut self) {
        *self.bytes += 1;
        if let Some(cells) = self.cells.next() {
            cells.null();
        }
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        self.cells.by_ref().for_each(|cells| cells.null());
    }
}
