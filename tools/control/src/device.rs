// SPDX-License-Identifier: GPL-2.0

//! A stream file of the kernel (`sessions/<name>/channels/<channel>/cpuN`).
//!
//! The only unsafe code of the tools: the ioctls of these files, and that of the file `unwind`.

#![allow(unsafe_code)]

use consumer::Stream;
use rtrace_abi::ioctl::{
    LoadTable, Packet, FLUSH, GET_PACKET, LOAD_TABLE, PREPARE, PUT_PACKET, TAKE_ALL,
};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Getter, NoArg, Setter};
use rustix::pipe::{splice, SpliceFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use system::{Error, Result};

/// An open stream file. The kernel allows one reader at a time.
#[derive(Debug)]
pub struct Device(File);

impl Device {
    /// Opens a stream file, without waiting for packets.
    pub fn open(path: &Path) -> Result<Self> {
        OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map(Self)
            .map_err(|cause| match Errno::from_io_error(&cause) {
                Some(Errno::BUSY) => Error::StreamBusy {
                    path: path.to_owned(),
                },
                _ => Error::Read {
                    path: path.to_owned(),
                    cause,
                },
            })
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Stream for Device {
    fn get(&mut self) -> io::Result<Packet> {
        // SAFETY:
        // - GET_PACKET is a request of the stream file, from the header that the module is
        //   built with, and this fills in a `Packet` with it (`repr(C)`, integers only).
        // - On any other file the driver answers ENOTTY; on error the output is not read.
        Ok(unsafe { ioctl(&self.0, Getter::<GET_PACKET, Packet>::new()) }?)
    }

    fn splice(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| {
            splice(&self.0, None, pipe, None, len, SpliceFlags::MOVE)
        })?)
    }

    fn put(&mut self) -> io::Result<()> {
        // SAFETY: PUT_PACKET is a request of the stream file and takes no argument.
        Ok(unsafe { ioctl(&self.0, NoArg::<PUT_PACKET>::new()) }?)
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: FLUSH is a request of the stream file and takes no argument.
        Ok(unsafe { ioctl(&self.0, NoArg::<FLUSH>::new()) }?)
    }

    fn prepare(&mut self) -> io::Result<()> {
        // SAFETY: PREPARE is a request of the stream file and takes no argument.
        let prepared = unsafe { ioctl(&self.0, NoArg::<PREPARE>::new()) };
        match prepared {
            // The stream of an AUX area has no such request.
            Err(Errno::NOTTY) => Err(Errno::OPNOTSUPP.into()),
            prepared => Ok(prepared?),
        }
    }

    fn take_all(&mut self) -> io::Result<u64> {
        // SAFETY: As in `get`: TAKE_ALL fills in a `u64`.
        Ok(unsafe { ioctl(&self.0, Getter::<TAKE_ALL, u64>::new()) }?)
    }
}

/// Loads the unwind table of a file that is open; of the vDSO without one. `unwind` is the tracer's file of that name.
pub(crate) fn load_table(
    unwind: &File,
    of: Option<BorrowedFd<'_>>,
    table: &[u8],
) -> io::Result<()> {
    let argument = LoadTable {
        fd: of.map_or(-1, |file| file.as_raw_fd()),
        size: u32::try_from(table.len()).map_err(|_| Errno::FBIG)?,
        table: table.as_ptr() as u64,
    };
    // SAFETY:
    // - LOAD_TABLE is a request of the file `unwind`, from the header that the module is built with, which reads a
    //   `LoadTable` (`repr(C)`, integers only). On any other file the driver answers ENOTTY.
    // - The module reads `size` bytes of `table`, and no more after the call.
    Ok(unsafe { ioctl(unwind, Setter::<LOAD_TABLE, LoadTable>::new(argument)) }?)
}
