// SPDX-License-Identifier: GPL-2.0

//! Tables with typed columns as Parquet files, partitioned by machine and day in Hive's way:
//!
//! ```text
//! DIR/TABLE/host=NAME/date=YYYY-MM-DD/part-*.parquet
//! ```
//!
//! Rows are added one by one, in memory that does not grow with their number, and however many tables there
//! are. No file has its name in DIR before all of them are complete.

#![forbid(unsafe_code)]

mod cells;
mod column;
mod folder;
mod part;
mod path;
mod row;
mod table;

pub use column::{Column, Kind};
pub use folder::{Folder, TableId};
pub use row::Row;

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What is to be written is there.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// The Parquet library refuses something.
    #[error("cannot write the table {table}: {error}")]
    Parquet {
        /// Which table.
        table: String,
        /// Why.
        error: parquet::errors::ParquetError,
    },
}

/// The result of what may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |error| Self::Write {
            path: path.to_owned(),
            error,
        }
    }
}
