// SPDX-License-Identifier: GPL-2.0

//! Columns of numbers in a page: LEB128, then zlib, then base64, in an element of their own. The page
//! reads them in `columns.js`.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use flate2::write::ZlibEncoder;
use flate2::Compression;
use std::io::{self, BufWriter, Write};

/// Bytes that are compressed in one go.
const PIECE: usize = 1 << 16;

/// Writes a column under this name.
pub fn write(
    out: &mut impl Write,
    name: &str,
    numbers: impl IntoIterator<Item = u64>,
) -> io::Result<()> {
    write_packed(out, name, &packed(numbers)?)
}

/// Writes a packed column.
pub fn write_packed(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    let kind = "application/octet-stream";
    writeln!(
        out,
        "<script type=\"{kind}\" id=\"column-{name}\">{text}</script>"
    )
}

/// Returns a packed column. Times vary too much for a higher compression level to gain anything.
pub fn packed(numbers: impl IntoIterator<Item = u64>) -> io::Result<String> {
    let zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    let mut bytes = BufWriter::with_capacity(PIECE, zlib);
    for number in numbers {
        leb128(&mut bytes, number)?;
    }
    let zlib = bytes.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(STANDARD.encode(zlib.finish()?))
}

/// Writes seven bits per byte, the lowest first. The highest bit of a byte says that more bytes follow.
fn leb128(out: &mut impl Write, mut number: u64) -> io::Result<()> {
    let mut bytes = [0; 10];
    let mut length = 0;
    loop {
        bytes[length] = number as u8 & 0x7f;
        length += 1;
        number >>= 7;
        if number == 0 {
            return out.write_all(&bytes[..length]);
        }
        bytes[length - 1] |= 0x80;
    }
}
