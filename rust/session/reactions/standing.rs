// SPDX-License-Identifier: GPL-2.0

//! Triggers that a session sets at events of programs when these events are registered.

use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::input::trigger::{self as input, TriggerLine};
use crate::session::choice::patterns::matches;
use crate::sys::privilege::Rights;
use core::fmt;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// A trigger for all events that a pattern selects.
pub(super) struct StandingTrigger {
    pattern: CString,
    /// The trigger in the form in which it can be set again.
    trigger: CString,
    /// The rights of the file that set it.
    rights: Rights,
}

impl StandingTrigger {
    /// A trigger at the events of a pattern, for a file with these rights. May sleep.
    pub(super) fn new(
        pattern: &str,
        trigger: &TriggerLine<'_>,
        rights: Rights,
    ) -> Result<Arc<Self>> {
        let standing = Self {
            pattern: CString::try_from_fmt(fmt!("{pattern}"))?,
            trigger: CString::try_from_fmt(fmt!("{}", format_args!("{trigger}")))?,
            rights,
        };
        Ok(Arc::new(standing, GFP_KERNEL)?)
    }

    fn pattern(&self) -> &str {
        self.pattern.to_str().unwrap_or("")
    }

    /// The trigger.
    pub(super) fn trigger(&self) -> Result<TriggerLine<'_>, input::Error> {
        TriggerLine::parse(self.trigger.to_str().unwrap_or(""))
    }

    /// The rights of the file that set it.
    pub(super) fn rights(&self) -> Rights {
        self.rights
    }

    /// Whether the pattern selects an event.
    pub(super) fn picks(&self, event: &Event) -> bool {
        matches(&Pattern::parse(self.pattern()), event)
    }

    /// Whether pattern and action are the same. Without a given text, a marker of any text is.
    pub(super) fn does(&self, pattern: &str, wanted: &TriggerLine<'_>) -> bool {
        self.pattern() == pattern
            && self.trigger().is_ok_and(|own| {
                own.action == wanted.action
                    && own.session == wanted.session
                    && wanted.text.is_none_or(|text| own.text == Some(text))
            })
    }
}

/// The form in which the trigger can be set again.
impl fmt::Display for StandingTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trigger = self.trigger.to_str().unwrap_or("");
        write!(f, "{} {trigger}", self.pattern())
    }
}
