// SPDX-License-Identifier: GPL-2.0

//! Names that both sides use.

/// The session that exists from the beginning.
pub const DEFAULT_SESSION: &str = "default";

/// The channel that each session has.
pub const FIRST_CHANNEL: &str = "channel0";
