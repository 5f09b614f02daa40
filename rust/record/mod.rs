// SPDX-License-Identifier: GPL-2.0

//! The write side: what runs when an event is recorded.

pub(crate) mod buffer;
pub(crate) mod clock;
pub(crate) mod format;
pub(crate) mod gate;
pub(crate) mod header;
pub(crate) mod memory;
pub(crate) mod packet;
