// SPDX-License-Identifier: GPL-2.0

//! Which events patterns pick.

use crate::event::Event;
use crate::input::pattern;
use crate::sys::glob;
use kernel::prelude::*;
use kernel::str::CString;

/// A [`pattern::Pattern`] as the kernel's matcher takes it.
pub(super) struct Pattern<'a> {
    /// As it was written.
    pub(super) word: &'a str,
    /// Whether the events it matches are enabled, or, with `!`, disabled.
    pub(super) enables: bool,
    /// Whether there was an event that it picks.
    pub(super) picked: bool,
    subsystem: Option<CString>,
    event: CString,
}

/// An event's names, as patterns are matched against.
pub(super) struct Names {
    subsystem: CString,
    event: CString,
}

impl Names {
    pub(super) fn new(event: &Event) -> Result<Self> {
        Ok(Self {
            subsystem: c_string(event.subsystem())?,
            event: c_string(event.name())?,
        })
    }
}

impl<'a> Pattern<'a> {
    /// Those of a text, which white space separates.
    pub(super) fn parse(text: &'a str) -> Result<KVVec<Self>> {
        let mut patterns = KVVec::new();
        for word in text.split_ascii_whitespace() {
            let pattern = pattern::Pattern::parse(word);
            let pattern = Self {
                word,
                enables: pattern.enables,
                picked: false,
                subsystem: pattern.subsystem.map(c_string).transpose()?,
                event: c_string(pattern.event)?,
            };
            patterns.push(pattern, GFP_KERNEL)?;
        }
        Ok(patterns)
    }

    /// Whether it picks the event. A word without colon picks by event or by subsystem.
    pub(super) fn matches(&self, names: &Names) -> bool {
        match &self.subsystem {
            Some(pattern) => {
                glob::matches(pattern, &names.subsystem) && glob::matches(&self.event, &names.event)
            }
            None => {
                glob::matches(&self.event, &names.event)
                    || glob::matches(&self.event, &names.subsystem)
            }
        }
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::try_from_fmt(fmt!("{text}"))
}
