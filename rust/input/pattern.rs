// SPDX-License-Identifier: GPL-2.0

//! Patterns that pick events: what the `set_event` file takes.

use super::glob;
use core::fmt;

/// `[!]subsystem:event`, `[!]event` or `[!]subsystem`, each a shell pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'a> {
    /// Whether the events it matches are enabled, or, with `!`, disabled.
    pub enables: bool,
    /// What stands before the first colon. Without a colon the word picks by event or by
    /// subsystem.
    pub subsystem: Option<&'a str>,
    /// The rest.
    pub event: &'a str,
}

impl<'a> Pattern<'a> {
    /// Takes a word apart. Every word is a pattern.
    pub fn parse(word: &'a str) -> Self {
        let (enables, word) = match word.strip_prefix('!') {
            Some(word) => (false, word),
            None => (true, word),
        };
        let (subsystem, event) = match word.split_once(':') {
            Some((subsystem, event)) => (Some(subsystem), event),
            None => (None, word),
        };
        Self {
            enables,
            subsystem,
            event,
        }
    }

    /// Subsystem and event, if it can pick but one by its name.
    pub fn full_name(&self) -> Option<(&'a str, &'a str)> {
        let subsystem = self.subsystem?;
        (is_name(subsystem) && is_name(self.event)).then_some((subsystem, self.event))
    }

    /// Whether it says, by its name, what subsystem its events are of.
    pub fn names_subsystem(&self) -> bool {
        is_name(self.subsystem.unwrap_or(self.event))
    }

    /// Whether an event of this name is one that it picks.
    pub fn matches(&self, subsystem: &str, event: &str) -> bool {
        let is_event = glob::matches(self.event, event);
        match self.subsystem {
            Some(pattern) => is_event && glob::matches(pattern, subsystem),
            None => is_event || glob::matches(self.event, subsystem),
        }
    }
}

/// Whether it is no shell pattern.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['*', '?', '[', '\\'])
}

/// As it was written.
impl fmt::Display for Pattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.enables {
            f.write_str("!")?;
        }
        if let Some(subsystem) = self.subsystem {
            write!(f, "{subsystem}:")?;
        }
        f.write_str(self.event)
    }
}
