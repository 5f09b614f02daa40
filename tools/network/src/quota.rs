// SPDX-License-Identifier: GPL-2.0

//! Limits for all traces of a receiver together: disk space, and open streams.

use crate::trouble::Trouble;
use rustix::process::{getrlimit, Resource};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use system::quantity;

/// Minimum time between two measurements of the directory.
const MEASURE: Duration = Duration::from_secs(1);

/// Minimum size of a file or directory in a quota, which so limits their number, too.
pub const FILE: u64 = 4096;

/// Depth of directories below that of the receiver: traces, and chunks in them.
const DEPTH: u32 = 2;

/// Parses a quota. For the command line.
pub fn parse_quota(text: &str) -> Result<u64, String> {
    quantity::size(text)
}

/// The quota of a receiver.
#[derive(Debug)]
pub struct Quota {
    dir: PathBuf,
    /// Maximum size of the directory in bytes, if there is a limit.
    most: Option<u64>,
    used: Mutex<Used>,
    /// Maximum number of open streams.
    most_streams: usize,
    streams: AtomicUsize,
}

/// Size of the directory.
#[derive(Debug)]
struct Used {
    bytes: u64,
    /// Time of the last measurement. The size received since then is added.
    measured: Option<Instant>,
}

impl Quota {
    /// The quota of the receiver that writes into `dir`.
    pub fn new(dir: PathBuf, most: Option<u64>) -> Self {
        // The other half is for connections, pipes, and chunks that are being finished.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self {
            dir,
            most,
            used: Mutex::new(Used {
                bytes: 0,
                measured: None,
            }),
            most_streams: usize::try_from(files / 2).unwrap_or(usize::MAX),
            streams: AtomicUsize::new(0),
        }
    }

    /// Reserves `bytes` bytes.
    pub fn take(&self, bytes: u64) -> Result<(), Trouble> {
        let Some(most) = self.most else {
            return Ok(());
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.bytes.saturating_add(bytes) > most || used.measured.is_none() {
            if used.measured.is_none_or(|at| at.elapsed() >= MEASURE) {
                used.bytes = measure(&self.dir, DEPTH)?;
                used.measured = Some(Instant::now());
            }
            if used.bytes.saturating_add(bytes) > most {
                return Err(Trouble::passing(format!(
                    "the receiver's traces take the {most} bytes that --quota allows: remove some"
                )));
            }
        }
        used.bytes += bytes;
        Ok(())
    }

    /// The streams of one trace; empty at first.
    pub fn streams(&self) -> Streams<'_> {
        Streams {
            quota: self,
            open: 0,
        }
    }
}

/// The open streams of a trace, until this is dropped.
#[derive(Debug)]
pub struct Streams<'a> {
    quota: &'a Quota,
    open: usize,
}

impl Streams<'_> {
    /// Opens one more stream. A trace may have as many streams as it leaves for all other traces.
    pub fn open(&mut self) -> Result<(), Trouble> {
        let total = self.quota.streams.fetch_add(1, Ordering::Relaxed) + 1;
        self.open += 1;
        if self.open > self.quota.most_streams.saturating_sub(total) {
            return Err(Trouble::passing(format!(
                "the receiver has too many streams open: {total}"
            )));
        }
        Ok(())
    }
}

impl Drop for Streams<'_> {
    fn drop(&mut self) {
        let open = self.open;
        self.quota.streams.fetch_sub(open, Ordering::Relaxed);
    }
}

/// Disk space of the entries of a directory, and of `depth` levels of directories below it.
fn measure(dir: &Path, depth: u32) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let measured = entry.metadata().and_then(|status| {
            let own = FILE.max(status.blocks() * 512);
            Ok(match status.is_dir() && depth > 0 {
                true => own + measure(&entry.path(), depth - 1)?,
                false => own,
            })
        });
        bytes += match measured {
            // An old chunk may be removed at the same time.
            Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
            measured => measured?,
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trace_leaves_streams_to_others() {
        let quota = Quota {
            most_streams: 10,
            ..Quota::new(PathBuf::new(), None)
        };
        let (mut first, mut second) = (quota.streams(), quota.streams());
        assert_eq!((0..9).take_while(|_| first.open().is_ok()).count(), 5);
        assert_eq!((0..9).take_while(|_| second.open().is_ok()).count(), 2);
        drop((first, second));
        assert_eq!(quota.streams.load(Ordering::Relaxed), 0);
    }
}
