// SPDX-License-Identifier: GPL-2.0

//! Reactions to events, whether the session records them or not: triggers and maps.

mod maps;
mod standing;
mod triggers;
mod written;

pub(super) use maps::Maps;
pub(super) use triggers::Triggers;
