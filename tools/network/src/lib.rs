// SPDX-License-Identifier: GPL-2.0

//! Traces over the network.
//!
//! - [`Sender`] is a sink of the consumer that sends a trace over a connection.
//! - [`Receiver`] takes the traces of any number of machines. Each trace has a directory of its own.
//! - [`watch()`] shows a trace while it is received.
//! - [`Destination`] is where a trace is written: a directory or a receiver.
//!
//! They exchange the frames of [`message`]. The sender returns a packet to the kernel after the receiver has
//! written it. So after a break, the receiver's last acknowledgement tells where to go on.

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
mod security;
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
pub use peer::{absolute_address, parse_address, Peer};
pub use quota::parse_quota;
pub use receiver::Receiver;
pub use security::Security;
pub use sender::{Retry, Sender};
pub use tls::{ClientTls, Credentials, ServerTls};
pub use trouble::Trouble;
pub use watch::watch;

use std::sync::Arc;

/// Receives messages for the user.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;
