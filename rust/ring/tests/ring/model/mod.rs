// SPDX-License-Identifier: GPL-2.0

//! A machine on which the ring runs one step at a time, and what must hold on it.

pub mod explore;
pub mod log;
pub mod machine;
pub mod memory;
pub mod platform;
pub mod point;

use super::ring::Mode;

/// What a test's ring is like.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes in a sub-buffer.
    pub size: u64,
    /// Sub-buffers of the writers.
    pub count: u64,
    /// Bytes of a packet's header.
    pub header: u64,
    pub mode: Mode,
    /// Whether snapshots are taken.
    pub snapshots: bool,
    /// Where the counters start.
    pub origin: u64,
}

/// Position 0, and the last two laps before the counters of `bits` bits wrap.
pub fn origins(bits: u32, buffer: u64) -> [u64; 3] {
    let word = u64::MAX >> (64 - bits);
    let lap = |n: u64| word & 0u64.wrapping_sub(n * buffer);
    [0, lap(1), lap(2)]
}

/// Whether to search for minutes instead of seconds.
pub fn long() -> bool {
    std::env::var("RTRACE_VERIFY").is_ok_and(|value| value == "long")
}
