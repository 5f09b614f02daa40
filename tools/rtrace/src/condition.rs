// SPDX-License-Identifier: GPL-2.0

//! Filters and patterns in the kernel's language, for the events of a recorded trace.

use ctf::{Type, Value};
use rtrace_abi::schema::{Field, FieldType, Integer, Shown};
use rtrace_filter::compile::{compile, FilterContext, FilterNames, ProgramMemory};
use rtrace_filter::evaluate::Contexts;
use rtrace_filter::program::{Program, Step, MAX_STEPS, MAX_TEXTS};
use rtrace_input::pattern::Pattern;
use std::iter;
use system::{Error, Result};

/// Names that contexts have in filters and maps, and in a trace.
const CONTEXTS: [(&str, &str); 6] = [
    ("comm", "procname"),
    ("COMM", "procname"),
    ("common_pid", "tid"),
    ("CPU", "cpu_id"),
    ("cpu", "cpu_id"),
    ("common_cpu", "cpu_id"),
];

/// The subsystem of system calls.
pub const SYSCALLS: &str = "syscalls";

/// Number of CPUs that an expression may name.
const CPUS: u32 = 8192;

/// Returns the name in a trace of the context that a filter or map names.
pub fn in_trace(name: &str) -> &str {
    let alias = CONTEXTS.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, context)| context)
}

/// Returns whether a name is another name of a context.
pub fn is_alias(name: &str) -> bool {
    CONTEXTS.iter().any(|(alias, _)| *alias == name)
}

/// Returns whether a pattern picks an event of a trace. A trace does not name the subsystem, but most names of events begin
/// with it, and those of programs have it before a colon.
pub fn is_picked(pattern: &Pattern<'_>, event: &str, is_call: bool) -> bool {
    if let Some((subsystem, event)) = event.split_once(':') {
        return pattern.matches(subsystem, event);
    }
    let subsystem = match pattern.subsystem.unwrap_or(pattern.event) {
        _ if is_call => SYSCALLS,
        subsystem if pattern.subsystem.is_some() => subsystem,
        subsystem
            if event
                .strip_prefix(subsystem)
                .is_some_and(|rest| rest.starts_with('_')) =>
        {
            subsystem
        }
        _ => "",
    };
    pattern.matches(subsystem, event)
}

/// A filter for values that the caller finds.
#[derive(Debug)]
pub struct Condition {
    steps: Vec<Step>,
    texts: Vec<u8>,
}

impl Condition {
    /// Compiles an expression, whose names have these types.
    pub fn new(expression: &str, named: &[(&str, FieldType<'static>)]) -> Result<Self> {
        let contexts: Vec<_> = (0..)
            .zip(named)
            .map(|(id, (name, ty))| FilterContext { name, id, ty: *ty })
            .collect();
        let names = FilterNames {
            fields: iter::empty::<Field<'_>>(),
            contexts: &contexts,
            cpus: CPUS,
            hides_addresses: false,
        };
        let (mut steps, mut texts) = (vec![Step::NONE; MAX_STEPS], vec![0; MAX_TEXTS]);
        let memory = ProgramMemory {
            steps: &mut steps,
            texts: &mut texts,
        };
        let program =
            compile(expression, names, memory).map_err(|error| wrong(expression, error))?;
        Ok(Self {
            steps: program.steps().to_vec(),
            texts: program.texts().to_vec(),
        })
    }

    /// Returns whether the expression is true for these values, in the order of the names. A comparison with an unknown
    /// value is false.
    pub fn wants(&self, values: &Values) -> bool {
        Program::new(&self.steps, &self.texts).wants(&[], values)
    }
}

/// The values that a filter compares; [`None`] for an unknown one.
#[derive(Clone, Debug, Default)]
pub struct Values(pub Vec<Option<Held>>);

/// A value that outlives its event.
#[derive(Clone, Debug)]
pub enum Held {
    Number(u64),
    Text(Vec<u8>),
}

impl Held {
    /// Copies a value. [`None`]: filters cannot compare it.
    pub fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Unsigned(number) => Some(Self::Number(number)),
            Value::Signed(number) => Some(Self::Number(number as u64)),
            Value::Text(text) => Some(Self::Text(text.to_vec())),
            Value::Float(_) | Value::Integers(_) => None,
        }
    }
}

impl Contexts for Values {
    type Text = Vec<u8>;

    fn number(&self, id: u8) -> Option<u64> {
        match self.0.get(usize::from(id))?.as_ref()? {
            Held::Number(number) => Some(*number),
            Held::Text(_) => None,
        }
    }

    fn text(&self, id: u8) -> Option<Vec<u8>> {
        match self.0.get(usize::from(id))?.as_ref()? {
            Held::Text(text) => Some(text.clone()),
            Held::Number(_) => None,
        }
    }
}

/// Returns the type of a field for a filter. Arrays of numbers cannot be compared.
pub fn compared(ty: &Type) -> FieldType<'static> {
    match ty {
        Type::Integer(integer) | Type::Enumeration(integer, _) => FieldType::Integer(*integer),
        Type::Array(element, size) if element.shown == Shown::Text => {
            FieldType::Array(*element, *size)
        }
        Type::Sequence(element, _) if element.shown == Shown::Text => FieldType::String,
        Type::String => FieldType::String,
        Type::Float => FieldType::Array(Integer::unsigned(64), 1),
        Type::Array(element, _) | Type::Sequence(element, _) => FieldType::Array(*element, 1),
    }
}

/// The error of an expression that has no meaning.
pub fn wrong(expression: &str, error: rtrace_input::filter::error::Error) -> Error {
    let why = error.shown(expression).to_string();
    Error::system("--filter")(std::io::Error::other(why))
}
