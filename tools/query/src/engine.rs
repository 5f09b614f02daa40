// SPDX-License-Identifier: GPL-2.0

//! SQLite with the tables of traces. The tables are empty at first; a query fills the ones that it names.
//!
//! The database is a private temporary file without a name in the file system. SQLite writes it only when its
//! cache is full. A query may read these tables and nothing else.

use crate::container;
use crate::interruption::Interruption;
use crate::load::Needed;
use crate::percentile;
use crate::place;
use crate::schema::Schema;
use anyhow::{anyhow, bail};
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Batch, Connection, Error, ErrorCode, Statement};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of SQLite's cache, in KiB.
const CACHE: i64 = 64 << 10;

/// Instructions that SQLite executes between two checks for a signal: about a millisecond.
const STEPS: i32 = 100_000;

/// The tables and their schema.
pub struct Engine {
    pub connection: Connection,
    schema: Schema,
}

impl Engine {
    /// Creates an engine with these tables, all empty. A signal ends its queries.
    pub fn new(schema: Schema, interruption: &Interruption) -> anyhow::Result<Self> {
        // SQLite uses a temporary file for an empty name.
        let connection = Connection::open("")?;
        // Otherwise SQLite reads a quoted name without a column as a text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.execute_batch(&format!(
            "PRAGMA cache_size = -{CACHE}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"
        ))?;
        percentile::add(&connection)?;
        container::add(&connection)?;
        for table in schema.tables.values() {
            connection.execute_batch(&table.create())?;
        }
        let interruption = interruption.clone();
        connection.progress_handler(STEPS, Some(move || interruption.has_come()))?;
        Ok(Self { connection, schema })
    }

    /// Returns the tables and columns that a query reads. An error shows the wrong place in the query.
    pub fn needed(&self, sql: &str) -> anyhow::Result<Needed> {
        let needed = Arc::new(Mutex::new(Needed::default()));
        let reads = needed.clone();
        self.connection
            .authorizer(Some(move |context: AuthContext<'_>| match context.action {
                AuthAction::Read {
                    table_name,
                    column_name,
                } => {
                    let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
                    let columns = reads.entry(table_name.to_lowercase()).or_default();
                    columns.insert(column_name.to_lowercase());
                    Authorization::Allow
                }
                AuthAction::Select | AuthAction::Function { .. } | AuthAction::Recursive => {
                    Authorization::Allow
                }
                _ => Authorization::Deny,
            }))?;
        let checked = self.check(sql);
        self.connection
            .authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        checked?;
        let mut needed = needed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut needed = std::mem::take(&mut *needed);
        needed.retain(|table, _| self.schema.tables.contains_key(table));
        self.add_joined(sql, &mut needed);
        Ok(needed)
    }

    /// Adds the columns by which `USING (...)` and `NATURAL` join tables. SQLite does not report that it reads them.
    fn add_joined(&self, sql: &str, needed: &mut Needed) {
        let sql = sql.to_lowercase();
        let has = |name: &str| place::find(&sql, name).is_some();
        let is_natural = has("natural");
        if !is_natural && !has("using") {
            return;
        }
        for (name, table) in self.schema.tables.iter().filter(|(name, _)| has(name)) {
            let columns = table.names().map(str::to_lowercase);
            let joined = columns.filter(|column| is_natural || has(column));
            needed.entry(name.clone()).or_default().extend(joined);
        }
    }

    fn check(&self, sql: &str) -> anyhow::Result<()> {
        let mut statements = Batch::new(&self.connection, sql);
        let mut next = || statements.next().map_err(|error| self.explain(error, sql));
        if next()?.is_none() {
            bail!("the query is empty");
        }
        match next() {
            Ok(None) => Ok(()),
            _ => bail!("give only one query: the text after the first `;` is another one"),
        }
    }

    /// Prepares a query that [`Self::needed`] has accepted.
    pub fn prepare(&self, sql: &str) -> anyhow::Result<Statement<'_>> {
        let statement = self.connection.prepare(sql);
        statement.map_err(|error| self.explain(error, sql))
    }

    /// Adds the wrong place, and a similar name, to an error of a query.
    fn explain(&self, error: Error, sql: &str) -> anyhow::Error {
        match error {
            Error::SqlInputError { msg, offset, .. } => {
                let offset = usize::try_from(offset).ok();
                self.explain_message(&msg, sql, offset)
            }
            Error::SqliteFailure(failure, _)
                if failure.code == ErrorCode::AuthorizationForStatementDenied =>
            {
                anyhow!("a query only reads: it begins with SELECT or WITH")
            }
            Error::SqliteFailure(_, Some(message)) => self.explain_message(&message, sql, None),
            error => error.into(),
        }
    }

    fn explain_message(&self, message: &str, sql: &str, offset: Option<usize>) -> anyhow::Error {
        // This advice of SQLite is for texts that are quoted like names.
        let message = message.split(" - should this be").next().unwrap_or(message);
        let name = |what| {
            message
                .strip_prefix(what)
                .map(|name| name.trim_matches('"'))
        };
        let tables = || self.schema.tables.values();
        let (name, mut names): (_, Vec<&str>) = if let Some(name) = name("no such table: ") {
            (name, tables().map(|table| table.name.as_str()).collect())
        } else if let Some(name) = name("no such column: ") {
            let name = name.rsplit('.').next().unwrap_or(name);
            let read = tables().filter(|table| place::find(sql, &table.name).is_some());
            (name, read.flat_map(|table| table.names()).collect())
        } else {
            ("", Vec::new())
        };
        names.sort_unstable();
        names.dedup();
        let offset = offset.or_else(|| place::find(sql, name));
        let place = offset.map_or(String::new(), |offset| place::show(sql, offset));
        let hint = match place::similar(name, &names) {
            Some(similar) => format!("\ndid you mean {similar}?"),
            None if message.starts_with("no such table") && names.is_empty() => {
                "\nname the directory of a trace after the query".to_owned()
            }
            None if message.starts_with("no such table") => {
                format!("\nthe trace has: {}", some(&names))
            }
            None if names.is_empty() => String::new(),
            None => format!("\nits tables have: {}", some(&names)),
        };
        anyhow!("{message}{place}{hint}")
    }
}

/// Number of names that a message shows. A trace of LTTng describes each system call, recorded or not.
const SHOWN: usize = 40;

/// Returns the first names as a list, with the number of the others.
fn some(names: &[&str]) -> String {
    let mut list = names[..names.len().min(SHOWN)].join(", ");
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 {
        list += &format!(" and {more} more (`rtrace query --list DIR`)");
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_shows_some_names() {
        assert_eq!(some(&["a", "b"]), "a, b");
        assert!(some(&["a"; SHOWN]).ends_with("a, a"));
        let more = some(&["a"; SHOWN + 2]);
        assert!(
            more.ends_with("a, a and 2 more (`rtrace query --list DIR`)"),
            "{more}"
        );
    }
}
