// SPDX-License-Identifier: GPL-2.0

//! The relation of a packet to the previous one in its stream.

use crate::header::PacketAt;
use crate::metadata::Metadata;
use std::path::Path;
use system::{Error, Result};

/// The properties of a packet that depend on the previous one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The number of packets missing between the two, or before the stream's first.
    pub packets_lost: u64,
    /// The number of events discarded from the end of the previous packet, or from the trace's begin, to its own end.
    pub events_lost: u64,
}

impl Link {
    /// Links the packet `at` in the stream `path` to `before`, if there is one. Fails if `at` cannot follow `before`:
    /// in a stream packets do not overlap, no count decreases, and all packets have one class and CPU.
    pub fn new(
        path: &Path,
        metadata: &Metadata,
        before: Option<PacketAt>,
        at: &PacketAt,
    ) -> Result<Self> {
        Self::try_new(metadata, before, at).map_err(|what| Error::Corrupt {
            path: path.to_owned(),
            offset: at.offset,
            what,
        })
    }

    fn try_new(
        metadata: &Metadata,
        before: Option<PacketAt>,
        at: &PacketAt,
    ) -> std::result::Result<Self, String> {
        let now = at.header;
        let id = now.stream_id;
        if metadata.stream(id).is_none() {
            return Err(format!("a packet of an unknown stream class {id}"));
        }
        let Some(before) = before.map(|before| before.header) else {
            return Ok(Self {
                packets_lost: now.packet_seq_num,
                events_lost: now.events_discarded,
            });
        };
        if before.stream_id != id {
            let class = before.stream_id;
            return Err(format!(
                "a packet of stream class {id} in a stream of class {class}"
            ));
        }
        if before.cpu_id != now.cpu_id {
            let (cpu, own) = (now.cpu_id, before.cpu_id);
            return Err(format!("a packet of CPU {cpu} in the stream of CPU {own}"));
        }
        let since = |name, value: u64, least| {
            value.checked_sub(least).ok_or_else(|| {
                format!("{name} is {value}, after the packet before it must be at least {least}")
            })
        };
        since("timestamp_begin", now.timestamp_begin, before.timestamp_end)?;
        let next = before.packet_seq_num.saturating_add(1);
        Ok(Self {
            packets_lost: since("packet_seq_num", now.packet_seq_num, next)?,
            events_lost: since(
                "events_discarded",
                now.events_discarded,
                before.events_discarded,
            )?,
        })
    }
}
