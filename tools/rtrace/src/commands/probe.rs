// SPDX-License-Identifier: GPL-2.0

//! `rtrace probe`: defines, lists and deletes dynamic events.

use crate::args::ProbeArgs;
use control::Tracer;
use record::place::Place;
use record::probe;
use serde::Serialize;
use terminal::{print, print_json};

/// Defines or deletes events; without any, lists the events.
pub fn probe(place: &Place, args: &ProbeArgs) -> anyhow::Result<()> {
    let tracer = place.tracer()?;
    if !args.delete.is_empty() {
        return probe::delete(&tracer, &args.delete);
    }
    if args.specs.is_empty() {
        return list(&tracer, args.json);
    }
    for line in probe::add(&tracer, &args.specs)? {
        print(&format!("{line}\n"))?;
    }
    Ok(())
}

/// A dynamic event as JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: String,
    definition: &'a str,
}

fn list(tracer: &Tracer, json: bool) -> anyhow::Result<()> {
    let events = tracer.dynamic_events()?;
    if json {
        let rows = events.iter().map(|event| Row {
            name: event.to_string(),
            definition: &event.definition,
        });
        return Ok(print_json(&rows.collect::<Vec<_>>())?);
    }
    for event in events {
        print(&format!("{}\n", event.definition))?;
    }
    Ok(())
}
