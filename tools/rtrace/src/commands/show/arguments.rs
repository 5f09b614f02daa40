// SPDX-License-Identifier: GPL-2.0

//! Events as text: names, arguments, contexts and results.

use super::argument::Argument;
use super::call_filter::{CallCondition, CallFilter};
use super::pointed::Pointed;
use super::structure::{Outcome, Structure};
use super::told::Told;
use analysis::descriptors::makes_descriptor;
use analysis::durations::call_duration;
use analysis::syscalls::{edge, CallName, Edge};
use analysis::{architecture, bits};
use ctf::{Event, EventLayout, FieldLayout, Metadata, Type, Value};
use decode::{Architecture, Meaning};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use symbols::Stacks;
use system::printing;

/// Contexts that the head of a line has.
const HEAD: [&str; 3] = ["pid", "tid", "procname"];

/// Description of how the events of one type are written.
#[derive(Debug)]
pub struct Form {
    /// The name of the system call or of the event.
    name: CallName,
    /// Which end of a call the event is, if it is one.
    pub kind: EventKind,
    fields: Vec<Field>,
    contexts: Vec<Field>,
    /// The field with the duration of the call whose return the event is, if it is one.
    duration: Option<usize>,
    /// The field whose value decides the meaning of other arguments, and which of them the call uses.
    decider: Option<usize>,
    architecture: Architecture,
    /// The contexts with call stacks.
    pub stacks: Stacks,
    /// The form of a signal or of the end of a thread.
    pub told: Option<Told>,
    /// Whether the events have lines.
    pub is_picked: bool,
    /// The filter of the call, if it has one.
    pub wanted: Option<Arc<CallCondition>>,
}

/// Kind of an event: an end of a system call, or another event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A system call begins.
    Entry(End),
    /// A system call ends.
    Exit {
        /// The field with the result.
        ret: usize,
        /// The field with the number of the call, in the events of unknown calls.
        id: Option<usize>,
    },
    /// The event is not an end of a system call.
    Event,
}

/// Where a system call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In the trace, sooner or later.
    Recorded,
    /// The trace has no event for it.
    Unrecorded,
    /// Nowhere: the call ends the thread.
    Never,
}

/// How a field is written.
#[derive(Debug)]
struct Field {
    /// Number of the field in the layout.
    number: usize,
    name: String,
    ty: Type,
    meaning: Option<Meaning>,
    /// The data that the field points to, if the record has them. `pointed_alone` is set if the record lacks the field
    /// with the address.
    pointed: Option<Pointed>,
    pointed_alone: bool,
    /// The structure that the field points to, if the record has it.
    structure: Option<Structure>,
    /// Whether the field is a descriptor of the calling process.
    is_descriptor: bool,
    /// Position among the arguments of the call.
    position: usize,
}

/// Returns the file that a descriptor of a thread stands for, if it is known.
pub type FileOf<'a> = dyn FnMut(i32) -> Option<Arc<str>> + 'a;

impl Form {
    /// The form of the events with this layout, in a trace with this description.
    pub fn new(layout: &EventLayout, metadata: &Metadata) -> Self {
        let class = metadata.stream(layout.stream_id);
        let (name, kind) = match edge(layout) {
            Some((name, Edge::Entry)) => {
                let exit = layout.name.replacen("entry", "exit", 1);
                let mut others = metadata
                    .streams
                    .iter()
                    .flat_map(|class| class.events.values());
                let end = match &name {
                    CallName::Own(name) if name == "exit" || name == "exit_group" => End::Never,
                    _ if others.any(|other| other.name == exit) => End::Recorded,
                    _ => End::Unrecorded,
                };
                (name, EventKind::Entry(end))
            }
            Some((name, Edge::Exit { ret, id })) if name != CallName::OfBegin => {
                (name, EventKind::Exit { ret, id })
            }
            _ => (CallName::Own(layout.name.clone()), EventKind::Event),
        };
        let call = match &name {
            CallName::Own(name) if kind != EventKind::Event => Some(name.as_str()),
            _ => None,
        };
        let architecture = architecture(metadata);
        let contexts = class.map_or(&[][..], |class| &class.contexts);
        let mut contexts = fields(contexts, None, architecture);
        contexts.retain(|context| !HEAD.contains(&context.name.as_str()));
        let mut fields = fields(&layout.fields, call, architecture);
        if let EventKind::Exit { ret, .. } = kind {
            fields.retain(|field| field.number != ret);
        }
        let duration = call_duration(layout).filter(|_| kind == EventKind::Event);
        fields.retain(|field| duration != Some(field.number));
        if let CallName::OfNumber(id) = name {
            fields.retain(|field| field.number != id);
        }
        for (argument, argument_kind) in call.map_or(&[][..], decode::arguments) {
            let found = match kind {
                EventKind::Entry(_) => Pointed::given(argument_kind, argument, layout),
                _ => Pointed::filled(argument_kind, argument, layout),
            };
            if let Some(pointed) = found {
                point(&mut fields, argument, pointed);
            }
            let described = (*argument, *argument_kind);
            let structure = call
                .and_then(|call| Structure::of(architecture, call, described, layout))
                .filter(|_| layout.field(argument).is_some());
            if let Some(structure) = structure {
                let parts = structure.fields();
                fields.retain(|field| !parts.contains(&field.number));
                let mut fields = fields.iter_mut();
                if let Some(field) = fields.find(|field| field.name == *argument) {
                    field.structure = Some(structure);
                }
            }
        }
        Self {
            fields,
            contexts,
            duration,
            decider: layout.field(call.map_or("flags", decode::decider)),
            architecture,
            stacks: class.map(Stacks::of).unwrap_or_default(),
            told: Told::of(layout),
            name,
            kind,
            is_picked: true,
            wanted: None,
        }
    }

    /// Sets the filter of the call to the one of `filters` for the call, if any.
    pub fn filter(
        &mut self,
        layout: &EventLayout,
        metadata: &Metadata,
        filters: &[CallFilter],
    ) -> system::Result<()> {
        self.wanted = CallCondition::new(layout, metadata, filters)?.map(Arc::new);
        Ok(())
    }

    /// Leaves out the call stacks among the contexts.
    pub fn hide_stacks(&mut self) {
        self.contexts
            .retain(|context| !context.name.starts_with("callstack_user"));
    }

    /// Whether the event is the begin of the system call of this name.
    pub fn is_begin_of(&self, call: &str) -> bool {
        matches!(self.kind, EventKind::Entry(_)) && self.is_called(call)
    }

    /// Whether all events of this form have this name.
    pub fn is_called(&self, name: &str) -> bool {
        matches!(&self.name, CallName::Own(own) if own == name)
    }

    /// For an event of a call of a 32-bit program: the end of the call (`entry` or `exit`) and the call's name.
    pub fn compat<'a>(&'a self, event: &Event<'_>) -> Option<(&'static str, Cow<'a, str>)> {
        let edge = match (&self.name, self.kind) {
            (CallName::OfNumber(_), EventKind::Entry(_)) => "entry",
            (CallName::OfNumber(_), EventKind::Exit { .. }) => "exit",
            _ => return None,
        };
        let name = self.name(event);
        let call = name.strip_prefix("compat_").unwrap_or(&name).to_owned();
        Some((edge, call.into()))
    }

    /// The name of an event of this form.
    pub fn name<'a>(&'a self, event: &Event<'_>) -> Cow<'a, str> {
        self.name.of(event)
    }

    /// The nanoseconds that the call took whose return an event of this form is.
    pub fn duration_ns(&self, event: &Event<'_>) -> Option<u64> {
        bits(event.value(self.duration?))
    }

    /// The value that decides the meaning of other arguments in an event of this form.
    pub fn decider(&self, event: &Event<'_>) -> Option<u64> {
        self.decider
            .and_then(|field| event.value(field))
            .map(number)
    }

    /// The fields of an event of this form, without the result.
    pub fn arguments(&self, event: &Event<'_>, file_of: &mut FileOf<'_>) -> Vec<Argument> {
        let decider = self.decider(event);
        let call = match &self.name {
            CallName::Own(call) if self.kind != EventKind::Event => Some(call.as_str()),
            _ => None,
        };
        let outcome = match self.kind {
            EventKind::Exit { ret, .. } => {
                Outcome::Returned(event.value(ret).map_or(0, number) as i64)
            }
            _ => Outcome::Begun,
        };
        let mut arguments = Vec::new();
        for field in &self.fields {
            let mut decided = None;
            if let (Some(call), Some(decider)) = (call, decider) {
                if !decode::is_given(call, &field.name, decider) {
                    continue;
                }
                decided = decode::decided(self.architecture, call, &field.name, decider);
            }
            let values = |number| event.value(number);
            arguments.extend(field.argument(values, file_of, (decided, outcome)));
        }
        arguments
    }

    /// Writes the result of a call of this name. `decider` is that of its begin.
    pub fn write_result(
        &self,
        out: &mut String,
        (call, decider): (&str, Option<u64>),
        ret: Option<Value<'_>>,
        file_of: &mut FileOf<'_>,
    ) {
        let Some(ret) = ret.map(number) else {
            return out.push('?');
        };
        match (decode::result(self.architecture, call, decider), ret as i64) {
            (_, -4095..=-1) => decode::write_error(out, -(ret as i64)),
            (Some(meaning), _) => meaning.write(out, ret),
            (None, ret) => push(out, format_args!("{ret}")),
        }
        if makes_descriptor(call) {
            write_file(out, ret, file_of);
        }
    }

    /// Writes the contexts of an event that are not in the head of its line.
    pub fn write_contexts(&self, out: &mut String, event: &Event<'_>) {
        let contexts = self.contexts.iter();
        let contexts = contexts.filter_map(|field| {
            let values = |number| event.context(number);
            field.argument(values, &mut |_| None, (None, Outcome::Begun))
        });
        let mut separator = " {";
        for context in contexts {
            out.push_str(separator);
            out.push_str(&context.text);
            separator = ", ";
        }
        if !self.contexts.is_empty() {
            out.push('}');
        }
    }
}

impl Field {
    /// The field as text, for the event with these values. `decided` is the meaning that another argument decides.
    fn argument<'a>(
        &self,
        values: impl Fn(usize) -> Option<Value<'a>>,
        file_of: &mut FileOf<'_>,
        (decided, outcome): (Option<Meaning>, Outcome),
    ) -> Option<Argument> {
        let value = values(self.number)?;
        let mut text = format!("{}: ", self.name);
        let mut buffers = Vec::new();
        match (&self.pointed, &self.structure) {
            (Some(pointed), _) if self.pointed_alone && pointed.is_nothing(&values) => return None,
            // The address 0 points to no data.
            (Some(pointed), _) if self.pointed_alone || number(value) != 0 => {
                pointed.write(&mut text, values, &mut buffers);
            }
            (_, Some(structure)) if number(value) != 0 => {
                structure.write(&mut text, number(value), outcome, values);
            }
            _ => write_value(&mut text, value, &self.ty, decided.or(self.meaning)),
        }
        if self.is_descriptor {
            write_file(&mut text, number(value), file_of);
        }
        Some(Argument {
            position: self.position,
            text,
            buffers,
        })
    }
}

/// Descriptions of fields: the fields of a system call, or of another event.
fn fields(layouts: &[FieldLayout], call: Option<&str>, architecture: Architecture) -> Vec<Field> {
    let lengths: Vec<_> = layouts
        .iter()
        .filter_map(|field| match field.ty {
            Type::Sequence(_, length) => Some(length),
            _ => None,
        })
        .collect();
    let numbered = layouts.iter().enumerate();
    numbered
        .filter(|(number, _)| !lengths.contains(number))
        .map(|(number, layout)| Field {
            number,
            name: layout.name.clone(),
            ty: layout.ty.clone(),
            meaning: call.and_then(|call| decode::argument(architecture, call, &layout.name)),
            pointed: None,
            pointed_alone: false,
            structure: None,
            is_descriptor: call.is_some_and(|call| decode::is_descriptor(call, &layout.name)),
            position: call
                .and_then(|call| decode::position(call, &layout.name))
                .unwrap_or(usize::MAX),
        })
        .collect()
}

/// Attaches pointed-to data to the argument that points there, instead of showing them as fields of their own. The exit
/// may have the data without the address, which is in the entry.
fn point(fields: &mut Vec<Field>, argument: &str, pointed: Pointed) {
    let parts = pointed.fields();
    let Some(&first) = parts.first() else {
        return;
    };
    if let Some(field) = fields.iter_mut().find(|field| field.name == argument) {
        field.pointed = Some(pointed);
        fields.retain(|field| !parts.contains(&field.number));
    } else if let Some(field) = fields.iter_mut().find(|field| field.number == first) {
        field.name = pointed.name().to_owned();
        field.pointed = Some(pointed);
        field.pointed_alone = true;
        fields.retain(|field| field.number == first || !parts.contains(&field.number));
    }
}

/// Writes the file that a descriptor stands for, if it is known.
pub(super) fn write_file(out: &mut String, fd: u64, file_of: &mut FileOf<'_>) {
    // The upper half of the register has no meaning.
    let fd = fd as i32;
    if let Some(file) = (fd >= 0).then(|| file_of(fd)).flatten() {
        out.push('<');
        out.push_str(&printing::printable(&file));
        out.push('>');
    }
}

/// The bits of an integer; 0 for anything else.
pub(super) fn number(value: Value<'_>) -> u64 {
    match value {
        Value::Unsigned(number) => number,
        Value::Signed(number) => number as u64,
        Value::Float(_) | Value::Text(_) | Value::Integers(_) => 0,
    }
}

fn write_value(out: &mut String, value: Value<'_>, ty: &Type, meaning: Option<Meaning>) {
    match (value, meaning) {
        (Value::Float(number), _) => push(out, format_args!("{number}")),
        (Value::Text(text), _) => write_text(out, text),
        (Value::Integers(integers), _) => {
            out.push('[');
            for (place, integer) in integers.enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                write_integer(out, integer, ty);
            }
            out.push(']');
        }
        (integer, Some(meaning)) => meaning.write(out, number(integer)),
        (integer, None) => write_integer(out, integer, ty),
    }
}

fn write_integer(out: &mut String, integer: Value<'_>, ty: &Type) {
    match (ty.value_name(integer), integer) {
        (Some(name), _) => out.push_str(&printing::printable(&name)),
        (None, Value::Signed(number)) => push(out, format_args!("{number}")),
        (None, integer) => match number(integer) {
            number if number > 0 && ty.is_hex() => push(out, format_args!("{number:#x}")),
            number => push(out, format_args!("{number}")),
        },
    }
}

/// Writes a text as in a program, with escapes: no byte of it affects a terminal.
pub(super) fn write_text(out: &mut String, text: &[u8]) {
    out.push('"');
    write_escaped(out, text, &['"', '\\', '\n', '\r', '\t']);
    out.push('"');
}

/// Writes a list of texts that are quoted already, with escapes for all other characters that need them.
pub(super) fn write_list_of_texts(out: &mut String, list: &[u8]) {
    write_escaped(out, list, &['\n', '\r', '\t']);
}

fn write_escaped(out: &mut String, text: &[u8], escaped: &[char]) {
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' => out.push('\''),
                character if escaped.contains(&character) => {
                    out.extend(character.escape_default());
                }
                '"' | '\\' => out.push(character),
                character => printing::push(out, character),
            }
        }
        // Writing to a String cannot fail.
        let _ = printing::hex(out, chunk.invalid());
    }
}

/// Appends text. Writing to a String cannot fail.
pub(super) fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
