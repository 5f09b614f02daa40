// SPDX-License-Identifier: GPL-2.0

//! The actions of a session's triggers, and a way to wait for more.

use crate::session::Session;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use system::printing;
use system::{Error, Result};

/// A session's `triggered` file. poll(2) reports it readable if it has changed since it was read.
#[derive(Debug)]
pub struct Triggered {
    file: File,
    path: PathBuf,
}

/// The actions of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The number of times that it fired.
    pub fired: u64,
    /// The last time, if it is known.
    pub last: Option<Firing>,
    /// The event, as `sys:event`.
    pub event: String,
    /// The trigger, as the user wrote it.
    pub text: String,
}

/// A time at which a trigger fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Name of the thread.
    pub comm: String,
}

impl Triggered {
    /// Opens the file of a session.
    pub fn open(session: &Session) -> Result<Self> {
        let path = session.path("triggered");
        let file = File::open(&path).map_err(Error::read(&path))?;
        Ok(Self { file, path })
    }

    /// The actions up to now. [`None`]: the session is gone.
    pub fn read(&mut self) -> Result<Option<Vec<Trigger>>> {
        let mut text = String::new();
        let read = self.file.rewind();
        match read.and_then(|()| self.file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::read(&self.path)(e)),
        }
        let triggers = parse(&text).ok_or_else(|| Error::Read {
            path: self.path.clone(),
            cause: io::Error::new(io::ErrorKind::InvalidData, "expected a table of triggers"),
        })?;
        Ok(Some(triggers))
    }
}

impl AsFd for Triggered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The text for no name.
const NONE: &str = "-";

/// Returns the name of a thread in the table, in which `\ooo` is a byte.
fn name(word: &str) -> String {
    let mut pieces = word.split('\\');
    let mut bytes = pieces.next().unwrap_or("").as_bytes().to_vec();
    for piece in pieces {
        let octal = piece.get(..3).and_then(|o| u8::from_str_radix(o, 8).ok());
        bytes.extend(octal);
        bytes.extend(piece.get(3..).unwrap_or("").as_bytes());
    }
    printing::text(&bytes).into_owned()
}

/// Parses the lines of the table. Columns are found by their names; the trigger is the last one.
fn parse(text: &str) -> Option<Vec<Trigger>> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next()?.split(' ').collect();
    let place = |name| names.iter().position(|known| *known == name);
    let (fired, event, trigger) = (place("fired")?, place("event")?, place("trigger")?);
    let (time, pid, tid) = (place("time")?, place("pid")?, place("tid")?);
    let comm = place("comm")?;
    let row = |line: &str| {
        let values: Vec<_> = line.splitn(names.len(), ' ').collect();
        let comm = *values.get(comm)?;
        let last = Firing {
            time: values.get(time)?.parse().ok()?,
            pid: values.get(pid)?.parse().ok()?,
            tid: values.get(tid)?.parse().ok()?,
            comm: name(comm),
        };
        Some(Trigger {
            fired: values.get(fired)?.parse().ok()?,
            last: (comm != NONE).then_some(last),
            event: (*values.get(event)?).to_owned(),
            text: (*values.get(trigger)?).to_owned(),
        })
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_by_their_names() {
        let text = "more fired time pid tid comm event trigger\n\
            7 2 99 8 9 a\\040\\134\\303\\244b s:e snapshot:3 if a == \"b c\"\n\
            7 0 0 0 0 - s:e traceon\n";
        let expected = Trigger {
            fired: 2,
            last: Some(Firing {
                time: 99,
                pid: 8,
                tid: 9,
                comm: "a \\äb".to_owned(),
            }),
            event: "s:e".to_owned(),
            text: "snapshot:3 if a == \"b c\"".to_owned(),
        };
        let other = Trigger {
            fired: 0,
            last: None,
            event: "s:e".to_owned(),
            text: "traceon".to_owned(),
        };
        assert_eq!(parse(text), Some(vec![expected, other]));
        assert_eq!(
            parse("fired time pid tid comm event trigger\n"),
            Some(vec![])
        );
        for wrong in [
            "",
            "fired time pid tid comm event\n",
            "fired event trigger\n1 s:e traceon\n",
            "fired time pid comm event trigger\n1 1 1 a s:e traceon\n",
            "fired time pid tid comm event trigger\nx 1 1 1 a s:e traceon\n",
            "fired time pid tid comm event trigger\n1 1 x 1 a s:e traceon\n",
            "fired time pid tid comm event trigger\n1 1 1 1 a s:e\n",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
