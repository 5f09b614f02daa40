// SPDX-License-Identifier: GPL-2.0

//! Columns of an event's fields and contexts, and the cells of a row.

use crate::values::{is_length, AsText};
use analysis::bits;
use ctf::{Event, EventLayout, FieldLayout, StreamClass, Type, Value};
use rtrace_abi::schema::{Integer, Shown};
use tables::{Column, ColumnKind, Row};

/// First columns of each event table: time, place, and the current task.
pub const COMMON: [(&str, ColumnKind); 6] = [
    ("time", ColumnKind::Time),
    ("ns", ColumnKind::Clock),
    ("cpu", ColumnKind::INT),
    ("task_tid", ColumnKind::INT),
    ("task_pid", ColumnKind::INT),
    ("task_comm", ColumnKind::Text),
];

/// Columns in the names of folders, and the column `trace` of `rtrace query`.
const PARTITIONS: [&str; 3] = ["host", "date", "trace"];

/// Returns the columns of a type of event: the common ones, its fields, its contexts.
///
/// Column names are unique, also without regard to case, as in SQL. A name that is taken gets the prefix
/// `field_` or `context_`, and a number at the end if necessary.
pub fn columns(class: &StreamClass, layout: &EventLayout) -> Vec<Column> {
    let mut columns: Vec<Column> = COMMON
        .iter()
        .map(|(name, kind)| Column::new(*name, *kind))
        .collect();
    let fields = layout.fields.iter().filter(|field| !is_length(field));
    let contexts = class.contexts.iter().filter(|context| is_column(context));
    let fields = fields.map(|field| ("field", field));
    for (what, field) in fields.chain(contexts.map(|context| ("context", context))) {
        let prefixed = format!("{what}_{}", field.name);
        let numbered = (2..).map(|number| format!("{prefixed}_{number}"));
        let mut names = [field.name.clone(), prefixed.clone()]
            .into_iter()
            .chain(numbered);
        let name = names.find(|name| !is_taken(&columns, name));
        columns.push(Column::new(name.unwrap_or(prefixed), kind(&field.ty)));
    }
    columns
}

fn is_taken(columns: &[Column], name: &str) -> bool {
    let names = columns.iter().map(|column| column.name.as_str());
    let mut names = names.chain(PARTITIONS);
    names.any(|taken| taken.eq_ignore_ascii_case(name))
}

/// Whether a context has a column. The contexts that name the task have none: the common columns have the task.
fn is_column(context: &FieldLayout) -> bool {
    !["tid", "pid", "procname"].contains(&context.name.as_str()) && !is_length(context)
}

/// Returns the kind of a field's column.
fn kind(ty: &Type) -> ColumnKind {
    let is_signed = |integer: &Integer| integer.shown == Shown::Signed;
    match ty {
        Type::Integer(integer) => ColumnKind::Integer {
            bits: integer.bits,
            signed: is_signed(integer),
        },
        Type::Float => ColumnKind::Real,
        Type::Enumeration(..) | Type::String => ColumnKind::Text,
        Type::Array(element, _) | Type::Sequence(element, _) if *element == Integer::TEXT => {
            ColumnKind::Text
        }
        Type::Array(element, _) | Type::Sequence(element, _) => ColumnKind::List {
            bits: element.bits,
            signed: is_signed(element),
        },
    }
}

/// The fields and contexts of an event that have columns.
pub struct Filled {
    fields: Vec<bool>,
    contexts: Vec<bool>,
}

impl Filled {
    /// For this type of event.
    pub fn of(class: &StreamClass, layout: &EventLayout) -> Self {
        let fields = layout.fields.iter().map(|field| !is_length(field));
        // Values after the last column are not read.
        let read = |columns: Vec<bool>| {
            let count = columns.iter().rposition(|is_column| *is_column);
            columns[..count.map_or(0, |last| last + 1)].to_vec()
        };
        Self {
            fields: read(fields.collect()),
            contexts: read(class.contexts.iter().map(is_column).collect()),
        }
    }

    /// Fills the cells of an event's fields and contexts, after the common ones.
    pub fn fill(&self, row: &mut Row<'_>, event: &Event<'_>) {
        for (is_column, (field, value)) in self.fields.iter().zip(event.fields()) {
            if *is_column {
                cell(row, &field.ty, value);
            }
        }
        for (is_column, (field, value)) in self.contexts.iter().zip(event.contexts()) {
            if *is_column {
                cell(row, &field.ty, value);
            }
        }
    }
}

fn cell(row: &mut Row<'_>, ty: &Type, value: Value<'_>) {
    let bits = match value {
        Value::Text(text) => return row.text(Some(text)),
        Value::Integers(integers) => {
            return row.list(integers.filter_map(|value| bits(Some(value))));
        }
        Value::Float(number) => number.to_bits(),
        Value::Signed(number) => number as u64,
        Value::Unsigned(number) => number,
    };
    match (ty.value_name(value), ty) {
        (Some(name), _) => row.text(Some(name.as_bytes())),
        // A column of names shows a value without a name as a number.
        (None, Type::Enumeration(..)) => {
            row.text(Some(AsText(ty, value).to_string().as_bytes()));
        }
        (None, _) => row.integer(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctf::Metadata;
    use rtrace_abi::header::Layout;
    use rtrace_abi::schema::{Field, FieldType};
    use rtrace_abi::tsdl;

    fn integer(bits: u8, signed: bool) -> ColumnKind {
        ColumnKind::Integer { bits, signed }
    }

    /// Returns the columns after the common ones, for the event of this name.
    fn behind(text: &str, event: &str) -> Vec<(String, ColumnKind)> {
        let metadata = Metadata::parse(text).unwrap();
        let class = &metadata.streams[0];
        let mut layouts = class.events.values();
        let layout = layouts.find(|layout| layout.name == event).unwrap();
        let columns = columns(class, layout);
        let common = columns.iter().take(COMMON.len());
        let names: Vec<_> = common.map(|column| column.name.as_str()).collect();
        assert_eq!(names, COMMON.map(|(name, _)| name));
        let rest = columns.into_iter().skip(COMMON.len());
        rest.map(|column| (column.name, column.kind)).collect()
    }

    #[test]
    fn each_type_has_its_column() {
        let text = synthetic::metadata(synthetic::UUID, Layout::Compact);
        let list = |bits, signed| ColumnKind::List { bits, signed };
        let expected = [
            ("ready", integer(1, false)),
            ("level", integer(4, true)),
            ("mask", integer(13, false)),
            ("kind", ColumnKind::Text),
            ("wide", integer(64, false)),
            ("state", ColumnKind::Text),
            ("uuid", list(8, false)),
            ("pairs", list(2, false)),
            ("name_offset", integer(16, false)),
            ("name_length", integer(16, false)),
            ("cpus_offset", integer(16, false)),
            ("cpus_length", integer(8, false)),
            ("name", ColumnKind::Text),
            ("cpus", list(32, true)),
            ("path", ColumnKind::Text),
        ]
        .map(|(name, kind)| (name.to_owned(), kind));
        assert_eq!(behind(&text, "every_type"), expected);
    }

    #[test]
    fn no_two_columns_have_the_same_name() {
        let field = |name| Field {
            name,
            ty: FieldType::signed(32),
        };
        let mut text = synthetic::metadata(synthetic::UUID, Layout::Compact);
        let begin = text.find("stream {").unwrap();
        text.truncate(begin);
        let contexts = ["tid", "prio", "time", "PRIO"].map(field);
        tsdl::stream(
            &mut text,
            0,
            &[Layout::Compact],
            "monotonic",
            contexts.into_iter(),
        )
        .unwrap();
        let fields = ["cpu", "Prio", "field_cpu", "CPU", "date"].map(field);
        tsdl::event(&mut text, 0, 1, "odd", fields.into_iter()).unwrap();
        let names: Vec<_> = behind(&text, "odd")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            names,
            [
                "field_cpu",
                "Prio",
                "field_field_cpu",
                "field_CPU_2",
                "field_date",
                "context_prio",
                "context_time",
                "context_PRIO_2",
            ]
        );
    }
}
