// SPDX-License-Identifier: GPL-2.0

//! The file that the writer of a trace puts beside it: whether the recording ended, and the kernel's final counters.
//! The packets cannot show this: overwritten events leave only gaps, and events that did not fit on the disk leave
//! nothing.
//!
//! The file's name begins with a dot, so that readers of CTF leave it alone.

use crate::beside::RECORDING;
use crate::folder::Folder;
use crate::part::ChunkPlace;
use consumer::stats::TraceStats;
use consumer::{State, Totals};
use ctf::StreamName;
use rustix::fs::{fallocate, FallocateFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::access::Access;
use system::{Error, Result};
use uuid::Uuid;

/// The maximum length of a line: eleven counters, with room for more.
const LINE: u64 = 512;

/// Lines before the tables, with room for more.
const HEAD_LINES: usize = 8;

/// Bytes that are reserved for the file of a trace with these `streams`, and with `part` lines about its place.
pub fn reserved(streams: &[StreamName], part: usize) -> u64 {
    let channels: BTreeSet<_> = streams.iter().map(|stream| &stream.channel).collect();
    // A channel has its name, the names of columns, and a total.
    LINE * (streams.len() + 3 * channels.len() + part + HEAD_LINES) as u64
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Recording {
    /// The state of the recording.
    pub state: State,
    /// Events that the kernel had recorded, and that will never be on the disk.
    pub unwritten: u64,
    /// The kernel's counters at the end. [`None`]: the recording continues, or the counters are gone.
    pub stats: Option<TraceStats>,
    /// The place in the trace, if it is a chunk.
    pub part: Option<ChunkPlace>,
}

impl Recording {
    /// Reads the file beside the trace `uuid` in `dir`. [`None`]: it is missing, or belongs to another trace. An
    /// incomplete text means that the recording did not end.
    pub fn read(dir: &Path, uuid: Uuid) -> Result<Option<Self>> {
        let Some(mut lines) = RECORDING.open(dir)? else {
            return Ok(None);
        };
        let mut text = String::new();
        loop {
            match lines.next_line() {
                Ok(Some(line)) => text.extend([line, "\n"]),
                Ok(None) => break,
                // Like an incomplete text.
                Err(Error::Text { .. }) => {
                    text.clear();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let (trace, recording) = Self::parse(&text).unwrap_or_else(|_| {
            let unfinished = Self {
                state: State::Writing,
                unwritten: 0,
                stats: None,
                part: None,
            };
            (uuid.to_string(), unfinished)
        });
        Ok((trace == uuid.to_string()).then_some(recording))
    }

    /// Returns the trace, and the recording as the text describes it.
    pub fn parse(text: &str) -> std::result::Result<(String, Self), String> {
        let begins = |line: &str| line.starts_with("channel ") || line.starts_with("cpu ");
        let mut lines = text.split_inclusive('\n');
        let head: usize = lines
            .by_ref()
            .take_while(|line| !begins(line))
            .map(str::len)
            .sum();
        let (head, tables) = text.split_at(head);
        let (mut trace, mut state, mut unwritten, mut part) = (None, None, 0, None);
        for line in head.lines() {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "trace" => trace = Some(value.to_owned()),
                "state" => state = State::ALL.into_iter().find(|state| state.name() == value),
                "unwritten" => {
                    unwritten = value
                        .parse()
                        .map_err(|_| format!("`{line}`: expected a number of events"))?;
                }
                // A newer tool may write more lines.
                _ => ChunkPlace::parse_line(&mut part, name, value)
                    .map_err(|what| format!("`{line}`: {what}"))?,
            }
        }
        let stats = match tables {
            "" => None,
            tables => Some(TraceStats::parse(tables)?),
        };
        Ok((
            trace.ok_or("no line `trace`")?,
            Self {
                state: state.ok_or("no line `state` with a known state")?,
                unwritten,
                stats,
                part,
            },
        ))
    }

    /// The totals of the trace, or of the chunk, which holds `recorded` events. [`None`]: the kernel's counters are
    /// missing.
    pub fn totals(&self, recorded: u64) -> Option<Totals> {
        let before = self.lost_before(|_| true);
        self.stats.as_ref().map(|stats| Totals {
            recorded,
            lost: (stats.all.total.lost().saturating_sub(before)).saturating_add(self.unwritten),
        })
    }

    /// Whether it covers the trace from its beginning.
    pub fn is_from_start(&self) -> bool {
        self.part.as_ref().is_none_or(|part| part.chunk == 1)
    }

    /// This chunk and the next one together.
    pub fn join(self, next: Self) -> Self {
        Self {
            unwritten: self.unwritten.saturating_add(next.unwritten),
            part: self.part,
            ..next
        }
    }

    /// The counted events that streams had lost before this chunk began, for the streams that `is_meant` picks.
    pub fn lost_before(&self, is_meant: impl Fn(&StreamName) -> bool) -> u64 {
        let part = self.part.as_ref();
        part.map_or(0, |part| part.lost_before(is_meant))
    }
}

/// The file while a trace is being written.
#[derive(Debug)]
pub struct RecordingFile {
    path: PathBuf,
    file: File,
    uuid: Uuid,
    /// The place in the trace, if it is a chunk.
    part: Option<ChunkPlace>,
}

impl RecordingFile {
    /// Notes in `folder` that the trace `uuid`, or a part of it, is being written. Reserves the space for the final
    /// text of these `streams`, because the disk may be full at the end.
    pub fn begin(
        folder: &Folder,
        uuid: Uuid,
        streams: &[StreamName],
        access: Access,
        part: Option<ChunkPlace>,
    ) -> Result<Self> {
        let path = folder.path().join(RECORDING.name);
        let file = folder.open_or_create(RECORDING.name, access)?;
        let bytes = reserved(streams, part.as_ref().map_or(0, ChunkPlace::lines));
        let this = Self {
            path,
            file,
            uuid,
            part,
        };
        this.write(State::Writing, 0, "")
            // After the write, which truncates the file and releases the rest.
            .and_then(|()| this.reserve(bytes))
            .map_err(Error::write(&this.path))?;
        Ok(this)
    }

    /// Writes how the recording ended, with the text of the channels' `stats` (empty if they are gone).
    pub fn end(&self, state: State, unwritten: u64, stats: &str) -> Result<()> {
        self.write(state, unwritten, stats)
            .map_err(Error::write(&self.path))
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // Then there may be no room at the end, and the trace stays unfinished.
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn write(&self, state: State, unwritten: u64, stats: &str) -> io::Result<()> {
        let mut text = String::new();
        let name = state.name();
        let _ = write!(
            text,
            "trace {}\nstate {name}\nunwritten {unwritten}\n",
            self.uuid
        );
        if let Some(part) = &self.part {
            let _ = write!(text, "{part}");
        }
        text.push_str(stats);
        // Writes in place, because another file might find no room.
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const UUID: Uuid = Uuid::from_bytes([7; 16]);

    fn begin(dir: &Path) -> RecordingFile {
        let stream = StreamName {
            channel: "channel0".to_owned(),
            cpu: 0,
        };
        let folder = Folder::open(dir, Access::default()).unwrap();
        RecordingFile::begin(&folder, UUID, &[stream], Access::default(), None).unwrap()
    }
    const STATS: &str = "cpu recorded overwritten full\n0 10 1 2\ntotal 10 1 2\n";

    #[test]
    fn what_was_said_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Recording::read(dir.path(), UUID).unwrap(), None);
        let file = begin(dir.path());
        let begun = Recording::read(dir.path(), UUID).unwrap().unwrap();
        assert_eq!((begun.state, &begun.stats), (State::Writing, &None));
        assert_eq!(begun.totals(9), None);
        file.end(State::Failed, 5, STATS).unwrap();
        let ended = Recording::read(dir.path(), UUID).unwrap().unwrap();
        assert_eq!(ended.state, State::Failed);
        assert_eq!(
            ended.totals(4),
            Some(Totals {
                recorded: 4,
                lost: 8
            })
        );
        // Only a part of it reached the disk.
        fs::write(dir.path().join(RECORDING.name), "trace 07\nstate ov").unwrap();
        let torn = Recording::read(dir.path(), UUID).unwrap();
        assert_eq!(torn.as_ref(), Some(&begun));
        // A continued recording has a shorter text than the one before. No old text is left.
        begin(dir.path());
        assert_eq!(Recording::read(dir.path(), UUID).unwrap(), Some(begun));
        assert_eq!(
            Recording::read(dir.path(), Uuid::from_bytes([8; 16])).unwrap(),
            None
        );
    }

    #[test]
    fn a_chunk_says_what_was_lost_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let before = "channel channel0\ncpu full overwritten\n0 3 1\n1 0 0\ntotal 3 1\n";
        let before = TraceStats::parse(before).unwrap();
        let part = ChunkPlace::new(7, Some(&before));
        let access = Access::default();
        let folder = Folder::open(dir.path(), access).unwrap();
        let file = RecordingFile::begin(&folder, UUID, &[], access, Some(part.clone()));
        let begun = Recording::read(dir.path(), UUID).unwrap().unwrap();
        assert_eq!((begun.state, begun.part), (State::Writing, Some(part)));
        let stats = "channel channel0\ncpu full\n0 9\n1 1\ntotal 10\n";
        file.unwrap().end(State::Stopped, 2, stats).unwrap();
        let ended = Recording::read(dir.path(), UUID).unwrap().unwrap();
        assert_eq!(ended.lost_before(|stream| stream.cpu == 0), 4);
        assert_eq!(ended.lost_before(|stream| stream.cpu == 1), 0);
        assert_eq!(ended.totals(5).map(|totals| totals.lost), Some(10 - 4 + 2));
    }

    #[test]
    fn more_may_be_said_and_rubbish_is_refused() {
        let (trace, recording) =
            Recording::parse("trace t\ncolour red\nstate over\ncpu recorded\ntotal 3\n").unwrap();
        assert_eq!(trace, "t");
        assert_eq!(recording.totals(3).map(|totals| totals.lost), Some(0));
        let (_, recording) = Recording::parse(
            "trace t\nstate over\nchannel a\ncpu full\ntotal 3\nchannel b\ncpu full\ntotal 4\n",
        )
        .unwrap();
        assert_eq!(recording.totals(1).map(|totals| totals.lost), Some(7));
        assert_eq!(recording.stats.unwrap().channels.len(), 2);
        for text in [
            "",
            "trace t\n",
            "state over\n",
            "trace t\nstate odd\n",
            "trace t\nstate over\nunwritten -1\n",
            "trace t\nstate over\ncpu recorded\n0\n",
            "trace t\nstate over\nchannel a\n",
            "trace t\nstate over\nchunk x\n",
            "trace t\nstate over\nchunk 2\nlost_before a 0\n",
            "trace t\nstate over\nchunk 2\nlost_before a 0 -1\n",
        ] {
            assert!(Recording::parse(text).is_err(), "{text}");
        }
    }
}
