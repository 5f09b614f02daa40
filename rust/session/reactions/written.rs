// SPDX-License-Identifier: GPL-2.0

//! The triggers as text.

use super::triggers::Placed;
use crate::event::Event;
use crate::input::hist::HIST;
use crate::input::trigger::Action;
use crate::session::Session;
use crate::sys::debugfs::text::Text;
use core::fmt::Write;
use kernel::prelude::*;

impl Session {
    /// Writes the triggers and histograms of an event, one per line, in the form in which they can be set again.
    pub(crate) fn write_triggers_of(&self, event: &Event, out: &mut Text) -> Result {
        let has_hists = self.write_hist_lines(event, out)?;
        let triggers = self.triggers();
        let mut of_event = triggers.of(event).peekable();
        if of_event.peek().is_none() && !has_hists {
            // The text that ftrace shows if an event has no trigger.
            out.write_str("# Available triggers:\n#")?;
            let mut actions = Action::ALL.into_iter();
            actions.try_for_each(|action| write!(out, " {}", action.name()))?;
            writeln!(out, " {HIST}")?;
        }
        of_event.try_for_each(|trigger| writeln!(out, "{trigger}"))?;
        Ok(())
    }

    /// Writes all triggers, each after its event or pattern. A trigger that a standing one sets is not written.
    pub(crate) fn write_triggers(&self, out: &mut Text) -> Result {
        let triggers = self.triggers();
        for standing in &triggers.standing {
            writeln!(out, "{}", **standing)?;
        }
        for placed in &triggers.placed {
            if !triggers.is_standing(placed) {
                let (subsystem, name) = (placed.event.subsystem(), placed.event.name());
                writeln!(out, "{subsystem}:{name} {}", *placed.trigger)?;
            }
        }
        Ok(())
    }

    /// Writes the counters of the triggers: a line of names, and a line for each trigger.
    pub(crate) fn write_triggered(&self, out: &mut Text) -> Result {
        out.write_str("fired merged failed time pid tid comm event trigger\n")?;
        for Placed { event, trigger } in &self.triggers().placed {
            let counts = trigger.counts();
            writeln!(
                out,
                "{} {} {} {} {} {} {} {}:{} {}",
                counts.fired,
                counts.merged,
                counts.failed,
                counts.time,
                counts.pid,
                counts.tid,
                Word(&counts.comm),
                event.subsystem(),
                event.name(),
                **trigger
            )?;
        }
        Ok(())
    }
}

/// A text as one word: a character that would end the word, or that has no picture, is `\ooo`, as in /proc/mounts.
/// An empty text is `-`.
struct Word<'a>(&'a [u8]);

impl core::fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut bytes = self.0.iter().take_while(|byte| **byte != 0).peekable();
        if bytes.peek().is_none() {
            return f.write_char('-');
        }
        bytes.try_for_each(|byte| match byte {
            b'!'..=b'~' if *byte != b'\\' => f.write_char((*byte).into()),
            _ => write!(f, "\\{byte:03o}"),
        })
    }
}
