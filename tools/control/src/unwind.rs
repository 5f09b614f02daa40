// SPDX-License-Identifier: GPL-2.0

//! The file `unwind`: the files of programs that have no unwind table, and their tables.

use crate::device;
use crate::tracer::Tracer;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use system::{Error, Result};

/// The open file. The module keeps the tables while it is open. Its descriptor polls readable when a table is wanted.
#[derive(Debug)]
pub struct Unwind(File);

/// A file without a table, as a process maps it. The process may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedTable {
    /// The process.
    pub pid: u32,
    /// The first address of the mapping.
    pub begin: u64,
    /// The first address after it.
    pub end: u64,
}

impl Unwind {
    /// Opens the file.
    pub fn open(tracer: &Tracer) -> Result<Self> {
        let path = tracer.root().join("unwind");
        OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map(Self)
            .map_err(|cause| Error::Read { path, cause })
    }

    /// The files for which a table is wanted now. Files that still have none are wanted again after the next call.
    pub fn wanted(&self) -> io::Result<Vec<WantedTable>> {
        let mut text = [0; 4096];
        let len = match (&self.0).read(&mut text) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            len => len?,
        };
        let text = String::from_utf8_lossy(&text[..len]);
        Ok(text.lines().filter_map(parse).collect())
    }

    /// Loads the table of an open file; of the vDSO without one.
    pub fn load(&self, of: Option<BorrowedFd<'_>>, table: &[u8]) -> io::Result<()> {
        device::load_table(&self.0, of, table)
    }
}

impl AsFd for Unwind {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn parse(line: &str) -> Option<WantedTable> {
    let (pid, mapping) = line.split_once(' ')?;
    let (begin, end) = mapping.split_once('-')?;
    Some(WantedTable {
        pid: pid.parse().ok()?,
        begin: u64::from_str_radix(begin, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_process_and_its_mapping() {
        let (pid, begin, end) = (12, 0x7f00, 0x8000);
        assert_eq!(parse("12 7f00-8000"), Some(WantedTable { pid, begin, end }));
        assert_eq!(parse("12 7f00"), None);
    }
}
