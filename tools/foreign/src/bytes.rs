// SPDX-License-Identifier: GPL-2.0

//! Reads the numbers and texts of a file or of a section of it, one after the other.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::{regular_file, Error, Result};

/// The maximum number of bytes of a name.
const NAME: usize = 4096;

/// An open file.
#[derive(Debug)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    file: File,
    /// Its length.
    pub length: u64,
}

impl Source {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = regular_file::open(path).map_err(Error::read(path))?;
        let length = file.metadata().map_err(Error::read(path))?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
        })
    }

    /// A file without a name, in the place of the file with this path.
    pub fn unnamed(path: PathBuf, file: File, length: u64) -> Self {
        Self { path, file, length }
    }

    /// An error about a place in the file.
    pub fn wrong(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            offset,
            what: what.into(),
        }
    }

    /// Bytes at an offset. They are in the file, so a wrong size takes no memory.
    pub fn bytes(&self, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        self.read(&mut all, offset, bytes)?;
        Ok(all)
    }

    /// Whether the file begins with these bytes.
    pub fn begins(path: &Path, magic: &[u8]) -> Result<bool> {
        if !path.is_file() {
            return Ok(false);
        }
        let file = regular_file::open(path).map_err(Error::read(path))?;
        let mut bytes = Vec::new();
        let read = file.take(magic.len() as u64).read_to_end(&mut bytes);
        read.map_err(Error::read(path))?;
        Ok(bytes == magic)
    }

    /// Replaces `all` by bytes at an offset.
    pub fn read(&self, all: &mut Vec<u8>, offset: u64, bytes: u64) -> Result<()> {
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > self.length) {
            let what = format!("{bytes} bytes that end after the end of the file");
            return Err(self.wrong(offset, what));
        }
        all.resize(bytes as usize, 0);
        self.file
            .read_exact_at(all, offset)
            .map_err(Error::read(&self.path))
    }
}

/// A place in the file, or in a section of it that is in memory.
#[derive(Debug)]
pub struct Cursor<'a> {
    source: &'a Source,
    /// The section.
    section: Option<&'a [u8]>,
    /// The offset in the file of the section.
    begin: u64,
    /// The place in the section, or in the file.
    at: u64,
}

impl<'a> Cursor<'a> {
    /// A place in the file.
    pub fn new(source: &'a Source, at: u64) -> Self {
        Self {
            source,
            section: None,
            begin: 0,
            at,
        }
    }

    /// The begin of a section that begins at an offset in the file.
    pub fn of_section(source: &'a Source, begin: u64, section: &'a [u8]) -> Self {
        Self {
            source,
            section: Some(section),
            begin,
            at: 0,
        }
    }

    /// The offset in the file, or of the section.
    pub fn offset(&self) -> u64 {
        match self.section {
            Some(_) => self.begin,
            None => self.at,
        }
    }

    /// An error about this place.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        self.source.wrong(self.offset(), what)
    }

    /// The number of bytes up to the end.
    pub fn left(&self) -> u64 {
        let length = self
            .section
            .map_or(self.source.length, |section| section.len() as u64);
        length.saturating_sub(self.at)
    }

    /// The next bytes.
    pub fn bytes(&mut self, bytes: u64) -> Result<Vec<u8>> {
        let read = match self.section {
            None => self.source.bytes(self.at, bytes)?,
            Some(section) => {
                let at = self.at as usize;
                let part = usize::try_from(bytes)
                    .ok()
                    .and_then(|bytes| section.get(at..at.checked_add(bytes)?));
                let short = || {
                    self.wrong(format!(
                        "{bytes} bytes that end after the end of their section"
                    ))
                };
                part.ok_or_else(short)?.to_owned()
            }
        };
        self.at += bytes;
        Ok(read)
    }

    /// Skips bytes.
    pub fn skip(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.left() {
            return Err(self.wrong(format!("{bytes} bytes that end after the end of the file")));
        }
        self.at += bytes;
        Ok(())
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N as u64)?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8> {
        self.number::<1>().map(|[byte]| byte)
    }

    /// The next number of 16 bits.
    pub fn u16(&mut self) -> Result<u16> {
        self.number().map(u16::from_le_bytes)
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Result<u32> {
        self.number().map(u32::from_le_bytes)
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Result<u64> {
        self.number().map(u64::from_le_bytes)
    }

    /// The next text, and the NUL after it.
    pub fn name(&mut self) -> Result<String> {
        let most = self.left().min(NAME as u64);
        let bytes = self.bytes(most)?;
        let Some(length) = memchr::memchr(0, &bytes) else {
            self.at -= most;
            return Err(self.wrong(format!("a name of more than {most} bytes")));
        };
        self.at -= most - length as u64 - 1;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// The next text, of this length.
    pub fn text(&mut self, bytes: u64) -> Result<String> {
        let bytes = self.bytes(bytes)?;
        let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
