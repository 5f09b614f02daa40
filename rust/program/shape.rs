// SPDX-License-Identifier: GPL-2.0

//! The shape of an event's fields: which bytes can be a record of the event.

/// Maximum size in bytes of the fields of a record.
pub const LONGEST: usize = 1024;

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapePart {
    /// This many bytes with any value.
    Fixed(u32),
    /// A text that ends with a NUL.
    Text,
    /// A 32-bit number, followed by as many elements of this many bytes.
    Elements(u8),
}

impl ShapePart {
    /// Returns the bytes after the part. [`None`]: it does not end within `bytes`.
    #[inline(always)]
    fn skip(self, bytes: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Fixed(size) => bytes.get(size as usize..),
            Self::Text => {
                let end = bytes.iter().position(|&byte| byte == 0)?;
                bytes.get(end.wrapping_add(1)..)
            }
            Self::Elements(size) => {
                let (count, rest) = bytes.split_first_chunk::<4>()?;
                let count = u32::from_le_bytes(*count) as usize;
                rest.get(count.checked_mul(size.into())?..)
            }
        }
    }
}

/// Returns the size of these parts at the beginning of `bytes`. [`None`]: the bytes do not begin with these parts, or the
/// parts are too long for a record.
#[inline(always)]
pub fn measure(parts: &[ShapePart], bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    for part in parts {
        rest = part.skip(rest)?;
    }
    let size = bytes.len().wrapping_sub(rest.len());
    (size <= LONGEST).then_some(size)
}

/// Returns whether `bytes` consist of exactly these parts, and are not too long for a record.
#[inline(always)]
pub fn fits(parts: &[ShapePart], bytes: &[u8]) -> bool {
    // The common case, without a loop.
    if let [ShapePart::Fixed(size)] = parts {
        return bytes.len() == *size as usize && bytes.len() <= LONGEST;
    }
    let mut rest = bytes;
    for part in parts {
        match part.skip(rest) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty() && bytes.len() <= LONGEST
}
