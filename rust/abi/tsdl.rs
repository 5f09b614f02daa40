// SPDX-License-Identifier: GPL-2.0

//! The CTF 1.8 description of a trace (TSDL): the content of its `metadata` file.
//!
//! The layout follows LTTng's kernel traces, and the environment has `lttng-modules` as the name of
//! the tracer. By that name Trace Compass and babeltrace2 choose their kernel analyses.
//! `rtrace_version` has rtrace's own version.

use super::header::Layout;
use super::schema::{Field, FieldType, Integer, Label, Shown};
use core::fmt::{Result, Write};

/// Entry of the environment that says where the last packets of a trace end. Its value is `stop`: at the
/// stop of the trace. Without the entry, they end when they were closed, up to a second after the stop.
pub const TRACE_END: &str = "trace_end";

/// Entry of the environment of a trace that has only some tasks' events. Its value says how they were chosen.
pub const TASKS: &str = "rtrace_tasks";

/// Value of [`TASKS`]: by their cgroups.
pub const CGROUPS: &str = "cgroups";

/// The trace's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a> {
    /// Name in the trace, e.g. `monotonic`.
    pub name: &'a str,
    /// Description of the clock, for humans.
    pub description: &'a str,
    /// Id of the boot: traces of one boot share the clock.
    pub uuid: &'a str,
    /// Ticks per second.
    pub frequency: u64,
    /// Whole seconds from the epoch to clock value 0.
    pub offset_s: i64,
    /// Remaining ticks, less than `frequency`.
    pub offset: u64,
}

/// Entries of a trace's environment that viewers read.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// Node name of the traced machine.
    pub hostname: &'a str,
    /// As of uname(2).
    pub kernel_release: &'a str,
    /// As of uname(2).
    pub kernel_version: &'a str,
    /// The session's name.
    pub trace_name: &'a str,
    /// Begin of the trace, in ISO 8601 basic format, UTC.
    pub created: &'a str,
    /// This module's version.
    pub rtrace_version: &'a str,
    /// The kind of processor, as uname(2) names it; [`None`] for x86-64.
    pub architecture: Option<&'a str>,
    /// How the tasks whose events are recorded were chosen; [`None`]: they are all tasks.
    pub tasks: Option<&'a str>,
}

/// A name with a leading underscore, which keeps any C identifier legal in TSDL. Readers remove the
/// underscore.
struct Identifier<'a>(&'a str);

impl core::fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        write!(f, "_{}", self.0)
    }
}

/// Contents of a string literal: TSDL has the escapes of C.
struct Quoted<'a>(&'a str);

impl core::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        for c in self.0.chars() {
            match c {
                '"' | '\\' => {
                    f.write_char('\\')?;
                    f.write_char(c)?;
                }
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A line of the environment: a name, and a value if there is one.
struct Optional<'a>(&'a str, Option<&'a str>);

impl core::fmt::Display for Optional<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        match self {
            Self(name, Some(value)) => writeln!(f, "\t{name} = \"{}\";", Quoted(value)),
            Self(_, None) => Ok(()),
        }
    }
}

/// Writes the description up to the streams: types, trace, environment, clock, event headers.
///
/// `uuid` is the trace's, in the usual text form. `layouts` are the layouts of the streams' event
/// headers, by stream id.
pub fn preamble(
    out: &mut dyn Write,
    uuid: &str,
    layouts: &[Layout],
    clock: &Clock<'_>,
    env: &Environment<'_>,
) -> Result {
    out.write_str("/* CTF 1.8 */\n\n")?;
    for bits in [8, 16, 32, 64] {
        writeln!(
            out,
            "typealias integer {{ size = {bits}; align = 8; signed = false; }} := uint{bits}_t;"
        )?;
    }
    writeln!(
        out,
        "
trace {{
	major = 1;
	minor = 8;
	uuid = \"{uuid}\";
	byte_order = le;
	packet.header := struct {{
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	}};
}};

env {{
	hostname = \"{}\";
	domain = \"kernel\";
	sysname = \"Linux\";
	kernel_release = \"{}\";
	kernel_version = \"{}\";
	tracer_name = \"lttng-modules\";
	tracer_major = 2;
	tracer_minor = 13;
	tracer_patchlevel = 0;
	trace_buffering_scheme = \"global\";
	trace_name = \"{}\";
	trace_creation_datetime = \"{}\";
	rtrace_version = \"{}\";
	{TRACE_END} = \"stop\";
{}{}}};

clock {{
	name = \"{name}\";
	uuid = \"{}\";
	description = \"{}\";
	freq = {};
	offset_s = {};
	offset = {};
}};

typealias integer {{
	size = 64; align = 8; signed = false;
	map = clock.{name}.value;
}} := uint64_clock_{name}_t;",
        Quoted(env.hostname),
        Quoted(env.kernel_release),
        Quoted(env.kernel_version),
        Quoted(env.trace_name),
        Quoted(env.created),
        Quoted(env.rtrace_version),
        Optional("architecture", env.architecture),
        Optional(TASKS, env.tasks),
        clock.uuid,
        Quoted(clock.description),
        clock.frequency,
        clock.offset_s,
        clock.offset,
        name = clock.name,
    )?;
    for (place, &layout) in layouts.iter().enumerate() {
        if layouts.iter().position(|&other| other == layout) == Some(place) {
            match layout {
                Layout::Compact => compact_header(out, header_name(layout, layouts), clock.name)?,
                Layout::Large => large_header(out, header_name(layout, layouts), clock.name)?,
            }
        }
    }
    Ok(())
}

/// Name of the event header with this layout. If layouts differ, that of the first stream keeps the
/// name that a sole layout has.
fn header_name(layout: Layout, layouts: &[Layout]) -> &'static str {
    match layout {
        _ if layouts.first() == Some(&layout) => "event_header",
        Layout::Compact => "event_header_compact",
        Layout::Large => "event_header_large",
    }
}

/// Writes the description of a stream whose header layout is one of `layouts`. `contexts` lie
/// between the header and the fields of each event.
pub fn stream<'a>(
    out: &mut dyn Write,
    id: u32,
    layouts: &[Layout],
    clock: &str,
    contexts: impl Iterator<Item = Field<'a>>,
) -> Result {
    let layout = layouts.get(id as usize).copied().unwrap_or(Layout::Large);
    writeln!(
        out,
        "
stream {{
	id = {id};
	event.header := struct {header};
	packet.context := struct {{
		uint64_clock_{clock}_t timestamp_begin;
		uint64_clock_{clock}_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t packet_seq_num;
		uint64_t events_discarded;
		uint32_t cpu_id;
	}};",
        header = header_name(layout, layouts),
    )?;
    let mut contexts = contexts.peekable();
    if contexts.peek().is_some() {
        out.write_str("\tevent.context := struct {\n")?;
        for context in contexts {
            field(out, &context)?;
        }
        out.write_str("\t};\n")?;
    }
    out.write_str("};\n\n")
}

fn compact_header(out: &mut dyn Write, name: &str, clock: &str) -> Result {
    writeln!(
        out,
        "
typealias integer {{
	size = 27; align = 1; signed = false;
	map = clock.{clock}.value;
}} := uint27_clock_{clock}_t;

struct {name} {{
	enum : integer {{ size = 5; align = 1; signed = false; }} {{ compact = 0 ... 30, extended = 31 }} id;
	variant <id> {{
		struct {{
			uint27_clock_{clock}_t timestamp;
		}} compact;
		struct {{
			uint32_t id;
			uint64_clock_{clock}_t timestamp;
		}} extended;
	}} v;
}} align(8);"
    )
}

fn large_header(out: &mut dyn Write, name: &str, clock: &str) -> Result {
    writeln!(
        out,
        "
typealias integer {{
	size = 32; align = 8; signed = false;
	map = clock.{clock}.value;
}} := uint32_clock_{clock}_t;

struct {name} {{
	enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
	variant <id> {{
		struct {{
			uint32_clock_{clock}_t timestamp;
		}} compact;
		struct {{
			uint32_t id;
			uint64_clock_{clock}_t timestamp;
		}} extended;
	}} v;
}} align(8);"
    )
}

/// Writes the description of an event of a stream.
pub fn event<'a>(
    out: &mut dyn Write,
    stream: u32,
    id: u32,
    name: &str,
    fields: impl Iterator<Item = Field<'a>>,
) -> Result {
    writeln!(
        out,
        "event {{\n\tname = \"{}\";\n\tid = {id};\n\tstream_id = {stream};\n\tfields := struct {{",
        Quoted(name)
    )?;
    for field in fields {
        self::field(out, &field)?;
    }
    out.write_str("\t};\n};\n\n")
}

fn field(out: &mut dyn Write, field: &Field<'_>) -> Result {
    let name = Identifier(field.name);
    out.write_str("\t\t")?;
    match field.ty {
        FieldType::Integer(integer) => write!(out, "{} {name}", Type(integer))?,
        FieldType::Enumeration(integer, labels) => {
            write!(out, "enum : {} {{ ", Type(integer))?;
            for (i, label) in labels.iter().enumerate() {
                let comma = if i == 0 { "" } else { ", " };
                write!(out, "{comma}{}", Enumerator(label, integer))?;
            }
            write!(out, " }} {name}")?;
        }
        FieldType::Array(element, length) => {
            write!(out, "{} {name}[{length}]", Type(element))?;
        }
        FieldType::Sequence(element, length) => {
            write!(out, "{} {name}[{}]", Type(element), Identifier(length))?;
        }
        FieldType::String => write!(out, "string {name}")?,
    }
    out.write_str(";\n")
}

/// TSDL type of an integer.
struct Type(Integer);

impl core::fmt::Display for Type {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        let Self(integer) = self;
        let attributes = match integer.shown {
            Shown::Unsigned => "signed = false;",
            Shown::Signed => "signed = true;",
            Shown::Hex | Shown::Address => "signed = false; base = 16;",
            Shown::Text => "signed = false; encoding = UTF8;",
        };
        write!(
            f,
            "integer {{ size = {}; align = {}; {attributes} }}",
            integer.bits,
            integer.align()
        )
    }
}

/// A name of an integer's values in TSDL.
struct Enumerator<'a>(Label<'a>, Integer);

impl core::fmt::Display for Enumerator<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        let Self(label, integer) = self;
        write!(f, "\"{}\" = ", Quoted(label.name))?;
        if let Shown::Signed = integer.shown {
            range(f, label.first as i64, label.last as i64)
        } else {
            range(f, label.first, label.last)
        }
    }
}

fn range<T: PartialEq + core::fmt::Display>(out: &mut dyn Write, first: T, last: T) -> Result {
    write!(out, "{first}")?;
    if first != last {
        write!(out, " ... {last}")?;
    }
    Ok(())
}
