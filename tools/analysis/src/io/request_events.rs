// SPDX-License-Identifier: GPL-2.0

//! Events of requests to block devices, with the indexes of their fields.

use crate::{bits, integer, key, text, Catalogue, EventKey};
use ctf::{Event, EventLayout};

/// Size of a sector in bytes.
pub const SECTOR: u64 = 512;

/// Number of bits in a device's minor number.
const MINOR_BITS: u32 = 20;

/// Step in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The request waits for the device.
    Insert,
    /// The device receives the request.
    Issue,
    /// The device refuses the request, which waits again.
    Requeue,
    /// The request, or a part of it, is complete.
    Complete,
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Read,
    Write,
    Flush,
    Discard,
    /// An operation on a zone: reset, append and so on.
    Zone,
    /// All other requests, which are no input or output.
    Other,
}

impl Operation {
    /// Parses the letters of the kernel (`blk_fill_rwbs`). An F in front of others requests a flush before
    /// the operation.
    fn new(rwbs: &[u8]) -> Self {
        let letters = match rwbs {
            [b'F', letters @ ..] if !letters.is_empty() => letters,
            letters => letters,
        };
        match letters.first() {
            Some(b'R') => Self::Read,
            Some(b'W') => Self::Write,
            Some(b'F') => Self::Flush,
            Some(b'D') => Self::Discard,
            Some(b'Z') => Self::Zone,
            _ => Self::Other,
        }
    }

    /// Returns the name of the operation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Zone => "zone",
            Self::Other => "other",
        }
    }
}

/// Returns the name of a device, `major:minor`. The kernel's events have its number.
pub fn name(device: u32) -> String {
    let minor = device & ((1 << MINOR_BITS) - 1);
    format!("{}:{minor}", device >> MINOR_BITS)
}

/// Kind of an event, with the indexes of its fields.
#[derive(Clone, Copy, Debug)]
pub struct RequestKind {
    /// The step that the event records.
    pub edge: Edge,
    dev: usize,
    sector: usize,
    nr_sector: usize,
    rwbs: usize,
    rq: Option<usize>,
    comm: Option<usize>,
    error: Option<usize>,
}

/// Finds the events of a trace that describe requests.
pub fn find(catalogue: &Catalogue<'_>) -> Vec<(EventKey, RequestKind)> {
    let kind = |edge, layout: &EventLayout| {
        Some(RequestKind {
            edge,
            dev: layout.field("dev")?,
            sector: layout.field("sector")?,
            nr_sector: layout.field("nr_sector")?,
            rwbs: layout.field("rwbs")?,
            rq: layout.field("rq"),
            comm: layout.field("comm"),
            error: layout.field("error"),
        })
    };
    [
        ("block_rq_insert", Edge::Insert),
        ("block_rq_issue", Edge::Issue),
        ("block_rq_requeue", Edge::Requeue),
        ("block_rq_complete", Edge::Complete),
    ]
    .into_iter()
    .filter_map(|(name, edge)| {
        let layout = catalogue.event(name)?;
        Some((key(layout), kind(edge, layout)?))
    })
    .collect()
}

/// The request that an event describes.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Number of the device.
    pub device: u32,
    /// Operation of the request.
    pub operation: Operation,
    /// First sector; 0 for an operation on the whole device.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// The kernel's address of the request; `None` if the trace does not show it.
    pub rq: Option<u64>,
    /// Name of the thread, if the event has it.
    pub comm: &'a [u8],
    /// Whether the request failed.
    pub failed: bool,
}

impl RequestKind {
    /// Reads the values of an event.
    pub fn read<'a>(&self, event: &Event<'a>) -> Option<Record<'a>> {
        let sectors = bits(event.value(self.nr_sector))?;
        // A flush is issued for sector 0 and ends for sector -1.
        let sector = bits(event.value(self.sector))?;
        Some(Record {
            device: u32::try_from(bits(event.value(self.dev))?).ok()?,
            operation: Operation::new(text(event.value(self.rwbs))?),
            sector: if sector == u64::MAX { 0 } else { sector },
            sectors,
            // The address is 0 for readers that may not see addresses.
            rq: self
                .rq
                .and_then(|rq| bits(event.value(rq)))
                .filter(|rq| *rq != 0),
            comm: self
                .comm
                .and_then(|comm| text(event.value(comm)))
                .unwrap_or_default(),
            failed: self
                .error
                .and_then(|error| integer(event.value(error)))
                .is_some_and(|error| error != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_the_kernel_writes_them() {
        for (letters, operation) in [
            ("R", Operation::Read),
            ("RA", Operation::Read),
            ("WSM", Operation::Write),
            ("FWFS", Operation::Write),
            ("WZ", Operation::Write),
            ("FF", Operation::Flush),
            ("F", Operation::Flush),
            ("DE", Operation::Discard),
            ("ZA", Operation::Zone),
            ("N", Operation::Other),
            ("", Operation::Other),
        ] {
            assert_eq!(Operation::new(letters.as_bytes()), operation, "{letters}");
        }
    }

    #[test]
    fn devices_are_called_as_in_sysfs() {
        assert_eq!(name(266_338_304), "254:0");
        assert_eq!(name((7 << 20) | 3), "7:3");
    }
}
