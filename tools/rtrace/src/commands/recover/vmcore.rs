// SPDX-License-Identifier: GPL-2.0

//! A dump of a kernel's memory. drgn reads it in a process of its own (`vmcore.py`).

use recovery::dump::Memory;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use system::{Error, Result};

const SCRIPT: &str = include_str!("vmcore.py");

/// An open dump.
pub struct Vmcore {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Vmcore {
    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self> {
        // If the file cannot be opened, the error is from here, not from drgn.
        std::fs::File::open(path).map_err(Error::read(path))?;
        let arguments = [OsStr::new("-I"), OsStr::new("-c"), OsStr::new(SCRIPT)];
        let child = Command::new("python3")
            .args(arguments)
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|cause| Error::System {
            what: "python3, which is needed to read a dump (apt install python3-drgn)".to_owned(),
            cause,
        })?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are pipes");
        };
        let mut vmcore = Self {
            child,
            requests,
            replies: BufReader::new(replies),
        };
        vmcore.reply()?;
        Ok(vmcore)
    }

    fn ask(&mut self, request: &str) -> Result<Option<Vec<u8>>> {
        let written = writeln!(self.requests, "{request}");
        written.and_then(|()| self.requests.flush()).map_err(gone)?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Option<Vec<u8>>> {
        let (mut kind, mut len) = ([0], [0; 8]);
        self.replies.read_exact(&mut kind).map_err(gone)?;
        self.replies.read_exact(&mut len).map_err(gone)?;
        let (mut bytes, len) = (Vec::new(), u64::from_le_bytes(len));
        let replies = self.replies.by_ref().take(len);
        { replies }.read_to_end(&mut bytes).map_err(gone)?;
        if bytes.len() as u64 != len {
            return Err(gone(io::ErrorKind::UnexpectedEof.into()));
        }
        match kind {
            [b'+'] => Ok(Some(bytes)),
            [b'-'] => Ok(None),
            _ => Err(Error::Unrecoverable {
                what: String::from_utf8_lossy(&bytes).into_owned(),
            }),
        }
    }
}

/// The error for the end of the other process, which has printed the reason.
fn gone(cause: io::Error) -> Error {
    Error::System {
        what: "drgn".to_owned(),
        cause,
    }
}

impl Memory for Vmcore {
    fn find(&mut self, align: usize, bytes: &[u8]) -> Result<Vec<u64>> {
        let mut request = format!("find {align:x} ");
        for byte in bytes {
            let _ = write!(request, "{byte:02x}");
        }
        let found = self.ask(&request)?.unwrap_or_default();
        let words = found.chunks_exact(8).filter_map(|word| word.first_chunk());
        Ok(words.map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn read(&mut self, at: u64, len: usize) -> Result<Option<Vec<u8>>> {
        self.ask(&format!("read {at:x} {len:x}"))
    }
}

impl Drop for Vmcore {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
