// SPDX-License-Identifier: GPL-2.0

//! Decompresses parts of a file.

use std::io::{self, Read};

/// A compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// The compression with this name. [`None`]: an unknown one.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "zlib" => Some(Self::Zlib),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Decompresses to exactly `size` bytes. Bytes beyond that are an error, not memory.
    pub fn decompress(self, bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Zlib => read(flate2::read::ZlibDecoder::new(bytes), size),
            Self::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
                read(decoder.map_err(io::Error::other)?, size)
            }
        }
    }
}

fn read(decoder: impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    // One more byte shows that there are more.
    decoder.take(size as u64 + 1).read_to_end(&mut all)?;
    match all.len() == size {
        true => Ok(all),
        false => Err(io::Error::other(format!(
            "it has not {size} bytes when decompressed"
        ))),
    }
}
