// SPDX-License-Identifier: GPL-2.0

//! The place of a chunk in its trace, as the file beside it says.

use consumer::stats::TraceStats;
use ctf::StreamName;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// A chunk's place in its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ChunkPlace {
    /// Its number, from 1.
    pub chunk: u64,
    /// Events that each stream had lost before the chunk began, where that is not 0. The kernel's counters belong to
    /// the trace, not to the chunk.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "BTreeMap<String, u64>")]
    lost_before: BTreeMap<StreamName, u64>,
}

impl ChunkPlace {
    /// Chunk `chunk`, which began when the kernel's counters had these values.
    pub fn new(chunk: u64, before: Option<&TraceStats>) -> Self {
        let mut lost_before = BTreeMap::new();
        for channel in before.into_iter().flat_map(|stats| &stats.channels) {
            for row in &channel.stats.cpus {
                let stream = StreamName {
                    channel: channel.channel.clone(),
                    cpu: row.cpu,
                };
                lost_before.insert(stream, row.counters.lost());
            }
        }
        lost_before.retain(|_, lost| *lost > 0);
        Self { chunk, lost_before }
    }

    /// Lost events of the streams that `is_meant` picks.
    pub fn lost_before(&self, is_meant: impl Fn(&StreamName) -> bool) -> u64 {
        let streams = self.lost_before.iter();
        let lost = streams.filter(|(stream, _)| is_meant(stream));
        lost.fold(0, |sum, (_, lost)| sum.saturating_add(*lost))
    }

    /// The number of its lines in the file.
    pub fn lines(&self) -> usize {
        1 + self.lost_before.len()
    }

    /// Parses a line `name value` of the file, if it belongs to this part.
    pub fn parse_line(part: &mut Option<Self>, name: &str, value: &str) -> Result<(), String> {
        match name {
            "chunk" => {
                let chunk = value
                    .parse()
                    .map_err(|_| "expected the number of a chunk")?;
                part.get_or_insert_default().chunk = chunk;
            }
            "lost_before" => {
                let mut words = value.split(' ');
                let mut word = || words.next().ok_or("expected a channel, a CPU and a number");
                let stream = StreamName {
                    channel: word()?.to_owned(),
                    cpu: word()?
                        .parse()
                        .map_err(|_| "expected the number of a CPU")?,
                };
                let lost = word()?.parse().map_err(|_| "expected a number of events")?;
                part.get_or_insert_default()
                    .lost_before
                    .insert(stream, lost);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Writes the form that [`ChunkPlace::parse_line`] reads.
impl fmt::Display for ChunkPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chunk {}", self.chunk)?;
        for (StreamName { channel, cpu }, lost) in &self.lost_before {
            writeln!(f, "lost_before {channel} {cpu} {lost}")?;
        }
        Ok(())
    }
}

fn by_name<S: Serializer>(
    lost: &BTreeMap<StreamName, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let named = lost.iter().map(|(stream, lost)| (stream.to_string(), lost));
    serializer.collect_map(named)
}
