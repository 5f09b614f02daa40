// SPDX-License-Identifier: GPL-2.0

//! `recovered`: the trace of an earlier boot in a channel's reserved memory, as raw bytes
//! ([`abi::region`](crate::abi::region)). `free_recovered` clears it.

use super::channel::ChannelTarget;
use super::must_be_one;
use crate::arch::word::SharedWord;
use crate::channel::region::Region;
use crate::sys::debugfs::stream::StreamFile;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, WRITE};
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::uaccess::{UserPtr, UserSliceWriter};

/// Creates the files of a channel.
pub(super) fn make(dir: &mut Dir, target: Data<ChannelTarget>) -> Result {
    dir.stream::<Recovered>("recovered", target)?;
    dir.text::<FreeRecovered>("free_recovered", WRITE, target)
}

/// Number of bytes to copy at a time.
const CHUNK: usize = 64 << 10;

/// The memory's bytes. They contain addresses of the earlier kernel. Without KASLR, these are also the current
/// ones.
struct Recovered;

/// An open file.
struct Reading {
    region: Arc<Region>,
    /// Offset of the next byte to read.
    at: SharedWord,
}

impl StreamFile for Recovered {
    type Data = ChannelTarget;
    type Open = Reading;

    fn open(target: &ChannelTarget, rights: Rights) -> Result<Reading> {
        if !rights.sees_addresses {
            return Err(EPERM);
        }
        Ok(Reading {
            region: target.session.earlier_region(target.channel)?,
            at: SharedWord::new(0),
        })
    }

    fn read(reading: &Reading, out: &mut UserSliceWriter, _nonblock: bool) -> Result<usize> {
        let at = reading.at.load() as usize;
        let left = reading.region.len().saturating_sub(at);
        let len = left.min(out.len()).min(CHUNK);
        let mut bytes = KVVec::from_elem(0, len, GFP_KERNEL)?;
        reading.region.read(at, &mut bytes)?;
        out.write_slice(&bytes)?;
        reading.at.store(at.wrapping_add(len) as u64);
        Ok(len)
    }

    fn poll(_: &Reading, _: &File, _: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLIN, POLLRDNORM};
        POLLIN | POLLRDNORM
    }

    fn ioctl(_: &Reading, _: u32, _: UserPtr) -> Result<isize> {
        Err(ENOTTY)
    }

    fn splice(_: &Reading, _: &mut Pipe, _: usize) -> Result<usize> {
        Err(EINVAL)
    }
}

/// Makes the memory available for the next trace.
struct FreeRecovered;

impl TextFile for FreeRecovered {
    type Data = ChannelTarget;

    fn show(_: &ChannelTarget, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(target: &ChannelTarget, input: &str, _: Rights) -> Result {
        must_be_one(&target.session, "free_recovered", input)?;
        target.session.free_earlier(target.channel)
    }
}
