// SPDX-License-Identifier: GPL-2.0

//! `rtrace query`.

use crate::args::{trace, wrong, QueryArgs, QueryFormat};
use crate::schema::Schema;
use export::Target;
use query::{Format, Query};
use std::path::PathBuf;
use terminal::budget::Size;

/// Answers a query, or lists the samples and tables.
pub fn query(args: QueryArgs) -> anyhow::Result<()> {
    if args.list {
        // Without a query, the first word is a trace.
        let first = args.sql.map(PathBuf::from);
        let dirs: Vec<_> = first.into_iter().chain(args.dirs).collect();
        return Ok(terminal::print(&query::list(&dirs)?)?);
    }
    let Some(format) = format(&args) else {
        return Err(wrong("--budget is for tables and JSON").into());
    };
    let dirs = match args.dirs.is_empty() {
        true => vec![trace(None)?],
        false => args.dirs,
    };
    query::query(&Query {
        sql: args.sql.unwrap_or_default(),
        dirs,
        format,
        target: Target::named(args.output, args.force),
    })
}

/// The format of the answer; none if it has no budget.
fn format(args: &QueryArgs) -> Option<Format> {
    let budget = args.size.budget;
    match args.format {
        QueryFormat::Table => Some(Format::Table(Size::new(args.rows, budget))),
        QueryFormat::Json => Some(Format::Json(Schema::Query.id(), budget)),
        QueryFormat::Csv => budget.is_none().then_some(Format::Csv),
        QueryFormat::Parquet => budget.is_none().then_some(Format::Parquet),
    }
}
