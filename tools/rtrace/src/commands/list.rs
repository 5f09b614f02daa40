// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`: the events that can be recorded, and the contexts.

use crate::options::Place;
use anyhow::bail;
use control::events::{self, Event};
use std::slice;
use terminal::print;

/// Prints the events that `patterns` pick, as `set_event` takes them; all, without a pattern.
pub fn list(place: &Place, patterns: &[String], verbose: bool) -> anyhow::Result<()> {
    let tracer = place.tracer()?;
    let mut events = events::available(&tracer)?;
    events.extend(events::of_ftrace(&tracer, &events));
    for word in patterns {
        if let Some(complaint) = events::unmatched(&events, slice::from_ref(word)) {
            if events::unmatched(&events::awaited(&tracer)?, slice::from_ref(word)).is_none() {
                bail!("no event of a module that is loaded matches `{word}`: --awaited lists the others");
            }
            bail!(complaint);
        }
    }
    let mut text = String::new();
    for event in picked(&events, patterns) {
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

/// Prints those of modules that are not loaded.
pub fn list_awaited(place: &Place, patterns: &[String]) -> anyhow::Result<()> {
    let events = events::awaited(&place.tracer()?)?;
    if let Some(complaint) = events::unmatched(&events, patterns) {
        bail!(complaint);
    }
    let picked = picked(&events, patterns);
    let lines = picked.iter().map(|event| format!("{}\n", event.name));
    Ok(print(&lines.collect::<String>())?)
}

/// Those that patterns pick; all, without a pattern.
fn picked<'a>(events: &'a [Event], patterns: &[String]) -> Vec<&'a Event> {
    if patterns.is_empty() {
        return events.iter().collect();
    }
    events::picked(events, patterns)
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
