// SPDX-License-Identifier: GPL-2.0

//! A file of a table: its rows of one day.

use crate::cells::{cells, Cells};
use crate::column::{Column, Kind};
use crate::row::Row;
use crate::{Error, Result};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that is being written.
pub struct Part {
    /// Number of the day.
    pub day: i64,
    writer: SerializedFileWriter<Appended>,
    /// The rows that are not written yet: by column, their number, and their approximate size.
    cells: Vec<Box<dyn Cells>>,
    rows: usize,
    held: usize,
}

/// A file that is open only during a write, because there may be more tables than open files. Writes are rare:
/// one for each group of rows.
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
            SerializedFileWriter::new(Appended(path), schema, properties.clone())
        };
        Ok(Self {
            day,
            writer: writer().map_err(failed(table))?,
            cells: columns.iter().map(cells).collect(),
            rows: 0,
            held: 0,
        })
    }

    /// Size of the rows in memory, in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Adds a row.
    pub fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row::new(&mut self.cells, &mut self.held)
    }

    /// Writes the rows in memory to the file, as a group of rows.
    pub fn flush(&mut self, table: &str) -> Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(failed(table))?;
            (self.rows, self.held) = (0, 0);
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for cells in &mut self.cells {
            if let Some(mut column) = group.next_column()? {
                cells.write(&mut column)?;
                column.close()?;
            }
        }
        group.close().map(drop)
    }

    /// Completes the file.
    pub fn finish(mut self, table: &str) -> Result<()> {
        self.flush(table)?;
        self.writer.close().map(drop).map_err(failed(table))
    }
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
