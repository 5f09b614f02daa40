// SPDX-License-Identifier: GPL-2.0

//! Reads the fields of a packet.

use super::model::{Integer, Order};
use memchr::memchr;

/// The reason why a field cannot be read.
#[derive(Debug)]
pub enum Fault {
    /// The bytes end before it does.
    Short,
    /// It contradicts the format.
    Bad(String),
}

/// Result of reading a field.
pub type Read<T> = Result<T, Fault>;

/// A part of a packet, and the place in it. Its first byte has an offset in the packet that is a multiple of every
/// alignment.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
    /// The bit after the last one.
    end: usize,
}

impl<'a> Bits<'a> {
    /// The first `end` bits of `bytes`, from `at` on.
    pub fn new(bytes: &'a [u8], at: usize, end: usize) -> Self {
        Self {
            bytes,
            at,
            end: end.min(8 * bytes.len()),
        }
    }

    /// The next bit.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Skips bits.
    pub fn skip(&mut self, bits: u32) {
        self.at += bits as usize;
    }

    /// Goes to the next multiple of an alignment, which is a power of two.
    #[inline]
    pub fn align(&mut self, align: u32) {
        let mask = align as usize - 1;
        self.at = (self.at + mask) & !mask;
    }

    /// The next bytes. The place is at a byte.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Read<&'a [u8]> {
        let begin = self.at / 8;
        let end = begin.checked_add(count).ok_or(Fault::Short)?;
        if 8 * end > self.end {
            return Err(Fault::Short);
        }
        self.at = 8 * end;
        self.bytes.get(begin..end).ok_or(Fault::Short)
    }

    /// The next byte; 0 at the end. The place is at a byte.
    #[inline]
    pub fn peek(&self) -> u64 {
        self.bytes
            .get(self.at / 8)
            .map_or(0, |byte| u64::from(*byte))
    }

    /// The next `N` bytes as a number, the lowest first. The place is at a byte.
    #[inline]
    pub fn little<const N: usize>(&mut self) -> Read<u64> {
        let bytes = self.bytes(N)?;
        let mut value = [0; 8];
        value[..N].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(value))
    }

    /// The next string, without its NUL. The place is at a byte.
    pub fn string(&mut self) -> Read<&'a [u8]> {
        let rest = self
            .bytes
            .get(self.at / 8..self.end / 8)
            .ok_or(Fault::Short)?;
        let length = memchr(0, rest).ok_or(Fault::Short)?;
        self.at += 8 * (length + 1);
        Ok(&rest[..length])
    }

    /// The next integer as 64 bits, sign-extended if it is signed.
    #[inline]
    pub fn integer(&mut self, integer: &Integer) -> Read<u64> {
        if integer.bits == 0 {
            return self.variable(integer.is_signed);
        }
        self.align(integer.align);
        let (begin, bits) = (self.at, usize::from(integer.bits));
        let end = begin + bits;
        if end > self.end {
            return Err(Fault::Short);
        }
        self.at = end;
        let value = match (begin % 8, bits % 8, integer.order) {
            (0, 0, Order::Little) => {
                let bytes = &self.bytes[begin / 8..end / 8];
                let mut value = [0; 8];
                value[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(value)
            }
            (0, 0, Order::Big) => {
                let bytes = &self.bytes[begin / 8..end / 8];
                bytes
                    .iter()
                    .fold(0, |value, byte| (value << 8) | u64::from(*byte))
            }
            (bit, _, order) => {
                let bytes = &self.bytes[begin / 8..end.div_ceil(8)];
                let join = |value: u128, byte: &u8| (value << 8) | u128::from(*byte);
                let value = match order {
                    Order::Little => bytes.iter().rev().fold(0, join) >> bit,
                    Order::Big => bytes.iter().fold(0, join) >> (8 * bytes.len() - bit - bits),
                };
                value as u64
            }
        };
        let unused = 64 - bits as u32;
        Ok(match integer.is_signed {
            true => ((value << unused) as i64 >> unused) as u64,
            false => value << unused >> unused,
        })
    }

    /// An integer with seven bits in each byte, the lowest first.
    fn variable(&mut self, is_signed: bool) -> Read<u64> {
        self.align(8);
        let (mut value, mut bits) = (0_u64, 0);
        loop {
            let byte = self.bytes(1)?[0];
            if bits < 64 {
                value |= u64::from(byte & 0x7f) << bits;
            }
            bits += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if bits > 70 {
                return Err(Fault::Bad("an integer of more than 64 bits".to_owned()));
            }
        }
        if is_signed && bits < 64 {
            let unused = 64 - bits;
            return Ok(((value << unused) as i64 >> unused) as u64);
        }
        Ok(value)
    }

    /// The next number in floating point.
    pub fn float(&mut self, bits: u8, align: u32, order: Order) -> Read<f64> {
        let integer = Integer {
            bits,
            align,
            is_signed: false,
            order,
            base: super::model::Base::Decimal,
            is_text: false,
            clock: None,
            save: None,
        };
        let value = self.integer(&integer)?;
        Ok(match bits {
            32 => f32::from_bits(value as u32).into(),
            _ => f64::from_bits(value),
        })
    }
}
