// SPDX-License-Identifier: GPL-2.0

//! How often samples are taken.

/// Samples per second and CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frequency(u32);

impl Frequency {
    /// Not in step with what runs a hundred times per second.
    pub(crate) const DEFAULT: Self = Self(99);

    /// perf has no timer that comes more often.
    pub(crate) const MAX: u32 = 100_000;

    /// [`None`]: it cannot be so.
    pub(crate) fn new(hertz: u32) -> Option<Self> {
        (1..=Self::MAX).contains(&hertz).then_some(Self(hertz))
    }

    /// The number.
    pub(crate) const fn hertz(self) -> u32 {
        self.0
    }
}
