// SPDX-License-Identifier: GPL-2.0

//! The actions of a session's triggers, and a way to wait for more.

use crate::session::Session;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
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
    /// The event, as `sys:event`.
    pub event: String,
    /// The trigger, as the user wrote it.
    pub text: String,
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

/// Parses the lines of the table. Columns are found by their names; the trigger is the last one.
fn parse(text: &str) -> Option<Vec<Trigger>> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next()?.split(' ').collect();
    let place = |name| names.iter().position(|known| *known == name);
    let (fired, event, trigger) = (place("fired")?, place("event")?, place("trigger")?);
    let row = |line: &str| {
        let values: Vec<_> = line.splitn(names.len(), ' ').collect();
        Some(Trigger {
            fired: values.get(fired)?.parse().ok()?,
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
        let text = "more fired time event trigger\n7 2 99 s:e snapshot:3 if a == \"b c\"\n";
        let expected = Trigger {
            fired: 2,
            event: "s:e".to_owned(),
            text: "snapshot:3 if a == \"b c\"".to_owned(),
        };
        assert_eq!(parse(text), Some(vec![expected]));
        assert_eq!(parse("fired event trigger\n"), Some(vec![]));
        for wrong in [
            "",
            "fired event\n",
            "fired event trigger\nx s:e traceon\n",
            "fired event trigger\n1 s:e\n",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
