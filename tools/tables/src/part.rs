// SPDX-License-Identifier: GPL-2.0

//! A file of a table: its rows of one day.

use crate::cells::Cells;
use crate::column::{Column, ColumnKind};
use crate::row::Row;
use crate::{Error, Result};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A file that is being written.
pub struct PartFile {
    /// Number of the day.
    pub day: i64,
    writer: Writer,
    /// The rows that are not written yet.
    cells: Cells,
}

/// The writer of a file: a thread may have it.
enum Writer {
    /// Idle.
    Here(Box<SerializedFileWriter<Appended>>),
    /// A thread writes a group of rows.
    Away(JoinHandle<Written>),
    /// It failed.
    Gone,
}

/// The writer after a group of rows.
type Written = Result<Box<SerializedFileWriter<Appended>>, ParquetError>;

/// A file that is open only while a group of rows is written, because there may be more tables than open files.
struct Appended {
    path: PathBuf,
    file: Option<File>,
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        self.file.insert(options.open(&self.path)?).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PartFile {
    /// Creates a file for a day.
    pub fn create(
        table: &str,
        columns: &[Column],
        properties: &WriterPropertiesPtr,
        day: i64,
        path: PathBuf,
    ) -> Result<Self> {
        let writer = || {
            let fields = columns
                .iter()
                .map(Column::field)
                .collect::<Result<_, _>>()?;
            // The name that Arrow's writers use.
            let schema = Type::group_type_builder("arrow_schema").with_fields(fields);
            let schema = Arc::new(schema.build()?);
            SerializedFileWriter::new(Appended { path, file: None }, schema, properties.clone())
        };
        Ok(Self {
            day,
            writer: Writer::Here(Box::new(writer().map_err(failed(table))?)),
            cells: Cells::new(columns.iter().map(|column| column.kind).collect()),
        })
    }

    /// Size of the rows in memory, in bytes.
    pub fn held(&self) -> usize {
        self.cells.held()
    }

    /// Adds a row.
    pub fn row(&mut self) -> Row<'_> {
        Row::new(&mut self.cells)
    }

    /// Writes the rows in memory to the file, as a group of rows, in another thread.
    pub fn flush(&mut self, table: &str) -> Result<()> {
        if let Some((writer, cells)) = self.group(table)? {
            let write = move || write_group(writer, cells);
            let thread = thread::Builder::new().name("tables".to_owned());
            let thread = thread.spawn(write).map_err(|error| Error::Write {
                path: PathBuf::from(table),
                error,
            });
            self.writer = Writer::Away(thread?);
        }
        Ok(())
    }

    /// Waits for the thread that writes to the file.
    pub fn wait(&mut self, table: &str) -> Result<()> {
        if let Some(writer) = self.idle(table)? {
            self.writer = Writer::Here(writer);
        }
        Ok(())
    }

    /// Completes the file.
    pub fn finish(mut self, table: &str) -> Result<()> {
        let writer = match self.group(table)? {
            Some((writer, cells)) => Some(write_group(writer, cells).map_err(failed(table))?),
            None => self.idle(table)?,
        };
        match writer {
            Some(writer) => writer.close().map(drop).map_err(failed(table)),
            None => Ok(()),
        }
    }

    /// The writer when it is idle; none after it failed.
    fn idle(&mut self, table: &str) -> Result<Option<Box<SerializedFileWriter<Appended>>>> {
        let written = match mem::replace(&mut self.writer, Writer::Gone) {
            Writer::Here(writer) => return Ok(Some(writer)),
            Writer::Away(thread) => thread.join(),
            Writer::Gone => return Ok(None),
        };
        let written = written.unwrap_or_else(|_| {
            let what = "the thread that writes it has ended";
            Err(ParquetError::General(what.to_owned()))
        });
        written.map(Some).map_err(failed(table))
    }

    /// The writer, and the rows in memory, if there are any.
    fn group(&mut self, table: &str) -> Result<Option<Group>> {
        if self.cells.is_empty() {
            return Ok(None);
        }
        let cells = self.cells.take();
        Ok(self.idle(table)?.map(|writer| (writer, cells)))
    }
}

/// The writer of a file, and rows for it.
type Group = (Box<SerializedFileWriter<Appended>>, Cells);

/// Writes a group of rows.
fn write_group(mut writer: Box<SerializedFileWriter<Appended>>, cells: Cells) -> Written {
    let mut group = writer.next_row_group()?;
    cells.write(&mut group)?;
    group.close()?;
    writer.flush()?;
    writer.inner_mut().file = None;
    Ok(writer)
}

fn failed(table: &str) -> impl FnOnce(ParquetError) -> Error + '_ {
    |error| Error::Parquet {
        table: table.to_owned(),
        error,
    }
}

/// Encoding of the columns.
pub fn properties(columns: &[Column]) -> WriterProperties {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("rtrace ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    let clocks = columns
        .iter()
        .filter(|column| matches!(column.kind, ColumnKind::Time | ColumnKind::Clock));
    clocks
        .fold(properties, |properties, column| {
            let path = ColumnPath::from(column.name.as_str());
            properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        })
        .build()
}
