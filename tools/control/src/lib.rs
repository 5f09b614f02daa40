// SPDX-License-Identifier: GPL-2.0

//! The tracer's control files, and the traces that its sessions record.
//!
//! [`Tracer`] has [`Session`]s, which have [`Channel`]s with [`Settings`]. [`LiveTrace`] is the consumer's source:
//! the current trace of a session, its metadata and stream files. [`events`] picks events by patterns, [`snapshot`]
//! takes the contents of a session's buffers.

#![deny(unsafe_code)]

mod aux_losses;
mod channel;
mod device;
pub mod events;
mod live;
mod maps;
mod session;
mod settings;
pub mod snapshot;
mod tracer;
mod triggered;
mod unwind;

pub use channel::{Channel, EventFilter};
pub use live::LiveTrace;
pub use session::{FunctionSet, Session, TaskSet};
pub use settings::{BufferSize, Mode, Settings, TEXTS};
pub use tracer::{usual_place, OnClose, Tracer, Waiting, DEBUGFS, DEFAULT_SESSION, FIRST_CHANNEL};
pub use triggered::{Firing, Trigger, Triggered};
pub use unwind::{Unwind, WantedTable};
