// SPDX-License-Identifier: GPL-2.0

//! The text of a `metadata` file, which may be in packets.

use std::path::Path;
use system::{Error, Result};
use uuid::Uuid;

/// The first word of a packet of metadata.
const MAGIC: u32 = 0x75D1_1D57;

/// The size of a packet's header in bytes.
const HEADER: usize = 37;

/// The text in `bytes`, and the id of the trace that its packets have.
pub fn text(bytes: &[u8], path: &Path) -> Result<(String, Option<Uuid>)> {
    let is_big = match bytes.first_chunk() {
        Some(magic) if u32::from_le_bytes(*magic) == MAGIC => false,
        Some(magic) if u32::from_be_bytes(*magic) == MAGIC => true,
        _ => return Ok((String::from_utf8_lossy(bytes).into_owned(), None)),
    };
    let (mut text, mut id, mut at) = (Vec::new(), None, 0);
    while at < bytes.len() {
        let corrupt = |what: String| Error::Corrupt {
            path: path.to_owned(),
            offset: at as u64,
            what,
        };
        let short =
            || corrupt("a packet of metadata that ends after the end of the file".to_owned());
        let header = bytes.get(at..at + HEADER).ok_or_else(short)?;
        let word = |place: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&header[place..place + 4]);
            if is_big {
                u32::from_be_bytes(word)
            } else {
                u32::from_le_bytes(word)
            }
        };
        if word(0) != MAGIC {
            return Err(corrupt(format!(
                "no packet of metadata begins here (magic {:#010x}, expected {MAGIC:#010x})",
                word(0)
            )));
        }
        let uuid = Uuid::from_slice(&header[4..20]).ok();
        if id.is_some() && id != uuid {
            return Err(corrupt("a packet of metadata of another trace".to_owned()));
        }
        id = uuid;
        let (content, size) = (word(24) as usize, word(28) as usize);
        let [compression, encryption, _, major, minor] = [32, 33, 34, 35, 36].map(|at| header[at]);
        if compression != 0 || encryption != 0 {
            let what = "metadata that is compressed or encrypted: rtrace cannot read it";
            return Err(corrupt(what.to_owned()));
        }
        if !matches!((major, minor), (1, 8) | (2, _)) {
            return Err(corrupt(format!(
                "metadata of CTF {major}.{minor}: rtrace reads versions 1.8 and 2"
            )));
        }
        if content % 8 != 0 || size % 8 != 0 || content > size || content / 8 < HEADER {
            return Err(corrupt(format!(
                "{content} bits of content in a packet of metadata of {size} bits"
            )));
        }
        text.extend_from_slice(bytes.get(at + HEADER..at + content / 8).ok_or_else(short)?);
        at += size / 8;
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), id))
}
