// SPDX-License-Identifier: GPL-2.0

//! The formats at the boundary between the module and user space, each defined once.
//!
//! kbuild compiles this folder into the module, and cargo compiles the same files for the tools. So
//! the two sides cannot disagree:
//!
//! - [`ioctl`]: the requests on a stream file and their arguments;
//! - [`packet`]: the header of every packet (CTF packet header and context);
//! - [`header`]: the header of every event;
//! - [`dump`]: the location of the buffers in a dump of the kernel's memory;
//! - [`region`]: memory in which a trace outlives its kernel;
//! - [`schema`]: names and types of an event's fields;
//! - [`aux`]: the part of a trace that comes from an AUX area;
//! - [`records`]: the location of records and their fields in a packet;
//! - [`addresses`]: removal of the kernel's addresses from a packet, for readers that may not see
//!   them;
//! - [`line`]: a record as text, for users who have only a shell;
//! - [`names`]: names of sessions and channels that always exist;
//! - [`tsdl`]: the CTF 1.8 description of all this, which makes a trace readable.
//!
//! No code here depends on the kernel, on the ring or on `std`.

#![cfg_attr(not(MODULE), no_std)]

pub mod addresses;
pub mod aux;
pub mod dump;
pub mod header;
pub mod ioctl;
pub mod line;
pub mod names;
pub mod packet;
pub mod records;
pub mod region;
pub mod schema;
pub mod tsdl;
pub mod uuid;

/// The version of module and trace.
pub const VERSION: &str = "0.1.0";
