// SPDX-License-Identifier: GPL-2.0

//! Tables with typed columns as Parquet files, partitioned by machine and day in Hive's way:
//!
//! ```text
//! DIR/TABLE/host=NAME/date=YYYY-MM-DD/part-*.parquet
//! ```
//!
//! Rows are added one by one. Memory use depends neither on their number nor on the number of tables. A file
//! appears in DIR only when all files are complete. Or a program takes the rows: [`Rows`].

#![forbid(unsafe_code)]

mod cells;
mod column;
mod folder;
mod output;
mod part;
mod path;
mod row;
mod rows;
mod single;
mod table;

pub use column::{Column, ColumnKind};
pub use output::Folder;
pub use path::date;
pub use row::Row;
pub use rows::{Cell, Rows, TableId};
pub use single::Single;

use std::io;
use std::path::{Path, PathBuf};

/// Errors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file to write exists already.
    #[error("{0} already exists")]
    Exists(PathBuf),
    /// A program does not take a row.
    #[error(transparent)]
    Rows(io::Error),
    /// The Parquet library refused an operation.
    #[error("cannot write the table {table}: {error}")]
    Parquet {
        /// The table.
        table: String,
        /// The reason.
        error: parquet::errors::ParquetError,
    },
}

/// The result of an operation that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |error| Self::Write {
            path: path.to_owned(),
            error,
        }
    }
}
