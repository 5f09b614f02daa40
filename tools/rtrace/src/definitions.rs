// SPDX-License-Identifier: GPL-2.0

//! `rtrace schema`: the definitions of the schemas, which come from the types that the commands print.

use crate::commands::{doctor, list, probe, sessions, status, top};
use crate::schema::{Named, Schema};
use analysis::form::{Counted, Explained, Questions};
use analysis::maps::MapObject;
use analysis::pass::Object;
use analysis::summary::Summary;
use clap::ValueEnum;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::JsonSchema;
use serde_json::Value;
use terminal::harmless_json;

/// Returns the definition of a schema.
fn definition(schema: Schema) -> schemars::Schema {
    let mut definition = match schema {
        Schema::Calls => of::<Counted>(),
        Schema::Count => of::<MapObject>(),
        Schema::Diff => of::<::diff::Compared>(),
        Schema::Doctor => of::<doctor::Checks<'static>>(),
        Schema::Events => of::<list::Events<'static>>(),
        Schema::Names => of::<list::Names<'static>>(),
        Schema::Probes => of::<probe::Probes<'static>>(),
        Schema::Query => of::<::query::QueryAnswer>(),
        Schema::Report => of::<Object<'static, Questions>>(),
        Schema::Sessions => of::<sessions::Sessions>(),
        Schema::Status => of::<status::Status>(),
        Schema::Summary => of::<Summary>(),
        Schema::Top => of::<top::TopTable>(),
        Schema::Usdt => of::<list::InPrograms<'static>>(),
        Schema::Why => of::<Object<'static, Explained>>(),
    };
    definition.insert("title".to_owned(), schema.id().into());
    definition.insert("description".to_owned(), schema.command().into());
    if let Some(name) = definition.pointer_mut("/properties/schema") {
        name["const"] = schema.id().into();
    }
    definition
}

/// The schema of what a type serialises to.
fn of<T: JsonSchema>() -> schemars::Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(in_json));
    settings.into_generator().into_root_schema_for::<Named<T>>()
}

/// Replaces words of Rust in a description.
fn in_json(schema: &mut schemars::Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("[`None`]", "null").replace("`None`", "null");
    }
}

/// Prints a schema; without `schema`, a list of the schemas.
pub fn print(schema: Option<Schema>) -> anyhow::Result<()> {
    let text = match schema {
        Some(schema) => harmless_json(serde_json::to_string_pretty(&definition(schema))? + "\n"),
        None => list(),
    };
    Ok(terminal::print(&text)?)
}

/// Returns the schemas as a list: name with version, and command.
fn list() -> String {
    let lines = Schema::value_variants()
        .iter()
        .map(|schema| format!("{:<12} {}\n", schema.id(), schema.command()));
    lines.collect()
}
