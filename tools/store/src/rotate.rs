// SPDX-License-Identifier: GPL-2.0

//! When a trace goes on in another chunk, and how many chunks are kept: what the user asks for.

use rtrace_input::number;
use std::str::FromStr;
use std::time::Duration;

/// The smallest packet, in bytes: no chunk can be made smaller than that.
const PAGE: u64 = 4096;

/// Units of time, in seconds.
const UNITS: [(&str, u64); 4] = [("min", 60), ("s", 1), ("h", 60 * 60), ("d", 24 * 60 * 60)];

/// How a trace is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// When the next one begins.
    pub every: Every,
    /// How many finished ones are kept, at least 1; all, if none is given.
    pub keep: Option<u64>,
}

impl Rotate {
    /// What the user asked for; not at all, without `every`.
    pub fn new(every: Option<Every>, keep: Option<u64>) -> Option<Self> {
        every.map(|every| Self { every, keep })
    }
}

/// When the next chunk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// Before the packets of one are more than so many bytes. One packet is in it in any case.
    Size(u64),
    /// So long after the last one began.
    Time(Duration),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = &text[digits.len()..];
        let time = UNITS.iter().find(|(name, _)| *name == unit);
        match (time, unit) {
            (Some((_, seconds)), _) => digits
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_mul(*seconds))
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Self::Time(Duration::from_secs(seconds)))
                .ok_or_else(|| format!("`{text}` is no time (a number of s, min, h or d)")),
            // It could be either.
            (None, "") if !digits.is_empty() => {
                Err("a unit is missing: K, M, G, or s, min, h, d".to_owned())
            }
            (None, "m") => Err("`m` could be M (a size) or min (a time)".to_owned()),
            (None, _) => match number::size(text) {
                Some(size) if size >= PAGE => Ok(Self::Size(size)),
                Some(_) => Err("a packet has at least 4K".to_owned()),
                None => Err(format!(
                    "`{text}` is no size (with K, M, G) and no time (with s, min, h, d)"
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        let time = |seconds| Ok(Every::Time(Duration::from_secs(seconds)));
        for (text, every) in [
            ("4K", Ok(Every::Size(4096))),
            ("64k", Ok(Every::Size(65536))),
            ("1G", Ok(Every::Size(1 << 30))),
            ("30s", time(30)),
            ("10min", time(600)),
            ("2h", time(7200)),
            ("1d", time(86400)),
        ] {
            assert_eq!(text.parse(), every, "{text}");
        }
        for (text, why) in [
            ("", "no size"),
            ("often", "no size"),
            ("10", "unit is missing"),
            ("10m", "could be"),
            ("3K", "at least 4K"),
            ("0G", "at least 4K"),
            ("0s", "no time"),
            ("s", "no time"),
            ("-1h", "no time"),
            ("1.5h", "no time"),
            ("99999999999999999999d", "no time"),
            ("9999999999999999d", "no time"),
            ("99999999999G", "no size"),
            ("1T", "no size"),
            ("1 G", "no size"),
            ("10 min", "no size"),
            ("10mins", "no size"),
            ("1G1", "unit is missing"),
        ] {
            let said = text.parse::<Every>().unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
