// SPDX-License-Identifier: GPL-2.0

//! A trace: its probes, the numbers of its events, its metadata, its text, and the marks in it.

mod addresses;
mod described;
mod leaps;
mod lines;
mod marker;
mod metadata;
mod numbers;
mod probes;
mod state;
mod trace;

pub(crate) use addresses::HiddenAddresses;
pub(crate) use leaps::Leaps;
pub(crate) use lines::Lines;
pub(super) use numbers::EventNumbers;
pub(super) use trace::{start, Recording};
pub(crate) use trace::{Trace, TraceChannel};
