// SPDX-License-Identifier: GPL-2.0

//! The events that a file or a pattern selects: for selections, filters, triggers and maps.

use crate::event::Event;
use crate::input::pattern::Pattern;
use crate::session::Session;
use crate::sys::signal;
use kernel::prelude::*;
use kernel::sync::Arc;

impl Session {
    /// Calls `each` with the known events that `picks` selects. Returns whether there is one. This takes a while with
    /// thousands of patterns, or with a very long one; `EINTR`: a signal came.
    pub(in crate::session) fn for_each_picked(
        &self,
        picks: impl Fn(&Event) -> bool,
        mut each: impl FnMut(&Arc<Event>) -> Result,
    ) -> Result<bool> {
        let mut is_any = false;
        for event in self.available().known() {
            signal::go_on()?;
            if picks(event) {
                each(event)?;
                is_any = true;
            }
        }
        Ok(is_any)
    }
}

/// Whether a pattern matches a name of an event.
pub(in crate::session) fn matches(pattern: &Pattern<'_>, event: &Event) -> bool {
    let mut names = event.names();
    names.any(|(subsystem, name)| pattern.matches(subsystem, name))
}

/// Whether a pattern selects an event. A pattern that enables events without naming a subsystem matches only
/// events that exist without a request; of modules, only those of loaded ones.
pub(in crate::session) fn picks(pattern: &Pattern<'_>, event: &Event) -> bool {
    let is_meant = !pattern.enables || pattern.names_subsystem() || !event.is_explicit();
    is_meant && matches(pattern, event)
}
