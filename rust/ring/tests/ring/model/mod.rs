// SPDX-License-Identifier: GPL-2.0

//! A machine on which the ring runs one step at a time, and its checks.

pub mod explore;
pub mod log;
pub mod machine;
pub mod memory;
pub mod platform;
pub mod point;

use super::ring::Mode;

/// Parameters of a test's ring.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes in a sub-buffer.
    pub size: u64,
    /// Number of sub-buffers that writers use.
    pub count: u64,
    /// Size of a packet header in bytes.
    pub header: u64,
    pub mode: Mode,
    /// Whether snapshots are taken.
    pub snapshots: bool,
    /// Initial value of the positions.
    pub origin: u64,
}

/// Position 0, and the last two laps before the counters of `bits` bits wrap.
pub fn origins(bits: u32, buffer: u64) -> [u64; 3] {
    let word = u64::MAX >> (64 - bits);
    let lap = |n: u64| word & 0u64.wrapping_sub(n * buffer);
    [0, lap(1), lap(2)]
}

/// Returns whether to search for minutes instead of seconds.
pub fn long() -> bool {
    std::env::var("RTRACE_VERIFY").is_ok_and(|value| value == "long")
}
