// SPDX-License-Identifier: GPL-2.0

//! Traces over the network.
//!
//! [`Sender`] is the consumer's sink that is a connection; [`Receiver`] takes the traces of any number of
//! machines, each into a directory of its own; [`watch`] shows one while it comes in.
//! [`Destination`] is where a trace goes, there or to a directory.
//! They speak in the frames of [`message`]. A packet goes back to the kernel when the receiver has written
//! it, so whatever ends in between, the receiver's word on the last packet that it has says where to go
//! on.

#![forbid(unsafe_code)]

mod destination;
mod hello;
mod incoming;
mod link;
pub mod message;
mod peer;
mod pipe;
mod progress;
mod quota;
mod receiver;
mod reception;
mod relay;
mod resolve;
mod sender;
mod slots;
mod socket;
mod stream;
mod tls;
mod traces;
mod trouble;
mod watch;
mod wire;

pub use destination::{Destination, Directory};
pub use hello::{host, Hello, Sent};
pub use peer::{absolute_address, parse_address, Peer, Security};
pub use quota::parse_quota;
pub use receiver::Receiver;
pub use sender::{Retry, Sender};
pub use tls::{ClientTls, Credentials, ServerTls};
pub use trouble::Trouble;
pub use watch::watch;

use std::sync::Arc;

/// Takes messages for people.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;
