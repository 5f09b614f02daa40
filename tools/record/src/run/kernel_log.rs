// SPDX-License-Identifier: GPL-2.0

//! The kernel log, from the time of opening on.

use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The kernel's file for its log: each read(2) returns one record.
const PATH: &str = "/dev/kmsg";

/// Size of a buffer for a record: more than the longest record (the kernel's `PRINTK_MESSAGE_MAX`).
const RECORD: usize = 8192;

/// Reader of the kernel log. Readable, for poll(2), when the kernel has logged more.
#[derive(Debug)]
pub struct KernelLog(File);

impl KernelLog {
    /// Opens the log. Earlier messages are skipped.
    pub fn open() -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits();
        let open = options.read(true).custom_flags(nonblock as i32).open(PATH);
        let seek = |mut file: File| file.seek(SeekFrom::End(0)).map(|_| Self(file));
        open.and_then(seek)
            .map_err(|e| io::Error::new(e.kind(), format!("{PATH}: {e}")))
    }

    /// The next line. `None` if there is none yet.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        let mut record = [0; RECORD];
        loop {
            match self.0.read(&mut record) {
                Ok(len) => return Ok(Some(message(&record[..len]))),
                Err(e) => match Errno::from_io_error(&e) {
                    Some(Errno::AGAIN) => return Ok(None),
                    // Some records were overwritten before they were read. The next ones can be read.
                    Some(Errno::PIPE | Errno::INTR) => {}
                    _ => return Err(e),
                },
            }
        }
    }
}

impl AsFd for KernelLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The message of a record: the text after the first `;`, without the lines of keys and values.
fn message(record: &[u8]) -> String {
    let text = String::from_utf8_lossy(record);
    let message = text.split_once(';').map_or(&*text, |(_, message)| message);
    message.lines().next().unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let record = b"6,1339,5140900,-;usb 1-1: new; high-speed\n SUBSYSTEM=usb\n DEVICE=c1\n";
        assert_eq!(message(record), "usb 1-1: new; high-speed");
        assert_eq!(message(b"6,1,2,-;\n"), "");
        assert_eq!(message(b"odd"), "odd");
    }
}
