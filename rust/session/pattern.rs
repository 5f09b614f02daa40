// SPDX-License-Identifier: GPL-2.0

//! Which events a pattern picks.

use crate::event::Event;
use crate::input::pattern;
use crate::sys::glob;
use kernel::prelude::*;
use kernel::str::CString;

/// A [`pattern::Pattern`] as the kernel's matcher takes it.
pub(super) struct Pattern {
    enables: bool,
    subsystem: Option<CString>,
    event: CString,
}

impl Pattern {
    /// Takes a word apart.
    pub(super) fn parse(word: &str) -> Result<Self> {
        let pattern = pattern::Pattern::parse(word);
        let text = |text: &str| CString::try_from_fmt(fmt!("{text}"));
        Ok(Self {
            enables: pattern.enables,
            subsystem: pattern.subsystem.map(text).transpose()?,
            event: text(pattern.event)?,
        })
    }

    /// Whether the events it matches are enabled, or, with `!`, disabled.
    pub(super) fn enables(&self) -> bool {
        self.enables
    }

    /// Whether it picks `event`. A word without colon picks by event or by subsystem.
    pub(super) fn matches(&self, event: &Event) -> Result<bool> {
        let name = CString::try_from_fmt(fmt!("{}", event.name()))?;
        let subsystem = CString::try_from_fmt(fmt!("{}", event.subsystem()))?;
        Ok(match &self.subsystem {
            Some(pattern) => {
                glob::matches(pattern, &subsystem) && glob::matches(&self.event, &name)
            }
            None => glob::matches(&self.event, &name) || glob::matches(&self.event, &subsystem),
        })
    }
}
