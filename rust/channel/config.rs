// SPDX-License-Identifier: GPL-2.0

//! A channel's settings, and their valid values. Only this file checks them.

use super::platform::BarrierPolicy;
use super::watermark::Watermark;
use crate::ring::Mode;
use crate::sys::pages::PAGE_SIZE;
use core::fmt;
use kernel::prelude::*;

/// The writers of a channel's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordSource {
    /// Probes, in the context in which the event fires.
    Probes,
    /// A thread of the module, which takes events of programs from their rings.
    Rings,
}

/// Settings of a channel. They take effect when a trace starts.
#[derive(Clone, Copy)]
pub(crate) struct Config {
    /// The behaviour when the buffer is full.
    pub(crate) mode: Mode,
    /// Size of a sub-buffer in bytes.
    pub(crate) subbuf_size: usize,
    /// Number of sub-buffers in a buffer.
    pub(crate) subbuf_count: usize,
    /// Period in microseconds after which a partly filled packet is closed while its stream is read; 0: never.
    pub(crate) switch_period_us: u32,
    /// Period in microseconds after which readers are woken if there is something to read; 0: never.
    pub(crate) read_period_us: u32,
    /// Amount of unread data at which readers are woken earlier.
    pub(crate) watermark: Watermark,
    /// Whether the memory of a snapshot is kept for the next one.
    pub(crate) keeps_snapshot_memory: bool,
    /// Size in bytes of each CPU's AUX area; 0: no area.
    pub(crate) aux_size: usize,
    /// The side that pays for the order between writer and reader. (The default is a parameter of the module.)
    pub(crate) barriers: BarrierPolicy,
    /// The writers of the records.
    pub(crate) source: RecordSource,
    /// First position. A parameter of the module, for tests of their wrap.
    pub(crate) origin: u64,
}

impl Config {
    /// A flight recorder of 4 x 1 MiB per CPU.
    pub(crate) const DEFAULT: Self = Self {
        mode: Mode::Overwrite,
        subbuf_size: 1 << 20,
        subbuf_count: 4,
        switch_period_us: 1_000_000,
        read_period_us: 0,
        watermark: Watermark::None,
        keeps_snapshot_memory: false,
        aux_size: 0,
        barriers: BarrierPolicy::Auto,
        source: RecordSource::Probes,
        origin: 0,
    };

    /// Maximum size of a buffer in bytes. Sizes and positions in it cannot overflow.
    const MAX_BUFFER: usize = 1 << 40;
    /// Maximum number of sub-buffers.
    const MAX_COUNT: usize = 1 << 16;
    /// Minimum period in microseconds. A shorter one would leave the CPU no time for other work.
    const MIN_PERIOD_US: u32 = 100;

    /// These settings with the smallest possible buffer.
    pub(crate) fn smallest(self) -> Self {
        Self {
            subbuf_size: PAGE_SIZE,
            subbuf_count: 2,
            ..self
        }
    }

    /// These settings with another sub-buffer size.
    pub(crate) fn with_subbuf_size(self, size: usize) -> Result<Self, ConfigRefusal> {
        if !size.is_power_of_two() {
            return Err(ConfigRefusal("subbuf_size must be a power of two"));
        }
        if size < PAGE_SIZE {
            return Err(ConfigRefusal("subbuf_size must be at least a page"));
        }
        Self {
            subbuf_size: size,
            ..self
        }
        .checked()
    }

    /// These settings with another number of sub-buffers.
    pub(crate) fn with_subbuf_count(self, count: usize) -> Result<Self, ConfigRefusal> {
        if !count.is_power_of_two() || count < 2 {
            return Err(ConfigRefusal(
                "subbuf_count must be a power of two, at least 2",
            ));
        }
        if count > Self::MAX_COUNT {
            return Err(ConfigRefusal("subbuf_count must be at most 65536"));
        }
        Self {
            subbuf_count: count,
            ..self
        }
        .checked()
    }

    /// These settings with another size of the AUX area.
    pub(crate) fn with_aux_size(self, size: usize) -> Result<Self, ConfigRefusal> {
        if size != 0 && (!size.is_power_of_two() || size < PAGE_SIZE) {
            return Err(ConfigRefusal(
                "must be 0, or a power of two of at least a page",
            ));
        }
        if size > Self::MAX_BUFFER {
            return Err(ConfigRefusal("must be at most 1 TiB"));
        }
        Ok(Self {
            aux_size: size,
            ..self
        })
    }

    /// These settings with another switch period.
    pub(crate) fn with_switch_period(self, us: u32) -> Result<Self, ConfigRefusal> {
        Ok(Self {
            switch_period_us: Self::period(us)?,
            ..self
        })
    }

    /// These settings with another read period.
    pub(crate) fn with_read_period(self, us: u32) -> Result<Self, ConfigRefusal> {
        Ok(Self {
            read_period_us: Self::period(us)?,
            ..self
        })
    }

    fn period(us: u32) -> Result<u32, ConfigRefusal> {
        if us != 0 && us < Self::MIN_PERIOD_US {
            return Err(ConfigRefusal("a period must be 0 (off) or at least 100 us"));
        }
        Ok(us)
    }

    fn checked(self) -> Result<Self, ConfigRefusal> {
        match self.subbuf_size.checked_mul(self.subbuf_count) {
            Some(bytes) if bytes <= Self::MAX_BUFFER => Ok(self),
            _ => Err(ConfigRefusal(
                "subbuf_size x subbuf_count must be at most 1 TiB",
            )),
        }
    }
}

/// Reason why a setting was refused, as text for the user.
#[derive(Clone, Copy)]
pub(crate) struct ConfigRefusal(pub(crate) &'static str);

impl kernel::fmt::Display for ConfigRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
