// SPDX-License-Identifier: GPL-2.0

//! A trace of another tracer: its description up to the first NUL, and then its only stream. If the description is in
//! packets, all bytes belong to it.
//!
//! Each event that is translated can be read. The packets follow one another in the stream's file.

use ctf::{StreamReader, METADATA};
use std::fs;

/// First word of a description in packets.
const MAGIC: u32 = 0x75D1_1D57;

pub fn check(data: &[u8]) {
    let is_magic = |word: &[u8; 4]| {
        [word, &[word[3], word[2], word[1], word[0]]].contains(&&MAGIC.to_le_bytes())
    };
    let end = match data.first_chunk() {
        Some(word) if is_magic(word) => data.len(),
        _ => data
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(data.len()),
    };
    let (text, rest) = data.split_at(end);
    let stream = rest.get(1..).unwrap_or_default();
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join(METADATA), text).expect("memory");
    fs::write(dir.path().join("stream_0"), stream).expect("memory");
    let Ok(Some(opened)) = foreign::open(dir.path()) else {
        return;
    };
    for name in &opened.streams {
        let mut reader = StreamReader::open(name, &opened.metadata).expect("a stream");
        let mut end = 0;
        loop {
            match reader.next_packet() {
                Ok(None) => break,
                Ok(Some(packet)) => {
                    assert!(end <= packet.at.offset && packet.at.end() <= stream.len() as u64);
                    end = packet.at.end();
                }
                Err(error) => {
                    let damage = reader.damage(error).expect("a place in the file");
                    assert!(damage.offset + damage.bytes <= stream.len() as u64);
                    continue;
                }
            }
            let mut now = 0;
            while let Some(event) = reader.next_event().expect("a translated event") {
                assert!(now <= event.timestamp);
                now = event.timestamp;
                event.contexts().chain(event.fields()).for_each(drop);
            }
        }
    }
}
