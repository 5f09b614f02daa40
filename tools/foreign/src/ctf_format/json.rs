// SPDX-License-Identifier: GPL-2.0

//! Parses the description of a trace in JSON (CTF 2): fragments that begin with a record separator.

use super::model::*;
use super::types::PARTS;
use serde_json::{Map, Value as Json};
use std::cell::Cell;
use std::collections::HashMap;
use system::{Error, Result};
use uuid::Uuid;

/// The byte before each fragment.
pub const SEPARATOR: char = '\x1e';

/// Maximum number of types within types.
const DEPTH: usize = 16;

type Object = Map<String, Json>;

/// Result of parsing a part of a fragment.
type Parsed<T> = std::result::Result<T, String>;

/// Parses a description.
pub fn parse(text: &str) -> Result<Description> {
    let mut parser = Parser::default();
    let mut line = 1;
    for fragment in text.split(SEPARATOR) {
        if !fragment.trim().is_empty() {
            let parsed = serde_json::from_str(fragment).map_err(|error| error.to_string());
            let taken = parsed.and_then(|json| parser.fragment(json));
            taken.map_err(|what| Error::Metadata { line, what })?;
        }
        line += fragment.matches('\n').count();
    }
    Ok(parser.this)
}

#[derive(Debug, Default)]
struct Parser {
    this: Description,
    aliases: HashMap<String, Json>,
    /// The number of field classes so far.
    parts: Cell<usize>,
}

fn object(json: &Json) -> Parsed<&Object> {
    json.as_object()
        .ok_or_else(|| "an object is missing".to_owned())
}

fn string<'a>(of: &'a Object, key: &str) -> Option<&'a str> {
    of.get(key)?.as_str()
}

fn unsigned(of: &Object, key: &str) -> Option<u64> {
    of.get(key)?.as_u64()
}

/// An id of a trace: 16 numbers.
fn uuid(json: Option<&Json>) -> Option<Uuid> {
    let bytes = json?
        .as_array()?
        .iter()
        .map(|byte| u8::try_from(byte.as_u64()?).ok());
    Uuid::from_slice(&bytes.collect::<Option<Vec<_>>>()?).ok()
}

impl Parser {
    fn fragment(&mut self, json: Json) -> Parsed<()> {
        let of = object(&json)?;
        match string(of, "type") {
            Some("preamble") => {
                if unsigned(of, "version") != Some(2) {
                    return Err(
                        "CTF of an unknown version: rtrace reads versions 1.8 and 2".to_owned()
                    );
                }
                self.this.uuid = uuid(of.get("uuid"));
            }
            Some("field-class-alias") => {
                let name = string(of, "name").ok_or("an alias without name")?;
                let class = of
                    .get("field-class")
                    .ok_or("an alias without field class")?;
                self.aliases.insert(name.to_owned(), class.clone());
            }
            Some("trace-class") => {
                self.this.uuid = self.this.uuid.or(uuid(of.get("uuid")));
                let uid = string(of, "uid").and_then(|uid| uid.parse().ok());
                self.this.uuid = self.this.uuid.or(uid);
                for (key, value) in of
                    .get("environment")
                    .and_then(Json::as_object)
                    .into_iter()
                    .flatten()
                {
                    let text = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    self.this.env.insert(key.clone(), text);
                }
                self.this.packet_header =
                    self.scope(of, "packet-header-field-class", Scope::Header)?;
            }
            Some("clock-class") => self.clock(of)?,
            Some("data-stream-class") => {
                let id = unsigned(of, "id").unwrap_or(0);
                if self.this.streams.iter().any(|stream| stream.id == id) {
                    return Err(format!("stream class {id} is defined twice"));
                }
                let clock = string(of, "default-clock-class-id");
                let clock = clock.or_else(|| string(of, "default-clock-class-name"));
                let stream = StreamClass {
                    id,
                    packet_context: self.scope(of, "packet-context-field-class", Scope::Context)?,
                    header: self.scope(of, "event-record-header-field-class", Scope::Event)?,
                    context: self.scope(
                        of,
                        "event-record-common-context-field-class",
                        Scope::Other,
                    )?,
                    clock: clock.map(str::to_owned),
                    events: Vec::new(),
                };
                self.this.streams.push(stream);
            }
            Some("event-record-class") => {
                let id = unsigned(of, "id").unwrap_or(0);
                let stream = unsigned(of, "data-stream-class-id").unwrap_or(0);
                let name = string(of, "name").map_or_else(|| format!("event {id}"), str::to_owned);
                let event = EventClass {
                    id,
                    context: self.scope(of, "specific-context-field-class", Scope::Other)?,
                    payload: self.scope(of, "payload-field-class", Scope::Other)?,
                    name,
                };
                let mut streams = self.this.streams.iter_mut();
                let class = streams.find(|class| class.id == stream);
                let class = class
                    .ok_or_else(|| format!("event id {id} of an unknown stream class {stream}"))?;
                if class.events.iter().any(|other| other.id == id) {
                    return Err(format!(
                        "event id {id} is defined twice in stream class {stream}"
                    ));
                }
                class.events.push(event);
            }
            Some(other) => return Err(format!("a fragment of an unknown type `{other}`")),
            None => return Err("a fragment without type".to_owned()),
        }
        Ok(())
    }

    fn clock(&mut self, of: &Object) -> Parsed<()> {
        let id = string(of, "id").or_else(|| string(of, "name"));
        let frequency = unsigned(of, "frequency").unwrap_or(1_000_000_000);
        if frequency == 0 {
            return Err("a clock of frequency 0".to_owned());
        }
        let offset = of.get("offset-from-origin").or_else(|| of.get("offset"));
        let offset = offset.and_then(Json::as_object);
        let seconds = offset.and_then(|offset| offset.get("seconds")?.as_i64());
        let cycles = offset.and_then(|offset| unsigned(offset, "cycles"));
        let identity = string(of, "uid").map(str::to_owned);
        let identity = identity.or_else(|| uuid(of.get("uuid")).map(|uuid| uuid.to_string()));
        self.this.clocks.push(ClockClass {
            name: id.ok_or("a clock without id")?.to_owned(),
            identity,
            frequency,
            offset_s: seconds.unwrap_or(0),
            offset: cycles.unwrap_or(0),
            is_absolute: string(of, "origin") == Some("unix-epoch"),
        });
        Ok(())
    }

    fn scope(&self, of: &Object, key: &str, scope: Scope) -> Parsed<Option<Type>> {
        let Some(class) = of.get(key) else {
            return Ok(None);
        };
        match self.class(class, scope, 0)?.0 {
            ty @ Type::Structure(..) => Ok(Some(ty)),
            _ => Err(format!("`{key}` is no structure")),
        }
    }

    /// A field class, and its meaning for the reader.
    fn class(&self, json: &Json, scope: Scope, depth: usize) -> Parsed<(Type, Option<Role>)> {
        if depth > DEPTH {
            return Err("field classes within field classes, too deep".to_owned());
        }
        self.parts.set(self.parts.get() + 1);
        if self.parts.get() > PARTS {
            return Err(format!("more than {PARTS} field classes"));
        }
        if let Some(name) = json.as_str() {
            let alias = self.aliases.get(name);
            let alias = alias.ok_or_else(|| format!("an unknown field class alias `{name}`"))?;
            return self.class(alias, scope, depth + 1);
        }
        let of = object(json)?;
        let kind = string(of, "type").ok_or("a field class without type")?;
        let roles = of
            .get("roles")
            .and_then(Json::as_array)
            .into_iter()
            .flatten();
        let role = roles
            .filter_map(Json::as_str)
            .find_map(|role| scope.role(role));
        let inner = |key: &str| {
            let class = of
                .get(key)
                .ok_or_else(|| format!("a field class `{kind}` without {key}"))?;
            self.class(class, scope, depth + 1)
                .map(|(ty, _)| Box::new(ty))
        };
        let align = match unsigned(of, "alignment").or_else(|| unsigned(of, "minimum-alignment")) {
            None => 1,
            Some(align) if align.is_power_of_two() && align <= 1 << 12 => align as u32,
            Some(align) => return Err(format!("an alignment of {align} bits")),
        };
        let length = || {
            unsigned(of, "length").ok_or_else(|| format!("a field class `{kind}` without length"))
        };
        let bytes = |is_text| {
            let byte = integer_of(8, 8, false, Order::Little);
            let base = if is_text {
                Base::Decimal
            } else {
                Base::Hexadecimal
            };
            Box::new(Type::Integer(Integer {
                is_text,
                base,
                ..byte
            }))
        };
        if let Some(encoding @ ("utf-16be" | "utf-16le" | "utf-32be" | "utf-32le")) =
            string(of, "encoding")
        {
            return Err(format!("strings in {encoding}: rtrace reads UTF-8"));
        }
        let ty = match kind {
            "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean"
            | "fixed-length-unsigned-integer"
            | "fixed-length-signed-integer"
            | "fixed-length-unsigned-enumeration"
            | "fixed-length-signed-enumeration" => {
                let is_signed = kind.starts_with("fixed-length-signed");
                let bits = u8::try_from(length()?)
                    .ok()
                    .filter(|bits| (1..=64).contains(bits));
                let bits = bits.ok_or("an integer of no length from 1 to 64")?;
                let mut integer = integer_of(bits, align, is_signed, order(of)?);
                integer.base = base(of);
                if matches!(kind, "fixed-length-bit-array" | "fixed-length-bit-map") {
                    integer.base = Base::Hexadecimal;
                }
                enumeration(integer, of)?
            }
            "variable-length-unsigned-integer"
            | "variable-length-signed-integer"
            | "variable-length-unsigned-enumeration"
            | "variable-length-signed-enumeration" => {
                let is_signed = kind.starts_with("variable-length-signed");
                let mut integer = integer_of(0, 8, is_signed, Order::Little);
                integer.base = base(of);
                enumeration(integer, of)?
            }
            "fixed-length-floating-point-number" => Type::Float {
                bits: match length()? {
                    32 => 32,
                    64 => 64,
                    other => return Err(format!("a floating-point number of {other} bits")),
                },
                align,
                order: order(of)?,
            },
            "null-terminated-string" => Type::String,
            "static-length-string" => Type::Array(bytes(true), length()?, 8),
            "static-length-blob" => Type::Array(bytes(false), length()?, 8),
            "dynamic-length-string" => {
                Type::Sequence(bytes(true), location(of, "length-field-location")?, 8)
            }
            "dynamic-length-blob" => {
                Type::Sequence(bytes(false), location(of, "length-field-location")?, 8)
            }
            "static-length-array" => Type::Array(inner("element-field-class")?, length()?, align),
            "dynamic-length-array" => {
                let to = location(of, "length-field-location")?;
                Type::Sequence(inner("element-field-class")?, to, align)
            }
            "structure" => {
                let members = of.get("member-classes").or_else(|| of.get("members"));
                let members = members.and_then(Json::as_array).into_iter().flatten();
                let fields = members.map(|member| {
                    let member = object(member)?;
                    let name = string(member, "name").ok_or("a member without name")?;
                    let class = member
                        .get("field-class")
                        .ok_or("a member without field class")?;
                    let (ty, role) = self.class(class, scope, depth + 1)?;
                    let by_name = scope == Scope::Context && name == "cpu_id";
                    Ok(Field {
                        name: name.to_owned(),
                        ty,
                        role: role.or(by_name.then_some(Role::Cpu)),
                    })
                });
                Type::Structure(fields.collect::<Parsed<_>>()?, align)
            }
            "optional" => {
                let to = location(of, "selector-field-location")?;
                let values = ranges(of.get("selector-field-ranges"));
                let value = Choice {
                    name: "value".to_owned(),
                    ty: *inner("field-class")?,
                    values: if values.is_empty() {
                        vec![(1, u64::MAX)]
                    } else {
                        values
                    },
                };
                let none = Choice {
                    name: "none".to_owned(),
                    ty: Type::Structure(Vec::new(), 1),
                    values: vec![(0, u64::MAX)],
                };
                Type::Variant(to, vec![value, none])
            }
            "variant" => {
                let to = location(of, "selector-field-location")?;
                let options = of
                    .get("options")
                    .and_then(Json::as_array)
                    .into_iter()
                    .flatten();
                let choices = options.enumerate().map(|(place, option)| {
                    let option = object(option)?;
                    let class = option
                        .get("field-class")
                        .ok_or("an option without field class")?;
                    let name = string(option, "name");
                    Ok(Choice {
                        name: name.map_or_else(|| format!("option {place}"), str::to_owned),
                        ty: self.class(class, scope, depth + 1)?.0,
                        values: ranges(option.get("selector-field-ranges")),
                    })
                });
                Type::Variant(to, choices.collect::<Parsed<_>>()?)
            }
            other => return Err(format!("an unknown field class `{other}`")),
        };
        Ok((ty, role))
    }
}

/// The part of a packet to which a field belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The header of a packet.
    Header,
    /// The context of a packet.
    Context,
    /// The header of an event.
    Event,
    /// The contexts and fields of an event.
    Other,
}

impl Scope {
    /// The meaning of a role.
    fn role(self, name: &str) -> Option<Role> {
        Some(match (self, name) {
            (Self::Header, "packet-magic-number") => Role::Magic,
            (Self::Header, "metadata-stream-uuid" | "trace-class-uuid") => Role::Uuid,
            (Self::Header, "data-stream-class-id") => Role::StreamClass,
            (Self::Header, "data-stream-id") => Role::Stream,
            (Self::Context, "default-clock-timestamp") => Role::Begin,
            (Self::Context, "packet-end-default-clock-timestamp") => Role::End,
            (Self::Context, "packet-content-length") => Role::ContentSize,
            (Self::Context, "packet-total-length") => Role::PacketSize,
            (Self::Context, "packet-sequence-number") => Role::Number,
            (Self::Context, "discarded-event-record-counter-snapshot") => Role::Discarded,
            (Self::Event, "event-record-class-id") => Role::EventId,
            (Self::Event, "default-clock-timestamp") => Role::Time,
            _ => return None,
        })
    }
}

fn integer_of(bits: u8, align: u32, is_signed: bool, order: Order) -> Integer {
    Integer {
        bits,
        align,
        is_signed,
        order,
        base: Base::Decimal,
        is_text: false,
        clock: None,
        save: None,
    }
}

fn order(of: &Object) -> Parsed<Order> {
    match string(of, "byte-order") {
        None | Some("little-endian" | "le") => Ok(Order::Little),
        Some("big-endian" | "be") => Ok(Order::Big),
        Some(other) => Err(format!("an unknown byte order `{other}`")),
    }
}

fn base(of: &Object) -> Base {
    match unsigned(of, "preferred-display-base") {
        Some(16) => Base::Hexadecimal,
        Some(8) => Base::Octal,
        Some(2) => Base::Binary,
        _ => Base::Decimal,
    }
}

/// An integer, or an enumeration if its values have names.
fn enumeration(integer: Integer, of: &Object) -> Parsed<Type> {
    let Some(mappings) = of.get("mappings").and_then(Json::as_object) else {
        return Ok(Type::Integer(integer));
    };
    let mut labels = Vec::new();
    for (name, values) in mappings {
        for (first, last) in ranges(Some(values)) {
            labels.push(Label {
                name: name.clone(),
                first,
                last,
            });
        }
    }
    Ok(Type::Enumeration(integer, labels))
}

/// Ranges of values: pairs of numbers.
fn ranges(json: Option<&Json>) -> Vec<(u64, u64)> {
    let number = |json: &Json| {
        json.as_u64()
            .or_else(|| json.as_i64().map(|value| value as u64))
    };
    let ranges = json.and_then(Json::as_array).into_iter().flatten();
    let ranges = ranges.filter_map(|range| match range.as_array().map(Vec::as_slice) {
        Some([first, last]) => Some((number(first)?, number(last)?)),
        _ => number(range).map(|value| (value, value)),
    });
    ranges.collect()
}

/// The path of a field.
fn location(of: &Object, key: &str) -> Parsed<Reference> {
    let missing = || format!("a field class without {key}");
    let location = of.get(key).ok_or_else(missing)?;
    let (origin, path) = match location {
        Json::Object(location) => (string(location, "origin"), location.get("path")),
        path => (None, Some(path)),
    };
    let root: &[&str] = match origin {
        None => &[],
        Some("packet-header") => &["trace", "packet", "header"],
        Some("packet-context") => &["stream", "packet", "context"],
        Some("event-record-header") => &["stream", "event", "header"],
        Some("event-record-common-context") => &["stream", "event", "context"],
        Some("event-record-specific-context") => &["event", "context"],
        Some("event-record-payload") => &["event", "fields"],
        Some(other) => return Err(format!("an unknown origin `{other}`")),
    };
    let path = path.and_then(Json::as_array).ok_or_else(missing)?;
    // Without an origin, the field is in one of the structures around this one.
    let names = path.iter().filter_map(Json::as_str).map(str::to_owned);
    let root = root.iter().map(|word| (*word).to_owned());
    Ok(Reference::new(root.chain(names).collect()))
}
