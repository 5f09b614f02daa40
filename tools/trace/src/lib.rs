// SPDX-License-Identifier: GPL-2.0

//! rtrace from user space.
//!
//! Parts that meet in the bytes on disk:
//!
//! - the live tracer: [`tracer`], [`session`] and [`channel`] (control files), [`settings`] and
//!   [`stats`] of channels, [`live`] (the current trace: metadata and streams), [`device`] (one stream file),
//!   [`consumer`] (the loop that moves packets to a sink), [`output`] (the sink that is a directory),
//!   [`claim`] (one writer for a directory),
//!   [`rotation`] (that which is a directory of [`chunks`]), [`viewer`] (that which hands events on as they
//!   come);
//! - what a kernel left that went down: [`region`] finds the buffers in its memory, [`dump`] in a dump of it,
//!   [`remains`] the packets in a buffer; [`recovered`] makes a trace of them;
//! - the recorded trace: [`ctf`] reads what the other half wrote, [`recording`] says how that
//!   ended.
//!
//! The consumer stands between two seams: it knows streams only by the traits of [`source`], so that
//! its tests need no kernel, and what it writes to only by that of [`sink`].

#![deny(unsafe_code)]

pub mod access;
pub mod aux_losses;
pub mod channel;
pub mod chunks;
pub mod claim;
pub mod consumer;
pub mod ctf;
pub mod device;
pub mod dump;
pub mod error;
pub mod files;
mod finisher;
pub mod latency;
pub mod live;
pub mod output;
pub mod part;
pub mod printing;
pub mod priority;
pub mod recording;
pub mod recovered;
pub mod region;
pub mod regular_file;
pub mod remains;
pub mod rotate;
pub mod rotation;
pub mod session;
pub mod settings;
pub mod signals;
pub mod sink;
pub mod snapshot;
pub mod source;
pub mod stats;
mod stream_file;
pub mod totals;
pub mod tracer;
mod transfer;
pub mod triggered;
pub mod viewer;
pub mod writing;

pub use error::{Error, Result};
pub use uuid;
