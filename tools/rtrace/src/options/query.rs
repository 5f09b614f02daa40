// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace query`, converted from the arguments as typed.

use super::{rows, trace, Action};
use crate::args::{QueryArgs, QueryFormat};
use export::Target;
use query::{Format, Query};
use std::path::PathBuf;

pub(super) fn query(args: QueryArgs) -> Result<Action, clap::Error> {
    if args.list {
        // Without a query, the first word is a trace.
        let first = args.sql.map(PathBuf::from);
        let dirs = first.into_iter().chain(args.dirs);
        return Ok(Action::ListQueries {
            dirs: dirs.collect(),
        });
    }
    let dirs = match args.dirs.is_empty() {
        true => vec![trace(None)?],
        false => args.dirs,
    };
    Ok(Action::Query(Query {
        sql: args.sql.unwrap_or_default(),
        dirs,
        format: match args.format {
            QueryFormat::Table => Format::Table(rows(args.rows)),
            QueryFormat::Csv => Format::Csv,
            QueryFormat::Json => Format::Json,
            QueryFormat::Parquet => Format::Parquet,
        },
        target: Target::named(args.output, args.force),
    }))
}
