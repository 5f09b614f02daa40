// SPDX-License-Identifier: GPL-2.0

//! The bytes of a stream, such as a file.

use rustix::fs::{seek, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The bytes of a stream, as far as they exist.
pub trait Bytes {
    /// Their number.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` with the bytes from `offset` on.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// The first byte from `offset` on that is not in a hole. [`None`]: there is none.
    fn after_hole(&self, offset: u64) -> Option<u64>;
}

impl Bytes for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }

    fn after_hole(&self, offset: u64) -> Option<u64> {
        match seek(self, SeekFrom::Data(offset)) {
            Ok(data) => Some(data),
            Err(Errno::NXIO) => None,
            Err(_) => Some(offset),
        }
    }
}

impl Bytes for &File {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        Bytes::read_exact_at(*self, bytes, offset)
    }

    fn after_hole(&self, offset: u64) -> Option<u64> {
        (**self).after_hole(offset)
    }
}
