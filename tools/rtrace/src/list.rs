// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`: the events that can be recorded.

use crate::options::Place;
use crate::terminal::print;
use anyhow::bail;
use rtrace_input::pattern::Pattern;
use trace::tracer::Tracer;

/// Prints the events that `patterns` pick, as `set_event` takes them; all, without a pattern.
pub fn list(place: &Place, patterns: &[String], verbose: bool) -> anyhow::Result<()> {
    let tracer = Tracer::find(&place.debugfs)?;
    let mut events = tracer.available_events()?;
    if !patterns.is_empty() {
        events.retain(|event| is_picked(event, patterns));
    }
    if events.is_empty() {
        bail!("no event matches {}", patterns.join(" "));
    }
    let mut text = String::new();
    for event in &events {
        text.push_str(event);
        text.push('\n');
        if verbose {
            for field in fields(&tracer.format(event)?) {
                text.push_str("    ");
                text.push_str(field);
                text.push('\n');
            }
        }
    }
    Ok(print(&text)?)
}

/// The last pattern that matches decides.
fn is_picked(event: &str, patterns: &[String]) -> bool {
    let (subsystem, name) = event.split_once(':').unwrap_or(("", event));
    let patterns = patterns.iter().map(|word| Pattern::parse(word));
    let last = patterns
        .filter(|pattern| pattern.matches(subsystem, name))
        .last();
    last.is_some_and(|pattern| pattern.enables)
}

/// The payload's fields in a `format` text: the lines `field:type name; ...`.
fn fields(format: &str) -> impl Iterator<Item = &str> {
    format.lines().filter_map(|line| {
        let field = line.trim().strip_prefix("field:")?;
        Some(field.split(';').next().unwrap_or(field))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_of_a_format() {
        let text = "name: e\nID: 3\nformat:\n\tfield:u32 tid;\toffset:0;\tsize:4;\n\tfield:char comm[16];\n";
        assert_eq!(
            super::fields(text).collect::<Vec<_>>(),
            ["u32 tid", "char comm[16]"]
        );
    }
}
