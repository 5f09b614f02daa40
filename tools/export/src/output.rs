// SPDX-License-Identifier: GPL-2.0

//! Target of an export.

use anyhow::{bail, Context};
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{self, stdout, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use system::new_file::{special, NewFile};

/// Bytes that are buffered before a write.
const BUFFER: usize = 1 << 16;

/// Target of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File {
        /// Name of the file.
        path: PathBuf,
        /// Whether an existing file is replaced.
        force: bool,
    },
}

/// Open target of an export.
pub enum Output {
    /// A pipe, a device or a terminal: output is visible as soon as it is written.
    Through(BufWriter<Box<dyn Write>>),
    /// A file that gets its name when it is complete.
    Named(BufWriter<File>, NewFile),
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File { path, .. } => path.display().fmt(f),
        }
    }
}

impl Target {
    /// Returns the target for this file name, or standard output for `-`.
    pub fn named(path: PathBuf, force: bool) -> Self {
        match path.as_os_str() == "-" {
            true => Self::Stdout,
            false => Self::File { path, force },
        }
    }

    /// Opens the target, for bytes or for text.
    pub fn open(&self, is_text: bool) -> anyhow::Result<Output> {
        let (path, force) = match self {
            Self::Stdout if !is_text && stdout().is_terminal() => {
                bail!("this format is not for a terminal: name a file with -o")
            }
            Self::Stdout => return Ok(Output::through(stdout().lock())),
            Self::File { path, force } => (path, *force),
        };
        let failed = || format!("cannot write {}", path.display());
        if let Some(file) = special(path).with_context(failed)? {
            return Ok(Output::through(file));
        }
        let new = NewFile::create(path, force).with_context(failed)?;
        let file = new.file().try_clone().with_context(failed)?;
        Ok(Output::Named(BufWriter::with_capacity(BUFFER, file), new))
    }
}

impl Output {
    fn through(out: impl Write + 'static) -> Self {
        Self::Through(BufWriter::with_capacity(BUFFER, Box::new(out)))
    }

    /// Returns the writer.
    pub fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Through(out) => out,
            Self::Named(out, ..) => out,
        }
    }

    /// Finishes the output. A file gets its name now, and replaces the file that had the name. Returns the size
    /// of a file.
    pub fn finish(self) -> io::Result<Option<u64>> {
        match self {
            Self::Through(mut out) => out.flush().map(|()| None),
            Self::Named(mut out, new) => {
                out.flush()?;
                let size = new.file().metadata()?.len();
                new.commit().map(|()| Some(size))
            }
        }
    }
}
