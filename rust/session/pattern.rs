// SPDX-License-Identifier: GPL-2.0

//! Patterns that pick events: what the `set_event` file takes.

use crate::event::Event;
use crate::sys::glob;
use kernel::prelude::*;
use kernel::str::CString;

/// `[!]subsystem:event`, `[!]event` or `[!]subsystem`, each a shell pattern.
pub(super) struct Pattern {
    enables: bool,
    subsystem: Option<CString>,
    event: CString,
}

impl Pattern {
    /// Takes a word apart.
    pub(super) fn parse(word: &str) -> Result<Self> {
        let (enables, word) = match word.strip_prefix('!') {
            Some(word) => (false, word),
            None => (true, word),
        };
        let text = |text: &str| CString::try_from_fmt(fmt!("{text}"));
        let (subsystem, event) = match word.split_once(':') {
            Some((subsystem, event)) => (Some(text(subsystem)?), event),
            None => (None, word),
        };
        Ok(Self {
            enables,
            subsystem,
            event: text(event)?,
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
