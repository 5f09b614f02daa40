// SPDX-License-Identifier: GPL-2.0

//! Which file was mapped where, when and in which process, while a trace was recorded: a text beside the
//! trace, a line for each change.
//!
//! ```text
//! rtrace mappings 1
//! trace UUID                                  identity of the trace
//! clock MONOTONIC REALTIME                    two clocks at one moment, in nanoseconds
//! map NS PID ADDRESS LENGTH OFFSET ID PATH    code of a file was mapped (numbers are hexadecimal, except NS and PID)
//! fork NS PID TID PARENT                      a thread began; in a process of its own it has the parent's memory
//! exec NS PID                                 the process executed a program: earlier mappings are gone
//! exit NS PID TID                             a thread ended
//! lost NS COUNT                               COUNT changes were lost
//! ```
//!
//! NS is CLOCK_MONOTONIC in nanoseconds; 0 means that the state existed at the start. ID is the file's build id, or
//! `MAJOR:MINOR:INODE` of a file without one, or `-`. In PATH a newline is `
//! ` and a backslash `\\`. The lines of a process are in the order of their times. Lines of different CPUs need not
//! be.

use super::processes::Change;
use ctf::{Clock, Foreign, Metadata};
use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;
use std::path::Path;
use store::beside::{Lines, MAPPINGS};
use system::Result;
use uuid::Uuid;

const HEAD: &str = "rtrace mappings 1";

/// A file whose code was mapped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappedFile {
    /// Its path, in the process's own name space.
    pub path: String,
    /// Its build id in hexadecimal; of a file without one `MAJOR:MINOR:INODE`.
    pub id: Option<String>,
}

impl MappedFile {
    /// Its build id.
    pub fn build_id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| !id.contains(':'))
    }
}

/// The changes of all processes.
#[derive(Debug, Default)]
pub struct Mappings {
    /// The files.
    pub files: Vec<MappedFile>,
    /// The changes, in order of time, each with its time by the trace's clock in nanoseconds. The file of a mapping
    /// is an index into the files.
    pub changes: Vec<(u64, Change)>,
    /// The number of lost changes.
    pub lost: u64,
}

/// The first lines of the file, for a trace that is being recorded.
pub fn head(trace: Uuid, monotonic: u64, realtime: u64) -> String {
    format!("{HEAD}\ntrace {trace}\nclock {monotonic} {realtime}\n")
}

/// The line of a mapping.
pub struct MapLine<'a> {
    pub ns: u64,
    pub pid: u32,
    pub address: u64,
    pub len: u64,
    pub offset: u64,
    pub id: Option<&'a str>,
    pub path: &'a str,
}

impl fmt::Display for MapLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ns,
            pid,
            address,
            len,
            offset,
            id,
            path,
        } = self;
        let id = id.unwrap_or("-");
        let path = escaped(path);
        write!(
            f,
            "map {ns} {pid} {address:x} {len:x} {offset:x} {id} {path}"
        )
    }
}

/// The form of a path in a line.
pub fn escaped(path: &str) -> String {
    path.replace('\\', "\\\\").replace('\n', "\\n")
}

/// The path of a line, without escapes.
pub fn unescaped(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, c == '\\') {
            (_, true) => match rest.next() {
                Some('n') => path.push('\n'),
                other => path.extend(other),
            },
            (c, false) => path.push(c),
        }
    }
    path
}

/// Converts times of a file of mappings to the clock of the trace.
pub struct Times {
    /// The nanoseconds to add to a time.
    offset: i128,
}

impl Times {
    /// `monotonic` and `since_epoch` are one moment. The trace's clock has the time since the epoch at which it
    /// begins.
    pub fn new(clock: &Clock, monotonic: u64, realtime: u64) -> Self {
        let to_epoch = i128::from(realtime) - i128::from(monotonic);
        let offset = to_epoch - clock.since_epoch(0);
        // The trace's clock is the same clock. The rest of the difference is by how much it was set since.
        let is_same = offset.abs() < 1_000_000_000 && clock.frequency == 1_000_000_000;
        Self {
            offset: if is_same { 0 } else { offset },
        }
    }

    /// The time by the trace's clock; 0 stays 0.
    pub fn trace(&self, ns: u64) -> u64 {
        if ns == 0 {
            return 0;
        }
        u64::try_from(i128::from(ns) + self.offset).unwrap_or(0)
    }
}

impl Mappings {
    /// The mappings beside the trace in `dir`, or beside its chunks. [`None`]: they are missing, or belong to another
    /// trace.
    pub fn read(dir: &Path, metadata: &Metadata) -> Result<Option<Self>> {
        match MAPPINGS.open_of_chunks(dir)? {
            Some(lines) => Self::parse(lines, metadata.uuid, &metadata.clock),
            None => Ok(None),
        }
    }

    /// The mappings in a trace of another tracer. [`None`]: it has none.
    pub fn of(foreign: &dyn Foreign, metadata: &Metadata) -> Result<Option<Self>> {
        match foreign.mappings() {
            Some(text) => Self::parse(
                MAPPINGS.lines(text.as_bytes()),
                metadata.uuid,
                &metadata.clock,
            ),
            None => Ok(None),
        }
    }

    /// Parses mappings. [`None`]: the text belongs to another trace.
    pub fn parse(
        mut lines: Lines<impl BufRead>,
        trace: Uuid,
        clock: &Clock,
    ) -> Result<Option<Self>> {
        if lines.head()? != HEAD {
            return Err(lines.wrong(format!(
                "it is not `{HEAD}`: another version of rtrace wrote the file"
            )));
        }
        if lines.head()? != format!("trace {trace}") {
            return Ok(None);
        }
        let clocks = lines.head()?.strip_prefix("clock ").and_then(|clocks| {
            let (monotonic, realtime) = clocks.split_once(' ')?;
            Some((monotonic.parse().ok()?, realtime.parse().ok()?))
        });
        let Some((monotonic, realtime)) = clocks else {
            return Err(lines.wrong("expected `clock MONOTONIC REALTIME`"));
        };
        let times = Times::new(clock, monotonic, realtime);
        let mut mappings = Self::default();
        let mut places = HashMap::new();
        while let Some(line) = lines.next_line()? {
            if mappings.line(line, &times, &mut places).is_none() {
                return Err(lines.wrong("expected a change, such as `exec NS PID`"));
            }
        }
        // The lines of each CPU are sorted.
        mappings.changes.sort_by_key(|(ns, _)| *ns);
        Ok(Some(mappings))
    }

    fn line(
        &mut self,
        line: &str,
        times: &Times,
        places: &mut HashMap<MappedFile, usize>,
    ) -> Option<()> {
        let mut words = line.splitn(8, ' ');
        let kind = words.next()?;
        let ns = times.trace(words.next()?.parse().ok()?);
        let mut number = || words.next()?.parse().ok();
        let change = match kind {
            "map" => {
                let pid = number()?;
                let mut hex = || u64::from_str_radix(words.next()?, 16).ok();
                let (begin, len, offset) = (hex()?, hex()?, hex()?);
                let id = Some(words.next()?).filter(|id| *id != "-");
                let file = MappedFile {
                    id: id.map(str::to_owned),
                    path: unescaped(words.next()?),
                };
                let file = *places.entry(file).or_insert_with_key(|file| {
                    self.files.push(file.clone());
                    self.files.len() - 1
                });
                Change::Map {
                    pid,
                    begin,
                    end: begin.checked_add(len).filter(|_| len > 0)?,
                    offset,
                    file,
                }
            }
            "fork" => Change::Fork {
                pid: number()?,
                tid: number()?,
                parent: number()?,
            },
            "exec" => Change::Exec { pid: number()? },
            "exit" => Change::Exit {
                pid: number()?,
                tid: number()?,
            },
            "lost" => {
                let lost = u64::try_from(number()?).ok()?;
                self.lost = self.lost.saturating_add(lost);
                return Some(());
            }
            // A newer rtrace may write more kinds of lines.
            _ => return Some(()),
        };
        self.changes.push((ns, change));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock {
        frequency: 1_000_000_000,
        offset_s: 100,
        offset: 0,
    };

    fn read(text: &[u8]) -> Result<Option<Mappings>> {
        Mappings::parse(MAPPINGS.lines(text), Uuid::nil(), &CLOCK)
    }

    fn parse(lines: &str) -> Result<Option<Mappings>> {
        let text = head(Uuid::nil(), 5_000_000_000, 105_000_000_000) + lines;
        read(text.as_bytes())
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let line = MapLine {
            ns: 7,
            pid: 12,
            address: 0x1000,
            len: 0x2000,
            offset: 0x3000,
            id: Some("abcd"),
            path: "/a b\\c\nd",
        };
        let text = format!("{line}\nlost 8 3\nexec 6 12\nnews 9 x\n");
        let mappings = parse(&text).unwrap().unwrap();
        let file = &mappings.files[0];
        assert_eq!(file.path, line.path);
        assert_eq!(file.id.as_deref(), line.id);
        assert_eq!(mappings.lost, 3);
        let map = Change::Map {
            pid: 12,
            begin: 0x1000,
            end: 0x3000,
            offset: 0x3000,
            file: 0,
        };
        assert_eq!(mappings.changes, [(6, Change::Exec { pid: 12 }), (7, map)]);
    }

    #[test]
    fn what_is_no_such_text_is_refused() {
        for (lines, complaint) in [
            ("map 7 12 1000", "line 4"),
            ("map 7 12 ffffffffffffff00 2000 0 - /a", "line 4"),
            ("map 7 12 1000 0 0 - /a", "line 4"),
            ("exec x 1", "line 4"),
            ("exec 1 1\nlost 1 -1", "line 5"),
        ] {
            let error = parse(lines).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
        assert!(read(b"rtrace mappings 2\n").is_err());
        // A line without an end, as a hole in the file looks, takes no memory.
        let endless = [head(Uuid::nil(), 0, 0).into_bytes(), vec![0; 1 << 20]].concat();
        let error = read(&endless).unwrap_err();
        assert!(error.to_string().contains("line 4: it has more"), "{error}");
        let other = head(Uuid::from_u128(1), 0, 0);
        assert!(read(other.as_bytes()).unwrap().is_none());
    }

    #[test]
    fn times_are_those_of_the_traces_clock() {
        // The same clock, set by a small difference since.
        let same = Times::new(&CLOCK, 5_000_000_000, 105_000_000_100);
        assert_eq!(same.trace(9), 9);
        // Another clock, which began 40 seconds earlier, and counts thirds of nanoseconds.
        let other = Clock {
            frequency: 3_000_000_000,
            offset_s: 60,
            offset: 0,
        };
        let other = Times::new(&other, 5_000_000_000, 105_000_000_000);
        assert_eq!(other.trace(7), 40_000_000_007);
        assert_eq!(other.trace(0), 0);
    }
}
