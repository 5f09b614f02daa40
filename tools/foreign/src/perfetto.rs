// SPDX-License-Identifier: GPL-2.0

//! Recognises the traces of Perfetto, which rtrace does not read.

use crate::bytes::Source;
use crate::{Format, Opened};
use std::path::Path;
use system::Result;

/// The files of Perfetto.
#[derive(Debug)]
pub struct Perfetto;

/// The first byte of each packet: field 1, whose length follows.
const PACKET: u8 = 0x0A;

/// Maximum number of bytes of the length.
const LENGTH: u64 = 5;

impl Format for Perfetto {
    fn is_likely(&self, _path: &Path) -> bool {
        false
    }

    fn open(&self, path: &Path) -> Result<Option<Opened>> {
        if !Source::begins(path, &[PACKET])? {
            return Ok(None);
        }
        let source = Source::open(path)?;
        match second(&source)? {
            true => Err(source.wrong(0, "a trace of Perfetto, which rtrace does not read")),
            false => Ok(None),
        }
    }
}

/// Whether the first packet ends where the file does, or where the next packet begins. Other files that begin with this
/// byte, such as a text after an empty line, rarely do.
fn second(source: &Source) -> Result<bool> {
    let head = source.bytes(1, LENGTH.min(source.length - 1))?;
    let Some(last) = head.iter().position(|byte| byte & 0x80 == 0) else {
        return Ok(false);
    };
    let bytes = head[..=last].iter().rev();
    let length = bytes.fold(0, |length, byte| (length << 7) | u64::from(byte & 0x7f));
    let next = 2 + last as u64 + length;
    if length == 0 || next >= source.length {
        return Ok(length > 0 && next == source.length);
    }
    Ok(source.bytes(next, 1)? == [PACKET])
}
