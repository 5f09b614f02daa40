// SPDX-License-Identifier: GPL-2.0

//! Patterns that select events: the words of the `set_event` file.

use super::glob;
use core::fmt;

/// Begin of the subsystems of programs' events.
pub const OF_PROGRAMS: &str = "user.";

/// `[!]subsystem:event`, `[!]event` or `[!]subsystem`, each a shell pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'a> {
    /// Whether matching events are enabled; with `!` they are disabled.
    pub enables: bool,
    /// The text before the first colon. A word without a colon is the name of an event or of a
    /// subsystem.
    pub subsystem: Option<&'a str>,
    /// The rest of the word.
    pub event: &'a str,
}

impl<'a> Pattern<'a> {
    /// Parses a word. Every word is a pattern.
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

    /// Returns subsystem and event, if the pattern can match only one event.
    pub fn full_name(&self) -> Option<(&'a str, &'a str)> {
        let subsystem = self.subsystem?;
        (is_name(subsystem) && is_name(self.event)).then_some((subsystem, self.event))
    }

    /// Returns whether the pattern names the subsystem of its events.
    pub fn names_subsystem(&self) -> bool {
        is_name(self.subsystem.unwrap_or(self.event))
    }

    /// Returns whether each event that the pattern selects by its subsystem is that of a program.
    pub fn is_of_programs(&self) -> bool {
        let subsystem = self.subsystem.unwrap_or(self.event);
        subsystem.starts_with(OF_PROGRAMS)
    }

    /// Returns whether the pattern selects all events of programs that `other` selects. It may be `false` also then.
    pub fn covers(&self, other: &Pattern<'_>) -> bool {
        // A wildcard of `other` is matched only by a `*`.
        let is_simple = |text: &str| !text.contains(['?', '[', '\\']);
        let is_simple = is_simple(self.subsystem.unwrap_or("")) && is_simple(self.event);
        is_simple
            && match other.subsystem {
                Some(subsystem) => self.matches(subsystem, other.event),
                // No name of a program's event has a '.', as its subsystem has.
                None => self.matches(other.event, "*"),
            }
    }

    /// Returns whether the pattern selects an event of this name.
    pub fn matches(&self, subsystem: &str, event: &str) -> bool {
        let is_event = glob::matches(self.event, event);
        match self.subsystem {
            Some(pattern) => is_event && glob::matches(pattern, subsystem),
            None => is_event || glob::matches(self.event, subsystem),
        }
    }
}

/// Returns whether the text contains no wildcard.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['*', '?', '[', '\\'])
}

/// Formats the pattern as it was written.
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
