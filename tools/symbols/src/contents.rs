// SPDX-License-Identifier: GPL-2.0

//! The contents of a file from an unknown origin. Its headers may claim any size, even if the file is only a hole.

use object::read::ReadCache;
use object::ReadRef;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use system::regular_file;

/// The maximum number of bytes that are read of a file, and of names made from it. The largest programs need a few
/// hundred million.
const MOST: u64 = 1 << 30;

/// The contents of a file that were read.
#[derive(Debug)]
pub struct Contents {
    cache: ReadCache<File>,
    /// The number of bytes that may still be read.
    left: Cell<u64>,
}

impl Contents {
    /// Opens the file at `path`, if it is a regular one.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(regular_file::open(path)?))
    }

    /// The contents of a regular file.
    pub fn of(file: File) -> Self {
        Self {
            cache: ReadCache::new(file),
            left: MOST.into(),
        }
    }

    /// Accounts for this number of bytes. Refuses them if the total is too large.
    pub fn spend(&self, bytes: u64) -> Option<()> {
        let left = self.left.get().checked_sub(bytes)?;
        self.left.set(left);
        Some(())
    }
}

impl<'a> ReadRef<'a> for &'a Contents {
    fn len(self) -> Result<u64, ()> {
        ReadRef::len(&self.cache)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.spend(size).ok_or(())?;
        ReadRef::read_bytes_at(&self.cache, offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        // The cache itself gives up a long search.
        let bytes = ReadRef::read_bytes_at_until(&self.cache, range, delimiter)?;
        self.spend(bytes.len() as u64).ok_or(())?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4 * MOST).unwrap();
        let contents = &Contents::open(file.path()).unwrap();
        assert!(contents.read_bytes_at(0, MOST + 1).is_err());
        for place in 0..2 {
            let bytes = contents.read_bytes_at(place << 20, 1 << 20).unwrap();
            assert_eq!(bytes.len(), 1 << 20);
        }
        // All bytes read before count.
        assert!(contents.read_bytes_at(0, MOST - (1 << 20)).is_err());
        assert_eq!(contents.read_bytes_at_until(8..16, 0), Ok(&[][..]));
    }
}
