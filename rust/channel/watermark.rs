// SPDX-License-Identifier: GPL-2.0

//! The amount of unread data at which readers are woken.

use super::config::{Config, ConfigRefusal};
use crate::input::number;
use core::fmt;
use core::num::NonZeroU64;

/// The setting of a channel.
#[derive(Clone, Copy)]
pub(crate) enum Watermark {
    /// One packet; with a read period, the packets at its end.
    None,
    /// A number of packets.
    Packets(NonZeroU64),
    /// A number of bytes in a buffer, rounded up to whole sub-buffers.
    Bytes(NonZeroU64),
}

impl Watermark {
    /// Parses `0`, a number of packets, or a number of bytes with K, M or G.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigRefusal> {
        let number = number::size(text).ok_or(ConfigRefusal(
            "must be a number of packets, or of bytes with K, M or G",
        ))?;
        Ok(match NonZeroU64::new(number) {
            None => Self::None,
            Some(number) if text.ends_with(|c: char| c.is_ascii_digit()) => Self::Packets(number),
            Some(number) => Self::Bytes(number),
        })
    }

    /// In sub-buffers; 0: no watermark.
    fn subbufs(self, config: &Config) -> u64 {
        match self {
            Self::None => 0,
            Self::Packets(packets) => packets.get(),
            Self::Bytes(bytes) => bytes.get().div_ceil(config.subbuf_size as u64),
        }
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::Packets(packets) => write!(f, "{packets}"),
            // Only a number with a unit is parsed as bytes.
            Self::Bytes(bytes) => write!(f, "{}K", bytes.get() >> 10),
        }
    }
}

/// The watermark of a buffer: the number of unread bytes at which readers have something to read.
#[derive(Clone, Copy)]
pub(crate) struct Threshold {
    bytes: u64,
    /// Whether a finished packet wakes readers.
    wakes: bool,
}

impl Threshold {
    /// The threshold for `config`: at most all sub-buffers but one. In overwrite mode the last sub-buffer is
    /// being written, so more are never unread. In discard mode a reader that is woken then can still read
    /// before records are lost.
    pub(super) fn of(config: &Config) -> Self {
        let most = config.subbuf_count as u64 - 1;
        let subbufs = config.watermark.subbufs(config);
        Self {
            bytes: subbufs.clamp(1, most) * config.subbuf_size as u64,
            wakes: subbufs != 0 || config.read_period_us == 0,
        }
    }

    /// Whether `unread` bytes make a packet wake the readers. Any context.
    pub(super) fn is_passed(self, unread: u64) -> bool {
        self.wakes && self.is_reached(unread)
    }

    /// Whether `unread` bytes are enough for readers. Any context.
    pub(super) fn is_reached(self, unread: u64) -> bool {
        unread >= self.bytes
    }
}
