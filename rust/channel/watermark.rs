// SPDX-License-Identifier: GPL-2.0

//! How much is to be read before readers are woken.

use super::config::{Config, ConfigRefusal};
use crate::input::number;
use core::fmt;
use core::num::NonZeroU64;

/// A channel's setting.
#[derive(Clone, Copy)]
pub(crate) enum Watermark {
    /// A packet, or with a read period what there is when that ends.
    None,
    /// So many packets.
    Packets(NonZeroU64),
    /// So many bytes of a buffer, in whole sub-buffers.
    Bytes(NonZeroU64),
}

impl Watermark {
    /// What is written so: `0`, a number of packets, or one of bytes with K, M or G.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigRefusal> {
        let number = number::size(text).ok_or(ConfigRefusal(
            "must be a number of packets, or one of bytes with K, M or G",
        ))?;
        Ok(match NonZeroU64::new(number) {
            None => Self::None,
            Some(number) if text.ends_with(|c: char| c.is_ascii_digit()) => Self::Packets(number),
            Some(number) => Self::Bytes(number),
        })
    }

    /// In sub-buffers; 0: none.
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
            // Only such as were written with a unit.
            Self::Bytes(bytes) => write!(f, "{}K", bytes.get() >> 10),
        }
    }
}

/// The same, for a buffer: from how many unread bytes on there is something for readers.
#[derive(Clone, Copy)]
pub(crate) struct Threshold {
    bytes: u64,
    /// Whether whoever finishes a packet wakes them.
    wakes: bool,
}

impl Threshold {
    /// As `config` has it.
    ///
    /// At most all sub-buffers but one: while that is written in overwrite mode there are never more,
    /// and in discard mode who is woken then may yet read before something is lost.
    pub(super) fn of(config: &Config) -> Self {
        let most = config.subbuf_count as u64 - 1;
        let subbufs = config.watermark.subbufs(config);
        Self {
            bytes: subbufs.clamp(1, most) * config.subbuf_size as u64,
            wakes: subbufs != 0 || config.read_period_us == 0,
        }
    }

    /// Whether with so many unread bytes the readers are to be woken. Any context.
    pub(super) fn is_passed(self, unread: u64) -> bool {
        self.wakes && self.is_reached(unread)
    }

    /// Whether so many unread bytes are enough for them. Any context.
    pub(super) fn is_reached(self, unread: u64) -> bool {
        unread >= self.bytes
    }
}
