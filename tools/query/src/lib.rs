// SPDX-License-Identifier: GPL-2.0

//! `rtrace query`: SQL over traces.
//!
//! 1. [`schema`]: the tables and columns that the traces have, from their descriptions.
//! 2. [`engine`]: SQLite checks the query against empty tables, and says which columns it reads.
//! 3. [`load`]: one pass over each trace adds the rows of these tables, with these columns.
//! 4. [`output`]: SQLite answers the query.

#![forbid(unsafe_code)]

mod container;
mod engine;
mod interruption;
mod load;
mod output;
mod percentile;
mod place;
mod samples;
mod schema;

pub use output::{Format, QueryAnswer};
pub use samples::{named, Sample, SAMPLES};

use anyhow::Context;
use engine::Engine;
use export::Target;
use interruption::Interruption;
use schema::Schema;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use store::Trace;
use terminal::{is_closed, say};

/// A query, and the format and target of its answer.
#[derive(Clone, Debug)]
pub struct Query {
    /// SQL of the query, or the name of a sample.
    pub sql: String,
    /// The traces.
    pub dirs: Vec<PathBuf>,
    /// Format of the answer.
    pub format: Format,
    /// Target of the answer.
    pub target: Target,
}

/// An open trace.
struct Opened {
    dir: PathBuf,
    trace: Trace,
    /// Names of the trace's tables, in lower case.
    tables: BTreeSet<String>,
}

fn open(dirs: &[PathBuf]) -> anyhow::Result<(Schema, Vec<Opened>)> {
    let mut schema = Schema::default();
    let traces = dirs.iter().map(|dir| {
        let trace = Trace::open(dir)?;
        Ok(Opened {
            dir: dir.clone(),
            tables: schema.add(dir, &trace)?,
            trace,
        })
    });
    let traces = traces.collect::<anyhow::Result<_>>()?;
    Ok((schema, traces))
}

/// Answers a query.
pub fn query(query: &Query) -> anyhow::Result<()> {
    let sql = named(query.sql.trim()).map_or(query.sql.as_str(), |sample| sample.sql);
    let sql = &percentile::plain(sql);
    let interruption = Interruption::catch()?;
    let (schema, traces) = open(&query.dirs)?;
    let engine = Engine::new(schema, &interruption)?;
    let needed = engine.needed(sql)?;
    for number in place::rounded(sql) {
        say(format_args!(
            "{number} exceeds SQL's integers and is rounded: to compare a column of unsigned integers, write {number:#x}"
        ));
    }
    let mut out = query.target.open(query.format.is_text())?;
    let mut verdict = Ok(());
    for Opened { dir, trace, tables } in &traces {
        if !needed.keys().any(|table| tables.contains(table)) {
            continue;
        }
        let name = || dir.display().to_string();
        let loaded = load::load(&engine.connection, &needed, dir, trace, &interruption);
        let loaded = loaded.with_context(name)?;
        export::say_losses(&loaded);
        if loaded.losses.lost > 0 {
            let lost = loaded.losses.lost;
            say(format_args!(
                "{}: {lost} events are missing from the tables",
                dir.display()
            ));
        }
        verdict = verdict.and(loaded.losses.verdict().with_context(name));
    }
    let written = query.format.write(&engine, sql, out.writer());
    let finished = written.and_then(|()| Ok(out.finish()?));
    match finished {
        // The reader of the pipe has closed it: no error.
        Err(error) if is_closed(&error) => verdict,
        Err(error) => {
            interruption.check()?;
            match error.is::<io::Error>() {
                true => Err(error.context(format!("cannot write {}", query.target))),
                false => Err(error),
            }
        }
        Ok(_) => verdict,
    }
}

/// Lists the samples, and the tables and columns of the traces.
pub fn list(dirs: &[PathBuf]) -> anyhow::Result<String> {
    let (schema, _) = open(dirs)?;
    let mut out = String::new();
    writeln!(out, "Samples:")?;
    for sample in SAMPLES {
        writeln!(out, "  {sample}")?;
    }
    if !dirs.is_empty() {
        writeln!(out, "\nTables; each also has {}:", schema::PLACE.join(", "))?;
    }
    for table in schema.tables.values() {
        let columns = table.columns.iter().map(|column| column.name.as_str());
        let columns: Vec<_> = columns.collect();
        writeln!(out, "  {}: {}", table.name, columns.join(", "))?;
    }
    Ok(out)
}
