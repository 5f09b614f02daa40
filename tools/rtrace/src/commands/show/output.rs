// SPDX-License-Identifier: GPL-2.0

//! Destination of the lines.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use system::new_file::{create, special};
use system::{Error, Result};
use terminal::harmless;

/// Number of bytes to collect before a write.
const BLOCK: usize = 64 << 10;

/// A file, or standard output.
pub struct Output {
    name: PathBuf,
    to: Box<dyn Write + Send>,
    /// Text that is not written yet.
    pub text: String,
}

impl Output {
    /// Opens a file, or standard output if there is none. The file must be new unless `force` is set.
    pub fn open(file: Option<&Path>, force: bool) -> anyhow::Result<Self> {
        let to: Box<dyn Write + Send> = match file {
            Some(path) => {
                let file = match special(path) {
                    Ok(Some(file)) => Ok(file),
                    Ok(None) => create(path, force),
                    Err(error) => Err(error),
                };
                let file = file.map_err(Error::write(path))?;
                Box::new(anstream::AutoStream::never(file))
            }
            None => Box::new(anstream::stdout()),
        };
        Ok(Self {
            name: file.unwrap_or(Path::new("standard output")).to_owned(),
            to,
            text: String::new(),
        })
    }

    /// Writes the text if it is at least a block.
    pub fn write_block(&mut self) -> Result<()> {
        if self.text.len() >= BLOCK {
            self.write()?;
        }
        Ok(())
    }

    /// Writes the text.
    pub fn write(&mut self) -> Result<()> {
        let written = self.to.write_all(harmless(&self.text).as_bytes());
        self.text.clear();
        written
            .and_then(|()| self.to.flush())
            .map_err(Error::write(&self.name))
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
