// SPDX-License-Identifier: GPL-2.0

//! Moves the packets of a trace from a [`Source`] to a [`Sink`].
//!
//! [`Consumer`] is the loop. It uses streams only through the traits [`Source`] and [`Stream`], so that its tests
//! need no kernel, and its output only through [`Sink`]. [`viewer`] has a sink that passes on events as they arrive,
//! [`stats`] the kernel's counters of a trace.

#![forbid(unsafe_code)]

mod consumer;
mod sink;
mod source;
mod state;
pub mod stats;
pub mod transfer;
pub mod viewer;

pub use consumer::{Consumer, End, Exposed, Written};
pub use sink::Sink;
pub use source::{Source, Stream};
pub use state::State;
pub use stats::Totals;
