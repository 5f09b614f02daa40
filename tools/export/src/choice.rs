// SPDX-License-Identifier: GPL-2.0

//! Choice of the part of a trace to export.

use crate::ftrace;
use analysis::choice::Part;
use analysis::{key, EventKey};
use anyhow::bail;
use control::events::{self, Event};
use ctf::{EventLayout, Metadata};
use std::collections::HashSet;

/// Choice of the user.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Patterns of events; all events, if there are none.
    pub patterns: Vec<String>,
    /// Range of time, and tasks.
    pub part: Part,
}

impl Choice {
    /// Returns the chosen events of a trace. A pattern without a matching event is an error.
    pub fn events(&self, metadata: &Metadata) -> anyhow::Result<HashSet<EventKey>> {
        let classes = metadata.streams.iter();
        let layouts: Vec<&EventLayout> = classes.flat_map(|class| class.events.values()).collect();
        if self.patterns.is_empty() {
            return Ok(layouts.into_iter().map(key).collect());
        }
        let events: Vec<Event> = layouts.iter().map(|layout| event(&layout.name)).collect();
        if let Some(complaint) = events::unmatched(&events, &self.patterns) {
            bail!("the trace's description: {complaint}");
        }
        let names: HashSet<&str> = events::picked(&events, &self.patterns)
            .into_iter()
            .map(|event| event.name.as_str())
            .collect();
        let pairs = layouts.into_iter().zip(&events);
        let picked = pairs.filter(|(_, event)| names.contains(event.name.as_str()));
        Ok(picked.map(|(layout, _)| key(layout)).collect())
    }
}

/// Returns the event that patterns are compared with. A trace does not say to which subsystem an event belongs,
/// so the text before the first `_` of its name counts as the subsystem.
fn event(name: &str) -> Event {
    let subsystem = match ftrace::syscall(name) {
        Some(_) => "syscalls",
        None => name.split('_').next().unwrap_or(name),
    };
    let alias = ftrace::name(name);
    let aliases = (alias != name).then(|| format!("{subsystem}:{alias}"));
    Event {
        name: format!("{subsystem}:{name}"),
        aliases: aliases.into_iter().collect(),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_that_patterns_have() {
        let names = |name| {
            let Event { name, aliases, .. } = event(name);
            [vec![name], aliases].concat().join(" ")
        };
        assert_eq!(names("sched_switch"), "sched:sched_switch");
        assert_eq!(
            names("irq_softirq_entry"),
            "irq:irq_softirq_entry irq:softirq_entry"
        );
        assert_eq!(
            names("syscall_exit_read"),
            "syscalls:syscall_exit_read syscalls:sys_exit_read"
        );
        assert_eq!(names("kfree"), "kfree:kfree");
    }
}
