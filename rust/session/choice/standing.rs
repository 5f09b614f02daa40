// SPDX-License-Identifier: GPL-2.0

//! Patterns that enable events of programs when these events are registered.

use super::patterns::matches;
use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::source::program::ProgramEvent;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// Maximum number of patterns, and the most bytes of all of them.
const MAX: (usize, usize) = (1024, 64 << 10);

/// The patterns of a channel, in order, each followed by a newline. The last one that matches an event decides.
pub(in crate::session) struct StandingPatterns(KVVec<u8>);

impl StandingPatterns {
    /// No pattern.
    pub(in crate::session) const NONE: Self = Self(KVVec::new());

    /// A copy.
    pub(in crate::session) fn try_clone(&self) -> Result<Self> {
        let mut text = KVVec::new();
        text.extend_from_slice(&self.0, GFP_KERNEL)?;
        Ok(Self(text))
    }

    /// The patterns, as they were written.
    pub(in crate::session) fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        let text = core::str::from_utf8(&self.0).unwrap_or("");
        text.split_terminator('\n')
    }

    /// The patterns that enable no event by itself: all, except full names of the `listed` events.
    pub(in crate::session) fn beside<'a>(
        &'a self,
        listed: &'a [Arc<Event>],
    ) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |word| {
            let name = Pattern::parse(word).full_name();
            let mut listed = listed.iter();
            !listed.any(|event| Some(event.full_name()) == name)
        })
    }

    /// Whether there is none.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the patterns enable an event of a program.
    pub(in crate::session) fn picks(&self, event: &Event) -> bool {
        let mut patterns = self.iter().map(Pattern::parse);
        let last = patterns.rfind(|pattern| matches(pattern, event));
        last.is_some_and(|pattern| pattern.enables)
    }

    /// Adds a word of `set_event`, if it can enable or disable events of programs that are registered later. A word that
    /// disables all events of an earlier pattern removes that pattern. `ENOSPC`: there are too many patterns.
    pub(in crate::session) fn add(&mut self, word: &str) -> Result {
        let new = Pattern::parse(word);
        let may_matter = match new.subsystem {
            _ if new.is_of_programs() => true,
            _ if new.enables => false,
            // Another subsystem.
            Some(_) if new.names_subsystem() => false,
            _ => !self.is_empty(),
        };
        if !may_matter {
            return Ok(());
        }
        let mut kept = KVVec::with_capacity(self.0.len() + word.len() + 1, GFP_KERNEL)?;
        let mut put = |word: &str| {
            kept.extend_from_slice(word.as_bytes(), GFP_KERNEL)?;
            kept.push(b'\n', GFP_KERNEL)
        };
        let (mut count, mut enabling) = (0, 0);
        for known in self.iter() {
            let pattern = Pattern::parse(known);
            let is_enabled = |enables| pattern.enables == enables;
            let is_replaced = known == word || is_enabled(!new.enables) && new.covers(&pattern);
            if !is_replaced {
                put(known)?;
                count += 1;
                enabling += usize::from(pattern.enables);
            }
        }
        if new.enables || enabling != 0 {
            put(word)?;
            count += 1;
        }
        if count > MAX.0 || kept.len() > MAX.1 {
            return Err(ENOSPC);
        }
        // Without a pattern that enables events, the others have no meaning.
        *self = match new.enables || enabling != 0 {
            true => Self(kept),
            false => Self::NONE,
        };
        Ok(())
    }

    /// As [`add`](Self::add), for the name of one event. Does nothing if the event is not that of a program, or if the
    /// patterns say so already.
    pub(in crate::session) fn set(&mut self, event: &Event, enabled: bool) -> Result {
        if event.source_as::<Arc<ProgramEvent>>().is_none() || self.picks(event) == enabled {
            return Ok(());
        }
        let not = if enabled { "" } else { "!" };
        let (subsystem, name) = event.full_name();
        let word = CString::try_from_fmt(fmt!("{not}{subsystem}:{name}"))?;
        self.add(word.to_str()?)
    }
}
