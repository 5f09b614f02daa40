// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`: the events that can be recorded, and the contexts.

use crate::events::{self, Event};
use crate::options::Place;
use crate::terminal::print;
use anyhow::bail;

/// Prints the events that `patterns` pick, as `set_event` takes them; all, without a pattern.
pub fn list(place: &Place, patterns: &[String], verbose: bool) -> anyhow::Result<()> {
    let tracer = place.tracer()?;
    let mut events = events::available(&tracer)?;
    events.extend(events::of_ftrace(&tracer, &events));
    let picked: Vec<&Event> = if patterns.is_empty() {
        events.iter().collect()
    } else if let Some(complaint) = events::unmatched(&events, patterns) {
        bail!(complaint);
    } else {
        events::picked(&events, patterns)
    };
    let mut text = String::new();
    for event in picked {
        text.push_str(&event.name);
        if verbose && !event.aliases.is_empty() {
            text.push_str(&format!(" ({})", event.aliases.join(", ")));
        }
        if event.is_of_ftrace {
            text.push_str(" [perf]");
        }
        text.push('\n');
        if verbose {
            for field in events::fields(&tracer, event).iter() {
                text.push_str(&format!("    {field}\n"));
            }
        }
    }
    Ok(print(&text)?)
}

/// Prints the contexts that can be recorded.
pub fn list_contexts(place: &Place) -> anyhow::Result<()> {
    let mut text = String::new();
    for context in place.tracer()?.available_contexts()? {
        text.push_str(&context);
        text.push('\n');
    }
    Ok(print(&text)?)
}
