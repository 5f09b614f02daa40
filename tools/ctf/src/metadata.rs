// SPDX-License-Identifier: GPL-2.0

//! A trace's description: the TSDL that `rust/abi/tsdl.rs` writes.

use crate::damage::Damage;
use crate::foreign::Foreign;
use crate::layouts::{size, EventLayout, EventLayouts, FieldLayout, Label, Places, Type};
use crate::lexer::{Lexer, TokenKind};
use crate::tree::{self, Node, Statement};
use memchr::memmem;
use rtrace_abi::header::{Layout, COMPACT_ID_BITS};
use rtrace_abi::schema::{Integer, Shown};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use system::{Error, Result};
use uuid::Uuid;

/// The begin of a description that rtrace writes.
const OWN_BEGIN: &str =
    "/* CTF 1.8 */\n\ntypealias integer { size = 8; align = 8; signed = false; } := uint8_t;";

/// The entry of the environment that only rtrace writes.
const OWN_VERSION: &str = "rtrace_version";

/// Returns whether a description is of a trace of rtrace.
pub fn is_own(text: &[u8]) -> bool {
    text.starts_with(OWN_BEGIN.as_bytes()) || memmem::find(text, OWN_VERSION.as_bytes()).is_some()
}

/// The contents of the `metadata` file.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The trace.
    pub uuid: Uuid,
    /// Its clock.
    pub clock: Clock,
    /// The machine's boot in which it was recorded: the kernel's `boot_id`, if the clock has it.
    pub boot: Option<Uuid>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its stream classes, one for each channel, by id. There is at least one.
    pub streams: Vec<StreamClass>,
    /// The reader of its streams, if the trace has another format. [`None`]: they are files.
    pub foreign: Option<Arc<dyn Foreign>>,
}

/// The common properties of a channel's streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamClass {
    /// The event header of their packets.
    pub layout: Layout,
    /// The contexts between the header and the fields of each event.
    pub contexts: Vec<FieldLayout>,
    /// The size of the contexts in bytes, if it is the same in every record.
    pub context_size: Option<usize>,
    /// Places of the contexts.
    pub(super) context_places: Places,
    /// Their events by id.
    pub events: EventLayouts,
}

/// The trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Ticks per second, never 0.
    pub frequency: u64,
    /// Whole seconds from the epoch to clock value 0.
    pub offset_s: i64,
    /// Remaining ticks.
    pub offset: u64,
}

const NANOSECONDS: u64 = 1_000_000_000;

impl Clock {
    /// A number of ticks in nanoseconds.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        let frequency = self.frequency.max(1);
        if frequency == NANOSECONDS {
            return ticks;
        }
        // A division of 128 bits takes several times as long.
        if let Some(rest) = (ticks % frequency).checked_mul(NANOSECONDS) {
            let whole = (ticks / frequency).checked_mul(NANOSECONDS);
            return whole.map_or(u64::MAX, |whole| whole.saturating_add(rest / frequency));
        }
        let ns = u128::from(ticks) * u128::from(NANOSECONDS) / u128::from(frequency);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// A clock value in nanoseconds since the epoch.
    pub fn since_epoch(&self, value: u64) -> i128 {
        let offset = i128::from(self.offset_s) * i128::from(NANOSECONDS);
        if let (NANOSECONDS, Some(ns)) = (self.frequency, value.checked_add(self.offset)) {
            return offset + i128::from(ns);
        }
        let ticks = u128::from(value) + u128::from(self.offset);
        let ns = ticks * u128::from(NANOSECONDS) / u128::from(self.frequency.max(1));
        offset + i128::try_from(ns).unwrap_or(i128::MAX / 2)
    }

    /// The clock's value at this number of nanoseconds since the epoch; 0 before its begin.
    pub fn value(&self, since_epoch: i128) -> u64 {
        let ns = since_epoch - i128::from(self.offset_s) * 1_000_000_000;
        let ticks = ns.saturating_mul(i128::from(self.frequency)) / 1_000_000_000;
        let value = ticks - i128::from(self.offset);
        u64::try_from(value.max(0)).unwrap_or(u64::MAX)
    }
}

impl StreamClass {
    /// Makes the class of these events, which have these contexts.
    pub fn new(layout: Layout, contexts: Vec<FieldLayout>, events: EventLayouts) -> Self {
        Self {
            layout,
            context_size: size(&contexts),
            context_places: Places::of(&contexts),
            contexts,
            events,
        }
    }

    /// The number of the context called `name`.
    pub fn context(&self, name: &str) -> Option<usize> {
        self.contexts.iter().position(|field| field.name == name)
    }
}

/// A part of a description that cannot be read.
type Bad = (Range<usize>, Error);

impl Metadata {
    /// Parses a description.
    pub fn parse(text: &str) -> Result<Self> {
        Self::of(text, tree::parse(text)?, |_, error| Err(error))
    }

    /// Parses the description in the file `path`, of which a part may be damaged. Skips events whose description
    /// cannot be parsed. All other parts must be intact.
    pub fn parse_damaged(bytes: &[u8], path: &Path) -> Result<(Self, Vec<Damage>)> {
        let text = String::from_utf8_lossy(bytes);
        let first = match Self::parse(&text) {
            Ok(metadata) => return Ok((metadata, Vec::new())),
            Err(error) => error,
        };
        let (mut statements, mut bad) = (Vec::new(), Vec::<Bad>::new());
        let mut places = Vec::new();
        for (range, line) in parts(bytes) {
            let parsed = std::str::from_utf8(&bytes[range.clone()])
                .map_err(|error| Error::Metadata {
                    line,
                    what: error.to_string(),
                })
                .and_then(tree::parse);
            match parsed {
                Ok(part) => {
                    places.extend(part.iter().map(|_| range.clone()));
                    statements.extend(part.into_iter().map(|statement| Statement {
                        line: statement.line + line - 1,
                        ..statement
                    }));
                }
                Err(error) => bad.push((range, error)),
            }
        }
        let metadata = Self::of(&text, statements, |place, error| {
            bad.push((places[place].clone(), error));
            Ok(())
        });
        // The first error tells the place of the damage.
        let metadata = metadata.map_err(|_| first)?;
        bad.sort_by_key(|(range, _)| range.start);
        let damages = bad.into_iter().map(|(range, error)| Damage {
            path: path.to_owned(),
            offset: range.start as u64,
            bytes: range.len() as u64,
            what: error.to_string(),
        });
        Ok((metadata, damages.collect()))
    }

    /// Parses these statements of a `text`. `leave` decides about an event that cannot be parsed; it gets the index
    /// of the event's statement.
    fn of(
        text: &str,
        statements: Vec<Statement<'_>>,
        mut leave: impl FnMut(usize, Error) -> Result<()>,
    ) -> Result<Self> {
        let missing = |what: &str| Error::Metadata {
            line: text.lines().count().max(1),
            what: format!("{what} is missing"),
        };
        let (mut uuid, mut clock, mut boot) = (None, None, None);
        let mut env = BTreeMap::new();
        let mut headers = HashMap::new();
        let mut streams: Vec<StreamClass> = Vec::new();
        for (place, statement) in statements.into_iter().enumerate() {
            if let Some(block) = statement.block("trace") {
                uuid = Some(trace(&statement, block)?);
            } else if let Some(block) = statement.block("clock") {
                clock = Some(self::clock(&statement, block)?);
                boot = tree::value(block, "uuid").and_then(|uuid| uuid.parse().ok());
            } else if let Some(block) = statement.block("env") {
                env.extend(block.iter().filter_map(variable));
            } else if let Some((name, block)) = event_header(&statement) {
                headers.insert(name.to_owned(), header_layout(&statement, block)?);
            } else if let Some(block) = statement.block("stream") {
                let next = streams.len();
                let class = stream_class(&statement, block, next, &headers)?;
                streams.push(class);
            } else if let Some(block) = statement.block("event") {
                if let Err(error) = add_event(&mut streams, &statement, block) {
                    leave(place, error)?;
                }
            }
        }
        let this = Self {
            uuid: uuid.ok_or_else(|| missing("`trace`"))?,
            clock: clock.ok_or_else(|| missing("`clock`"))?,
            boot,
            env,
            streams,
            foreign: None,
        };
        if this.streams.is_empty() {
            return Err(missing("`stream`"));
        }
        Ok(this)
    }

    /// The stream class with this id.
    pub fn stream(&self, id: u32) -> Option<&StreamClass> {
        self.streams.get(id as usize)
    }

    /// The trace's uuid. The rest of the text need not be valid.
    pub fn find_uuid(text: &str) -> Option<Uuid> {
        let mut words = Lexer::new(text)
            .map_while(Result::ok)
            .map(|token| token.kind);
        words.find(|kind| matches!(kind, TokenKind::Word(word) if word == "trace"))?;
        words.find(|kind| matches!(kind, TokenKind::Word(word) if word == "uuid"))?;
        match (words.next()?, words.next()?) {
            (TokenKind::Mark('='), TokenKind::Text(uuid)) => uuid.parse().ok(),
            _ => None,
        }
    }
}

/// The parts of a description, each up to the next event or stream, with their first lines.
fn parts(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, usize)> + '_ {
    const BEGINS: [&[u8]; 2] = [b"\nevent {", b"\nstream {"];
    let (mut at, mut line) = (0, 1);
    std::iter::from_fn(move || {
        let rest = &bytes[at..];
        if rest.is_empty() {
            return None;
        }
        let next = BEGINS.iter().filter_map(|begin| memmem::find(rest, begin));
        let end = next.min().map_or(rest.len(), |end| end + 1);
        let part = (at..at + end, line);
        line += rest[..end].iter().filter(|byte| **byte == b'\n').count();
        at += end;
        Some(part)
    })
}

fn add_event(
    streams: &mut [StreamClass],
    statement: &Statement<'_>,
    block: &[Statement<'_>],
) -> Result<()> {
    let event = event(statement, block)?;
    let (stream_id, id) = (event.stream_id, event.id);
    let class = streams.get_mut(stream_id as usize).ok_or_else(|| {
        statement.error(format!("event id {id} of an unknown stream {stream_id}"))
    })?;
    match class.events.insert(event) {
        true => Ok(()),
        false => Err(statement.error(format!("event id {id} is defined twice"))),
    }
}

/// The version of CTF that this crate reads.
const VERSION: (&str, &str) = ("1", "8");

fn trace(statement: &Statement<'_>, block: &[Statement<'_>]) -> Result<Uuid> {
    let (major, minor) = (
        tree::value(block, "major").unwrap_or(VERSION.0),
        tree::value(block, "minor").unwrap_or(VERSION.1),
    );
    if (major, minor) != VERSION {
        return Err(statement.error(format!(
            "CTF of version {major}.{minor}: this rtrace reads version {}.{} only",
            VERSION.0, VERSION.1
        )));
    }
    if tree::value(block, "byte_order") != Some("le") {
        return Err(statement.error("byte_order is not `le`"));
    }
    tree::value(block, "uuid")
        .and_then(|uuid| uuid.parse().ok())
        .ok_or_else(|| statement.error("no valid uuid"))
}

fn clock(statement: &Statement<'_>, block: &[Statement<'_>]) -> Result<Clock> {
    let frequency = tree::number(block, "freq").unwrap_or(1_000_000_000);
    if frequency == 0 {
        return Err(statement.error("a clock of frequency 0"));
    }
    Ok(Clock {
        frequency,
        offset_s: tree::number(block, "offset_s").unwrap_or(0),
        offset: tree::number(block, "offset").unwrap_or(0),
    })
}

fn variable(statement: &Statement<'_>) -> Option<(String, String)> {
    match statement.nodes.as_slice() {
        [Node::Word(key), Node::Mark('='), Node::Word(value) | Node::Text(value)] => {
            Some((key.to_string(), value.to_string()))
        }
        _ => None,
    }
}

/// The name and the block of `struct event_header... { ... } align(8)`.
fn event_header<'a>(statement: &'a Statement<'a>) -> Option<(&'a str, &'a [Statement<'a>])> {
    match statement.nodes.as_slice() {
        [Node::Word(kind), Node::Word(name), Node::Block(block), ..]
            if kind == "struct" && name.starts_with("event_header") =>
        {
            Some((name, block))
        }
        _ => None,
    }
}

/// The class of `stream { id = NEXT; event.header := struct NAME; ... }`, without events. Classes are in the order of
/// their ids, from 0.
fn stream_class(
    statement: &Statement<'_>,
    block: &[Statement<'_>],
    next: usize,
    headers: &HashMap<String, Layout>,
) -> Result<StreamClass> {
    // If there is only one stream, the id may be missing.
    let id = tree::value(block, "id").unwrap_or("0");
    if id.parse() != Ok(next) {
        return Err(statement.error(format!("stream id {id}, expected {next}")));
    }
    let header = block
        .iter()
        .find_map(|statement| match statement.nodes.as_slice() {
            [Node::Word(key), Node::Mark(':'), Node::Mark('='), Node::Word(kind), Node::Word(name)]
                if key == "event.header" && kind == "struct" =>
            {
                Some(name)
            }
            _ => None,
        });
    let header =
        header.ok_or_else(|| statement.error(format!("stream {id}: `event.header` is missing")))?;
    let layout = headers
        .get(header.as_ref())
        .ok_or_else(|| statement.error(format!("stream {id}: there is no `struct {header}`")))?;
    let contexts = fields(block, "event.context")?;
    Ok(StreamClass::new(*layout, contexts, EventLayouts::default()))
}

/// The two layouts differ in the type of the header's first member, the id.
fn header_layout(statement: &Statement<'_>, block: &[Statement<'_>]) -> Result<Layout> {
    let id = block
        .first()
        .map_or(&[][..], |first| first.nodes.as_slice());
    match id {
        [Node::Word(word), Node::Mark(':'), Node::Word(ty), Node::Block(ty_block), ..]
            if word == "enum"
                && ty == "integer"
                && tree::number(ty_block, "size") == Some(COMPACT_ID_BITS) =>
        {
            Ok(Layout::Compact)
        }
        [Node::Word(word), Node::Mark(':'), Node::Word(ty), ..]
            if word == "enum" && ty == "uint16_t" =>
        {
            Ok(Layout::Large)
        }
        _ => Err(statement.error("an event header of an unknown layout")),
    }
}

fn event(statement: &Statement<'_>, block: &[Statement<'_>]) -> Result<EventLayout> {
    let name =
        tree::value(block, "name").ok_or_else(|| statement.error("an event without name"))?;
    let id = tree::number(block, "id")
        .ok_or_else(|| statement.error(format!("event `{name}`: no valid id")))?;
    let stream_id = match tree::value(block, "stream_id").unwrap_or("0").parse() {
        Ok(stream_id) => stream_id,
        Err(_) => return Err(statement.error(format!("event `{name}`: no valid stream_id"))),
    };
    let fields = fields(block, "fields")?;
    Ok(EventLayout::new(stream_id, id, name.to_owned(), fields))
}

/// The fields of `KEY := struct { ... }` in a block. None, if the block does not have it.
fn fields(block: &[Statement<'_>], key: &str) -> Result<Vec<FieldLayout>> {
    let found = block
        .iter()
        .find_map(|statement| match statement.nodes.as_slice() {
            [Node::Word(word), Node::Mark(':'), Node::Mark('='), Node::Word(ty), Node::Block(fields)]
                if word == key && ty == "struct" =>
            {
                Some(fields.as_slice())
            }
            _ => None,
        });
    let mut known = Vec::new();
    for statement in found.unwrap_or_default() {
        let field = field(statement, &known)?;
        known.push(field);
    }
    Ok(known)
}

/// A field that follows the `known` ones.
fn field(statement: &Statement<'_>, known: &[FieldLayout]) -> Result<FieldLayout> {
    let (ty, name) = match statement.nodes.as_slice() {
        [Node::Word(ty), Node::Word(name)] if ty == "string" => (Some(Type::String), name),
        [Node::Word(ty), Node::Block(block), Node::Word(name)] if ty == "integer" => {
            (integer(block).map(Type::Integer), name)
        }
        [Node::Word(ty), Node::Block(block), Node::Word(name), Node::Mark('['), Node::Word(length), Node::Mark(']')]
            if ty == "integer" =>
        {
            let ty = integer(block).and_then(|element| several(element, length, known));
            (ty, name)
        }
        [Node::Word(word), Node::Mark(':'), Node::Word(ty), Node::Block(block), Node::Block(labels), Node::Word(name)]
            if word == "enum" && ty == "integer" =>
        {
            let ty = integer(block).and_then(|integer| {
                Some(Type::Enumeration(integer, self::labels(integer, labels)?))
            });
            (ty, name)
        }
        _ => return Err(statement.error("a field of an unknown form")),
    };
    let ty = ty.ok_or_else(|| statement.error(format!("field `{name}` is of an unknown type")))?;
    Ok(FieldLayout {
        name: plain(name).to_owned(),
        ty,
    })
}

/// A name without the underscore before it.
fn plain(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}

/// An array whose length is a number, or a sequence whose length is a field.
fn several(element: Integer, length: &str, known: &[FieldLayout]) -> Option<Type> {
    if let Ok(length) = length.parse() {
        return Some(Type::Array(element, length));
    }
    let length = plain(length);
    let field = known.iter().position(|field| field.name == length)?;
    match known[field].ty {
        Type::Integer(length) if length.shown != Shown::Signed => {
            Some(Type::Sequence(element, field))
        }
        _ => None,
    }
}

/// The labels `"NAME" = VALUE`, or `VALUE ... VALUE`, between commas.
fn labels(integer: Integer, block: &[Statement<'_>]) -> Option<Vec<Label>> {
    let value = |text: &str| match integer.shown {
        Shown::Signed => text.parse::<i64>().ok().map(|value| value as u64),
        _ => text.parse::<u64>().ok(),
    };
    let [all] = block else { return None };
    all.nodes
        .split(|node| *node == Node::Mark(','))
        .map(|label| {
            let (name, first, last) = match label {
                [Node::Text(name), Node::Mark('='), Node::Word(only)] => (name, only, only),
                [Node::Text(name), Node::Mark('='), Node::Word(first), Node::Word(dots), Node::Word(last)]
                    if dots == "..." =>
                {
                    (name, first, last)
                }
                _ => return None,
            };
            Some(Label {
                name: name.to_string(),
                first: value(first)?,
                last: value(last)?,
            })
        })
        .collect()
}

fn integer(block: &[Statement<'_>]) -> Option<Integer> {
    let bits: u8 = tree::number(block, "size")?;
    let value = |key| tree::value(block, key);
    let integer = match (value("signed"), value("base"), value("encoding")) {
        (Some("true"), _, _) => Integer::signed(bits),
        (_, _, Some("UTF8")) => Integer::TEXT,
        (_, Some("16"), _) => Integer::hex(bits),
        _ => Integer::unsigned(bits),
    };
    match value("align") {
        Some("8") if matches!(bits, 8 | 16 | 32 | 64) && integer.bits == bits => Some(integer),
        Some("1") if matches!(bits, 1..=64) => Some(integer.bit_field(bits)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
