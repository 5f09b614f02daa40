// SPDX-License-Identifier: GPL-2.0

//! Where an export goes.

use anyhow::{bail, Context};
use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, stdout, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 16;

/// Where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// This file.
    File {
        /// Its name.
        path: PathBuf,
        /// Whether it may be there already, and is replaced then.
        force: bool,
    },
}

/// What an export is written to.
pub enum Output {
    /// A pipe, a device or a terminal: what was written is there.
    Through(BufWriter<Box<dyn Write>>),
    /// A file that has its name when it is complete.
    Named(BufWriter<NamedTempFile>, PathBuf, bool),
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
    /// Opens it, for bytes or for text.
    pub fn open(&self, is_text: bool) -> anyhow::Result<Output> {
        let (path, force) = match self {
            Self::Stdout if !is_text && stdout().is_terminal() => {
                bail!("this format is not for a terminal: name a file with -o")
            }
            Self::Stdout => return Ok(Output::through(stdout().lock())),
            Self::File { path, force } => (path, *force),
        };
        let failed = || format!("cannot write {}", path.display());
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => bail!("{}: is a directory", failed()),
            Ok(there) if there.is_file() && !force => {
                bail!("{} is there already (--force replaces it)", path.display())
            }
            Ok(there) if !there.is_file() => {
                let file = File::options().write(true).open(path);
                return Ok(Output::through(file.with_context(failed)?));
            }
            _ => {}
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let file = NamedTempFile::new_in(dir.unwrap_or(Path::new("."))).with_context(failed)?;
        let out = BufWriter::with_capacity(BUFFER, file);
        Ok(Output::Named(out, path.clone(), force))
    }
}

impl Output {
    fn through(out: impl Write + 'static) -> Self {
        Self::Through(BufWriter::with_capacity(BUFFER, Box::new(out)))
    }

    /// The writer.
    pub fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Through(out) => out,
            Self::Named(out, ..) => out,
        }
    }

    /// All is written. Until then there is no file of this name, or the one that was there.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::Through(mut out) => out.flush(),
            Self::Named(out, path, force) => {
                let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                let persisted = if force {
                    file.persist(path)
                } else {
                    file.persist_noclobber(path)
                };
                persisted.map(drop).map_err(|error| error.error)
            }
        }
    }
}
