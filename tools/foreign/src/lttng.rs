// SPDX-License-Identifier: GPL-2.0

//! LTTng's kernel events under rtrace's names.
//!
//! rtrace has LTTng's names and fields for the events that both have, so few names differ.

use ctf::FieldLayout;

/// Gives an event and its fields rtrace's names.
pub fn rename(_name: &mut String, _fields: &mut [FieldLayout]) {}

/// Gives contexts rtrace's names.
pub fn rename_contexts(_contexts: &mut [FieldLayout]) {}
