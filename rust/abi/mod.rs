// SPDX-License-Identifier: GPL-2.0

//! What crosses the boundary between the module and user space, written once.
//!
//! kbuild compiles this folder into the module, cargo compiles the same files for
//! the tools, so the two sides cannot disagree:
//!
//! - [`ioctl`]: the requests on a stream file and their arguments;
//! - [`packet`]: the bytes in front of every packet (CTF packet header and context);
//! - [`header`]: the bytes in front of every event;
//! - [`dump`]: where a dump of the kernel's memory has the buffers;
//! - [`region`]: memory in which a trace outlives its kernel;
//! - [`schema`]: names and types of an event's fields;
//! - [`aux`]: what an AUX area leaves in a trace;
//! - [`records`]: where they and their fields are in a packet;
//! - [`addresses`]: those of the kernel in a packet, which not everybody may see;
//! - [`line`]: a record as text, for those who have nothing but a shell;
//! - [`names`]: of what is always there;
//! - [`tsdl`]: the CTF 1.8 description of all this, which makes a trace readable.
//!
//! Nothing here depends on the kernel, on the ring or on `std`.

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
