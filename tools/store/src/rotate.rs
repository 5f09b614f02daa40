// SPDX-License-Identifier: GPL-2.0

//! The user's choice of when a trace continues in another chunk, and of how many chunks to keep.

use std::str::FromStr;
use std::time::Duration;
use system::quantity;

/// The smallest packet, in bytes: a chunk cannot be smaller.
const PAGE: u64 = 4096;

/// How a trace is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// When the next chunk begins.
    pub every: Every,
    /// The number of finished chunks to keep, at least 1; all, if [`None`].
    pub keep: Option<u64>,
}

impl Rotate {
    /// The user's choice; [`None`] without `every`.
    pub fn new(every: Option<Every>, keep: Option<u64>) -> Option<Self> {
        every.map(|every| Self { every, keep })
    }
}

/// When the next chunk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// Before the packets of a chunk exceed this number of bytes. A chunk has at least one packet.
    Size(u64),
    /// This long after the last chunk began.
    Time(Duration),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // The number could be a size or a time.
        if is_number(text) {
            return Err("a unit is missing: K, M, G, or s, min, h, d".to_owned());
        }
        if text.strip_suffix('m').is_some_and(is_number) {
            return Err("`m` could be M (a size) or min (a time)".to_owned());
        }
        match (quantity::size(text), quantity::duration(text)) {
            (Ok(size), _) if size < PAGE => {
                Err("a chunk must have at least 4K, the size of a packet".to_owned())
            }
            (Ok(size), _) => Ok(Self::Size(size)),
            (_, Ok(Duration::ZERO)) => Err(format!("`{text}` is not a time")),
            (_, Ok(time)) => Ok(Self::Time(time)),
            (Err(size), Err(time)) => Err(format!("{size}; {time}")),
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
            ("1.5h", time(5400)),
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
            ("0s", "not a time"),
            ("s", "no duration"),
            ("-1h", "no duration"),
            ("99999999999999999999d", "no duration"),
            ("9999999999999999d", "no duration"),
            ("99999999999G", "no size"),
            ("1T", "no size"),
            ("1 G", "no size"),
            ("1G1", "no size"),
        ] {
            let said = text.parse::<Every>().unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
