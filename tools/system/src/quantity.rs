// SPDX-License-Identifier: GPL-2.0

//! Durations and sizes as typed: one grammar each, for all options of all programs.

use jiff::{Span, SpanRelativeTo};
use rtrace_input::number;
use std::time::Duration;

/// Parses a duration: numbers with units, as `10s`, `1.5ms` or `2h30m`. A unit is required.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is no duration: a number with ns, us, ms, s, min, h or d, as 10s or 1.5ms"
        )
    };
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let span: Span = text.parse().map_err(|_| wrong())?;
    let days = SpanRelativeTo::days_are_24_hours();
    let duration = span.to_duration(days).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

/// Parses a size in bytes, with K, M or G for powers of 1024.
pub fn size(text: &str) -> Result<u64, String> {
    number::size(text)
        .ok_or_else(|| format!("`{text}` is no size: bytes, or a number with K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ns) in [
            ("0s", 0),
            ("7ns", 7),
            ("500us", 500_000),
            ("500µs", 500_000),
            ("1.5ms", 1_500_000),
            ("0.25s", 250_000_000),
            ("10s", 10_000_000_000),
            ("10min", 600_000_000_000),
            ("10m", 600_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("2h30m", 9_000_000_000_000),
            ("1d", 86_400_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for wrong in [
            "",
            "5",
            "1.5",
            "s",
            "-1s",
            "+1s",
            "PT1S",
            "1s ago",
            "nans",
            "1e400s",
            "10x",
            "1y",
            "99999999999999999999d",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64k"), Ok(65_536));
        assert_eq!(size("1G"), Ok(1 << 30));
        for wrong in ["", "1T", "1 G", "1.5M", "-1", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
