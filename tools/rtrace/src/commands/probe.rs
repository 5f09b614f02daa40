// SPDX-License-Identifier: GPL-2.0

//! `rtrace probe`: defines, lists and deletes dynamic events.

use crate::args::ProbeArgs;
use crate::schema::Schema;
use control::Tracer;
use record::place::Place;
use record::probe;
use schemars::JsonSchema;
use serde::Serialize;
use terminal::print;

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

/// The dynamic events, for JSON.
#[derive(JsonSchema, Serialize)]
pub struct Probes<'a> {
    probes: Vec<Row<'a>>,
}

/// A dynamic event.
#[derive(JsonSchema, Serialize)]
struct Row<'a> {
    /// Name, as for `record -e`.
    name: String,
    /// The line that defines the event.
    definition: &'a str,
}

fn list(tracer: &Tracer, json: bool) -> anyhow::Result<()> {
    let events = tracer.dynamic_events()?;
    if json {
        let probes = events.iter().map(|event| Row {
            name: event.to_string(),
            definition: &event.definition,
        });
        let probes = probes.collect();
        return Schema::Probes.print(&Probes { probes }, None);
    }
    for event in events {
        print(&format!("{}\n", event.definition))?;
    }
    Ok(())
}
