// SPDX-License-Identifier: GPL-2.0

//! `rtrace list`: the events that can be recorded.

use crate::options::Place;
use crate::terminal::print;
use anyhow::bail;
use trace::glob;
use trace::tracer::Tracer;

/// Prints the events that match any of `patterns`; all, without a pattern.
pub fn list(place: &Place, patterns: &[String], verbose: bool) -> anyhow::Result<()> {
    let tracer = Tracer::find(&place.debugfs)?;
    let mut events = tracer.available_events()?;
    events.retain(|event| {
        patterns.is_empty() || patterns.iter().any(|pattern| glob::means(pattern, event))
    });
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
