// SPDX-License-Identifier: GPL-2.0

//! The ways in which packets reach the disk.

use rustix::fs::{fcntl_getfl, fcntl_setfl, statx, AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// The maximum alignment that a file may require of direct writes: packets are whole pages, in memory and in the
/// file.
const ALIGNED: u32 = 4096;

/// Whether the page cache is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writing {
    /// Packets are copied to the page cache, and the kernel writes them to the disk later. The writer does not wait
    /// for the disk.
    #[default]
    Cached,
    /// Packets go directly from the buffer to the disk (`O_DIRECT`): no copy, no memory of the page cache. The writer
    /// waits until the disk has each packet.
    Direct,
}

impl Writing {
    /// Direct writing, if `direct`.
    pub fn from_direct(direct: bool) -> Self {
        if direct {
            Self::Direct
        } else {
            Self::Cached
        }
    }

    /// Sets this way for all later writes to `file`.
    pub(crate) fn set(self, file: &File) -> io::Result<()> {
        match self {
            Self::Cached => Ok(()),
            Self::Direct => set_direct(file),
        }
    }
}

fn set_direct(file: &File) -> io::Result<()> {
    match fcntl_setfl(file, fcntl_getfl(file)? | OFlags::DIRECT) {
        Err(Errno::INVAL) => return Err(unsupported("has no direct I/O")),
        set => set?,
    }
    // If the file system does not tell, the first packet shows it. That packet is not lost.
    let status = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let said = StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::DIOALIGN);
    if said {
        fits(status.stx_dio_offset_align, status.stx_dio_mem_align).map_err(unsupported)?;
    }
    Ok(())
}

/// Whether whole pages have this alignment. If not, the text says why.
fn fits(offset: u32, memory: u32) -> Result<(), &'static str> {
    match (offset, memory) {
        // With these values a file has no direct I/O.
        (0, _) | (_, 0) => Err("has no direct I/O"),
        _ if ALIGNED % offset == 0 && ALIGNED % memory == 0 => Ok(()),
        _ => Err("does direct I/O only in blocks larger than a page"),
    }
}

fn unsupported(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("--direct cannot be used here: this file system {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn pages_are_aligned_to_blocks_up_to_a_page() {
        assert_eq!((fits(512, 4), fits(4096, 4096)), (Ok(()), Ok(())));
        for (offset, memory, why) in [
            (8192, 512, "larger"),
            (512, 8192, "larger"),
            (0, 0, "no direct"),
        ] {
            assert!(fits(offset, memory).is_err_and(|said| said.contains(why)));
        }
    }
}
