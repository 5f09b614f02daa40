// SPDX-License-Identifier: GPL-2.0

//! A channel's settings. They take effect at the next start.

use rtrace_input::number;
use schemars::JsonSchema;
use serde::Serialize;
use std::str::FromStr;
use system::{quantity, Result};

/// The treatment of a record that finds its buffer full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The record is discarded and counted.
    Discard,
    /// The oldest packet makes room (flight recorder).
    Overwrite,
}

impl Mode {
    /// Its name in the `mode` file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Overwrite => "overwrite",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        [Self::Discard, Self::Overwrite]
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| format!("`{name}` is not a mode: expected discard or overwrite"))
    }
}

/// Names of the channel settings that are passed on as text.
pub const TEXTS: [&str; 3] = ["snapshot_memory", "barrier", "source"];

/// Size and number of the sub-buffers of one CPU's buffer, written `SIZExN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct BufferSize {
    /// Bytes of a sub-buffer: a power of two, at least a page.
    pub subbuf_size: u64,
    /// Sub-buffers: a power of two, at least 2.
    pub subbuf_count: u64,
}

impl BufferSize {
    /// The default of `record`: 4 MiB for each CPU.
    pub const DEFAULT: Self = Self {
        subbuf_size: 1 << 20,
        subbuf_count: 4,
    };

    /// The smallest buffer that the running kernel allows, for a channel that records nothing.
    pub fn smallest() -> Self {
        Self {
            subbuf_size: rustix::param::page_size() as u64,
            subbuf_count: 2,
        }
    }

    /// The next larger buffer to try: first larger sub-buffers, up to 1 MiB, then more of them, up to the largest
    /// that can be written.
    pub fn doubled(self) -> Self {
        if self.subbuf_size < 1 << 20 {
            Self {
                subbuf_size: self.subbuf_size * 2,
                ..self
            }
        } else {
            Self {
                subbuf_count: self.subbuf_count.checked_mul(2).unwrap_or(1 << 63),
                ..self
            }
        }
    }
}

impl std::fmt::Display for BufferSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (size, unit) = match self.subbuf_size {
            s if s >= 1 << 20 && s % (1 << 20) == 0 => (s >> 20, "M"),
            s if s >= 1 << 10 && s % (1 << 10) == 0 => (s >> 10, "K"),
            s => (s, ""),
        };
        write!(f, "{size}{unit}x{}", self.subbuf_count)
    }
}

impl FromStr for BufferSize {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (size, count) = text
            .split_once('x')
            .ok_or("write it as SIZExN, for example 1Mx4")?;
        let subbuf_size = quantity::size(size)?;
        let subbuf_count: u64 = count
            .parse()
            .map_err(|_| format!("`{count}` is not a number of sub-buffers"))?;
        if !subbuf_size.is_power_of_two() || subbuf_size < 4096 {
            return Err(format!(
                "sub-buffer size {size}: not a power of two of at least 4K"
            ));
        }
        if !subbuf_count.is_power_of_two() || subbuf_count < 2 {
            return Err(format!(
                "{count} sub-buffers: not a power of two of at least 2"
            ));
        }
        Ok(Self {
            subbuf_size,
            subbuf_count,
        })
    }
}

/// A channel's mode, size and periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Settings {
    /// Discard or overwrite.
    pub mode: Mode,
    /// Size of each CPU's buffer.
    #[serde(flatten)]
    pub size: BufferSize,
}

impl Settings {
    /// Reads the settings, file by file.
    pub(crate) fn read(file: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let number = |name: &str| Ok(number::size(file(name)?.trim()).unwrap_or(0));
        Ok(Self {
            mode: match file("mode")?.trim() {
                "discard" => Mode::Discard,
                _ => Mode::Overwrite,
            },
            size: BufferSize {
                subbuf_size: number("subbuf_size")?,
                subbuf_count: number("subbuf_count")?,
            },
        })
    }

    /// Writes the settings, file by file.
    pub(crate) fn write(&self, file: impl Fn(&str, &str) -> Result<()>) -> Result<()> {
        file("mode", self.mode.name())?;
        file("subbuf_size", &self.size.subbuf_size.to_string())?;
        file("subbuf_count", &self.size.subbuf_count.to_string())
    }
}

/// A setting that differs from the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSetting {
    /// The file's name; `set_event` stands for the number of enabled events.
    pub file: String,
    /// Its value.
    pub value: String,
    /// Its value after a reset.
    pub default: String,
}

impl ChangedSetting {
    /// A line of the `reset` file: `FILE VALUE DEFAULT`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let setting = Self {
            file: words.next()?,
            value: words.next()?,
            default: words.next()?,
        };
        words.next().is_none().then_some(setting)
    }
}

impl std::fmt::Display for ChangedSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.file.as_str() {
            "set_event" => "events enabled",
            file => file,
        };
        write!(f, "{what} {} (not {})", self.value, self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_settings() {
        let text = |line| ChangedSetting::parse(line).map(|setting| setting.to_string());
        assert_eq!(
            text("mode discard overwrite").unwrap(),
            "mode discard (not overwrite)"
        );
        assert_eq!(
            text("set_event 1 432").unwrap(),
            "events enabled 1 (not 432)"
        );
        for bad in ["", "mode discard", "mode discard overwrite more"] {
            assert_eq!(text(bad), None);
        }
    }

    #[test]
    fn sizes() {
        assert_eq!("1Mx4".parse(), Ok(BufferSize::DEFAULT));
        assert_eq!(BufferSize::DEFAULT.to_string(), "1Mx4");
        let small: BufferSize = "4096x2".parse().unwrap();
        assert_eq!(small.to_string(), "4Kx2");
        assert_eq!(small.doubled().to_string(), "8Kx2");
        assert_eq!(BufferSize::DEFAULT.doubled().to_string(), "1Mx8");
        let most = BufferSize {
            subbuf_count: 1 << 63,
            ..BufferSize::DEFAULT
        };
        assert_eq!(most.doubled(), most);
        for bad in [
            "",
            "1M",
            "x",
            "1Mx3",
            "1Mx1",
            "3Kx4",
            "1Kx4",
            "-1x4",
            "99999999999Gx2",
            "éx2",
        ] {
            assert!(bad.parse::<BufferSize>().is_err(), "{bad}");
        }
    }
}
