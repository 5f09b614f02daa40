// SPDX-License-Identifier: GPL-2.0

//! Traces of other tracers in one file: `trace.dat` and `perf.data`.
//!
//! A file is refused with its path, or all of its events can be read. The events of each stream are in order of time,
//! and there are no more of them than the file has bytes, or than it has when decompressed.

use crate::walk;
use ctf::{Item, Merge};
use std::sync::Arc;
use system::Error;

/// More bytes than any event takes when it is decompressed from one byte.
const EVENTS_PER_BYTE: u64 = 1 << 16;

/// A file of trace-cmd.
pub fn trace_dat(data: &[u8]) {
    check(b"\x17\x08\x44tracing", data);
}

/// A file of perf.
pub fn perf_data(data: &[u8]) {
    check(b"PERFILE2", data);
}

fn check(magic: &[u8], data: &[u8]) {
    let (_file, path) = walk::in_memory(&[magic, data].concat());
    let opened = match foreign::open(&path) {
        Ok(opened) => opened.expect("a known format"),
        Err(error @ (Error::Corrupt { .. } | Error::Read { .. } | Error::System { .. })) => {
            assert!(!error.to_string().is_empty());
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let metadata = Arc::new(opened.metadata);
    let streams = opened.streams.iter().map(std::slice::from_ref);
    let mut merge = Merge::new(&metadata, streams).expect("streams that were found");
    let (mut now, mut left) = (0, EVENTS_PER_BYTE * (data.len() as u64 + 1));
    while let Some((_, item)) = merge.next_item().expect("a file that can be read") {
        left = left.checked_sub(1).expect("no more events than fit");
        if let Item::Event(event) = item {
            assert!(now <= event.timestamp);
            now = event.timestamp;
            let fields = event.fields().count() + event.contexts().count();
            assert_eq!(
                fields,
                event.layout.fields.len() + event.class.contexts.len()
            );
        }
    }
}
