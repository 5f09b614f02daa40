// SPDX-License-Identifier: GPL-2.0

//! Numbers.

/// Parses a number of bytes, with an optional suffix K, M or G (2^10, 2^20, 2^30). [`None`] if the
/// text is no such number, or not below 2^64.
pub fn size(text: &str) -> Option<u64> {
    let unit = match text.as_bytes().last()? {
        b'K' | b'k' => 1 << 10,
        b'M' | b'm' => 1 << 20,
        b'G' | b'g' => 1 << 30,
        _ => return text.parse().ok(),
    };
    let (digits, _) = text.split_at_checked(text.len().wrapping_sub(1))?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Parses a switch: `0` or `1`.
pub fn switch(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}
