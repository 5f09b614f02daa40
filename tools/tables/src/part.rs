// SPDX-License-Identifier: GPL-2.0

//! A file of a table: its rows of a day.

use crate::column::{Column, Kind};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A file that is being written.
pub struct Part {
    /// The number of the day.
    pub day: i64,
    writer: ArrowWriter<Appended>,
    /// Bytes in memory, by the writer's own account.
    pub held: usize,
}

/// A file that is open only while something is written to it: there may be more tables than a process may
/// have files open. It is written to seldom, a group of rows at a time.
struct Appended(PathBuf);

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.0)?;
        file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Part {
    /// A new file for a day.
    pub fn create(
        table: &str,
        schema: &SchemaRef,
        properties: &WriterProperties,
        day: i64,
        path: PathBuf,
    ) -> Result<Self> {
        let (schema, properties) = (schema.clone(), properties.clone());
        let writer = ArrowWriter::try_new(Appended(path), schema, Some(properties));
        Ok(Self {
            day,
            writer: writer.map_err(failed(table))?,
            held: 0,
        })
    }

    /// Adds rows.
    pub fn write(&mut self, table: &str, rows: &RecordBatch) -> Result<()> {
        self.writer.write(rows).map_err(failed(table))?;
        self.held = self.writer.memory_size();
        Ok(())
    }

    /// Writes what is in memory to the file, as a group of rows.
    pub fn flush(&mut self, table: &str) -> Result<()> {
        self.writer.flush().map_err(failed(table))?;
        self.held = 0;
        Ok(())
    }

    /// The file is complete.
    pub fn finish(self, table: &str) -> Result<()> {
        self.writer.close().map(drop).map_err(failed(table))
    }
}

fn failed(table: &str) -> impl FnOnce(parquet::errors::ParquetError) -> Error + '_ {
    |error| Error::Parquet {
        table: table.to_owned(),
        error,
    }
}

/// How columns are written.
pub fn properties(columns: &[Column]) -> WriterProperties {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("rtrace ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    let clocks = columns
        .iter()
        .filter(|column| matches!(column.kind, Kind::Time | Kind::Clock));
    clocks
        .fold(properties, |properties, column| {
            let path = ColumnPath::from(column.name.as_str());
            properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        })
        .build()
}
