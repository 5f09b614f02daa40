// SPDX-License-Identifier: GPL-2.0

//! `rtrace query`, as typed.

use super::{rows, SizeArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Answer a question about traces in SQL
///
/// The tables are those of `rtrace export` to Parquet, without that step: a pass over each trace makes the tables
/// that the query names, with the columns that it names. Each table has the columns host, date and trace (DIR) too.
///
/// The SQL is SQLite's. Percentiles are percentile_disc(0.99) WITHIN GROUP (ORDER BY x) or quantile_disc(x, 0.99);
/// also percentile_cont, quantile_cont and median. The quotient of two integers is an integer: write 1.0 * a / b.
/// Unsigned integers from 2^63, such as addresses in the kernel, are negative; they are shown and written as 0x...
/// The query can only read. Data that do not fit into memory are in a temporary file in $TMPDIR.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rtrace query --list                       the samples
  rtrace query --list DIR                   also the tables and columns of a trace
  rtrace query run-queue DIR                run a sample
  rtrace query 'SELECT comm, SUM(duration_ns) AS ns FROM slices GROUP BY comm ORDER BY ns DESC' DIR
  rtrace query --format csv 'SELECT * FROM sched_switch' DIR >switches.csv
  rtrace query --format parquet -o slow.parquet 'SELECT * FROM syscalls WHERE duration_ns > 1000000' DIR
  rtrace query 'SELECT trace, COUNT(*) FROM syscalls GROUP BY trace' DIR1 DIR2")]
pub struct QueryArgs {
    /// List the samples; also the tables and columns of the traces in DIR
    #[arg(long, conflicts_with_all = ["format", "output", "force", "rows", "budget"])]
    pub list: bool,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = QueryFormat::Table)]
    pub format: QueryFormat,

    /// Rows of a table; 0 for all. Other formats have all rows
    #[arg(short = 'n', long, value_name = "ROWS", default_value = "40", value_parser = rows, conflicts_with = "budget")]
    pub rows: usize,

    #[command(flatten)]
    pub size: SizeArgs,

    /// File for the answer, new unless --force; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub force: bool,

    /// Query, or the name of a sample
    #[arg(value_name = "SQL", required_unless_present = "list")]
    pub sql: Option<String>,

    /// Directories of the traces [default: the newest in the current directory]
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
}

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueryFormat {
    /// Aligned columns
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON object, with the rows as objects
    Json,
    /// A Parquet file
    Parquet,
}
