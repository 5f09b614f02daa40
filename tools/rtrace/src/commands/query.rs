// SPDX-License-Identifier: GPL-2.0

//! `rtrace query`.

use crate::args::{trace, QueryArgs, QueryFormat};
use export::Target;
use query::{Format, Query};
use std::path::PathBuf;

/// Answers a query, or lists the samples and tables.
pub fn query(args: QueryArgs) -> anyhow::Result<()> {
    if args.list {
        // Without a query, the first word is a trace.
        let first = args.sql.map(PathBuf::from);
        let dirs: Vec<_> = first.into_iter().chain(args.dirs).collect();
        return Ok(terminal::print(&query::list(&dirs)?)?);
    }
    let dirs = match args.dirs.is_empty() {
        true => vec![trace(None)?],
        false => args.dirs,
    };
    query::query(&Query {
        sql: args.sql.unwrap_or_default(),
        dirs,
        format: match args.format {
            QueryFormat::Table => Format::Table(args.rows),
            QueryFormat::Csv => Format::Csv,
            QueryFormat::Json => Format::Json,
            QueryFormat::Parquet => Format::Parquet,
        },
        target: Target::named(args.output, args.force),
    })
}
