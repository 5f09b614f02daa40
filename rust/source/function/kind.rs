// SPDX-License-Identifier: GPL-2.0

//! The events of functions.

use crate::abi::schema::Field;
use crate::record::memory::Payload;
use crate::source::field::{record, KernelAddress};

/// An event of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// A function is called.
    Function,
    /// A function is called, in a graph.
    GraphEntry,
    /// A function returns, in a graph.
    GraphExit,
}

impl FunctionKind {
    /// All events of functions.
    pub(crate) const ALL: [Self; 3] = [Self::Function, Self::GraphEntry, Self::GraphExit];

    /// The events' subsystem.
    pub(crate) const SUBSYSTEM: &'static str = "ftrace";

    /// The event's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::GraphEntry => "funcgraph_entry",
            Self::GraphExit => "funcgraph_exit",
        }
    }

    /// The event's fields, in the order of the record.
    pub(crate) const fn fields(self) -> &'static [Field<'static>] {
        match self {
            Self::Function => FunctionRecord::FIELDS,
            Self::GraphEntry => GraphEntryRecord::FIELDS,
            Self::GraphExit => GraphExitRecord::FIELDS,
        }
    }
}

record! {
    /// A call.
    FunctionRecord {
        ip: KernelAddress,
        parent_ip: KernelAddress,
    }
}

record! {
    /// A call, in a graph.
    GraphEntryRecord {
        func: KernelAddress,
        depth: u32,
    }
}

record! {
    /// A return, in a graph.
    GraphExitRecord {
        func: KernelAddress,
        depth: u32,
        overrun: u32,
        duration: u64,
    }
}
