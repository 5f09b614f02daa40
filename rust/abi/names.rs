// SPDX-License-Identifier: GPL-2.0

//! Names that both sides go by.

/// The session that is there without being made.
pub const DEFAULT_SESSION: &str = "default";

/// The channel that each session has.
pub const FIRST_CHANNEL: &str = "channel0";
