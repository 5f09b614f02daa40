// SPDX-License-Identifier: GPL-2.0

//! A table in one file.

use crate::column::Column;
use crate::part::{properties, PartFile};
use crate::row::Row;
use crate::Result;
use std::path::Path;
use std::sync::Arc;

/// Maximum memory for rows, in bytes.
const MEMORY: usize = 16 << 20;

/// Name of the table in errors.
const NAME: &str = "answer";

/// A file of one table, which is being written.
pub struct Single(PartFile);

impl Single {
    /// Creates a file with these columns.
    pub fn create(path: &Path, columns: &[Column]) -> Result<Self> {
        let properties = Arc::new(properties(columns));
        PartFile::create(NAME, columns, &properties, 0, path.to_owned()).map(Self)
    }

    /// Adds a row.
    pub fn row(&mut self) -> Result<Row<'_>> {
        if self.0.held() >= MEMORY {
            self.0.flush(NAME)?;
        }
        Ok(self.0.row())
    }

    /// Completes the file.
    pub fn finish(self) -> Result<()> {
        self.0.finish(NAME)
    }
}
