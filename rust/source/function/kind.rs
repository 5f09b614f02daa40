// SPDX-License-Identifier: GPL-2.0

//! The events of functions.

use crate::abi::schema::{Field, FieldType};

/// An event of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// A function is called.
    Function,
    /// The same, in a graph.
    GraphEntry,
    /// It returns.
    GraphExit,
}

impl FunctionKind {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Function, Self::GraphEntry, Self::GraphExit];

    /// The events' subsystem.
    pub(crate) const SUBSYSTEM: &'static str = "ftrace";

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::GraphEntry => "funcgraph_entry",
            Self::GraphExit => "funcgraph_exit",
        }
    }

    /// Its fields, in the order of the record.
    pub(crate) const fn fields(self) -> &'static [Field<'static>] {
        const FUNCTION: [Field<'static>; 2] = [
            Field::new("ip", FieldType::address()),
            Field::new("parent_ip", FieldType::address()),
        ];
        const ENTRY: [Field<'static>; 2] = [
            Field::new("func", FieldType::address()),
            Field::new("depth", FieldType::unsigned(32)),
        ];
        const EXIT: [Field<'static>; 4] = [
            Field::new("func", FieldType::address()),
            Field::new("depth", FieldType::unsigned(32)),
            Field::new("overrun", FieldType::unsigned(32)),
            Field::new("duration", FieldType::unsigned(64)),
        ];
        match self {
            Self::Function => &FUNCTION,
            Self::GraphEntry => &ENTRY,
            Self::GraphExit => &EXIT,
        }
    }
}
