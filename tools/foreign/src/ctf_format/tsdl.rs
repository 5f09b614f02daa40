// SPDX-License-Identifier: GPL-2.0

//! Parses the description of a trace in TSDL (CTF 1.8).

use super::model::*;
use super::types::Types;
use ctf::tree::{self, Node, Statement};
use system::Result;

/// Parses a description.
pub fn parse(text: &str) -> Result<Description> {
    let statements = tree::parse(text)?;
    let mut this = Description {
        has_underscores: true,
        ..Description::default()
    };
    let mut types = Types::new(order(&statements)?);
    for statement in &statements {
        if let Some(block) = statement.block("trace") {
            let version = (tree::value(block, "major"), tree::value(block, "minor"));
            if !matches!(version, (None | Some("1"), None | Some("8"))) {
                let (major, minor) = (version.0.unwrap_or("1"), version.1.unwrap_or("8"));
                return Err(statement.error(format!(
                    "CTF of version {major}.{minor}: rtrace reads versions 1.8 and 2"
                )));
            }
            if let Some(uuid) = tree::value(block, "uuid") {
                let uuid = uuid.parse();
                this.uuid = Some(uuid.map_err(|_| statement.error("no valid uuid"))?);
            }
            let inner = types.scope(block, &["packet.header"])?;
            this.packet_header = inner.into_iter().next().flatten();
        } else if let Some(block) = statement.block("env") {
            this.env.extend(block.iter().filter_map(variable));
        } else if let Some(block) = statement.block("clock") {
            this.clocks.push(clock(statement, block)?);
        } else if let Some(block) = statement.block("stream") {
            let parts = types.scope(block, &["packet.context", "event.header", "event.context"])?;
            let [packet_context, header, context] = three(parts);
            let id = tree::value(block, "id").map_or(Some(0), types_number);
            let id = id.ok_or_else(|| statement.error("no valid stream id"))?;
            if this.streams.iter().any(|stream| stream.id == id) {
                return Err(statement.error(format!("stream id {id} is defined twice")));
            }
            this.streams.push(StreamClass {
                id,
                packet_context,
                header,
                context,
                clock: None,
                events: Vec::new(),
            });
        } else if let Some(block) = statement.block("event") {
            let parts = types.scope(block, &["context", "fields"])?;
            let mut parts = parts.into_iter();
            let (context, payload) = (parts.next().flatten(), parts.next().flatten());
            let name = name(block);
            let name = name.ok_or_else(|| statement.error("an event without name"))?;
            let id = tree::value(block, "id").map_or(Some(0), types_number);
            let id = id.ok_or_else(|| statement.error(format!("event `{name}`: no valid id")))?;
            let stream = tree::value(block, "stream_id").map_or(Some(0), types_number);
            let stream = stream
                .ok_or_else(|| statement.error(format!("event `{name}`: no valid stream_id")))?;
            if this.streams.is_empty() && stream == 0 {
                this.streams.push(StreamClass::default());
            }
            let class = this.streams.iter_mut().find(|class| class.id == stream);
            let class = class.ok_or_else(|| {
                statement.error(format!("event id {id} of an unknown stream {stream}"))
            })?;
            class.events.push(EventClass {
                id,
                name,
                context,
                payload,
            });
        } else {
            types.define(statement)?;
        }
    }
    for stream in &mut this.streams {
        stream.events.sort_by_key(|event| event.id);
        let mut pairs = stream.events.windows(2);
        if let Some([a, b]) = pairs.find(|pair| matches!(pair, [a, b] if a.id == b.id)) {
            return Err(system::Error::Metadata {
                line: text.lines().count().max(1),
                what: format!(
                    "events `{}` and `{}` have the same id {} in stream {}",
                    a.name, b.name, a.id, stream.id
                ),
            });
        }
    }
    Ok(this)
}

fn three(parts: Vec<Option<Type>>) -> [Option<Type>; 3] {
    let mut parts = parts.into_iter();
    [(); 3].map(|()| parts.next().flatten())
}

/// The trace's order of bytes, which types before `trace` need, too.
fn order(statements: &[Statement<'_>]) -> Result<Order> {
    let trace = statements.iter().find_map(|s| Some((s, s.block("trace")?)));
    let Some((statement, block)) = trace else {
        return Err(system::Error::Metadata {
            line: 1,
            what: "`trace` is missing".to_owned(),
        });
    };
    match tree::value(block, "byte_order") {
        Some("le") => Ok(Order::Little),
        Some("be" | "network") => Ok(Order::Big),
        _ => Err(statement.error("no valid byte_order")),
    }
}

/// The value of `name = ...`, which may be several words as in `sched:sched_switch`.
fn name(block: &[Statement<'_>]) -> Option<String> {
    block
        .iter()
        .find_map(|statement| match statement.nodes.as_slice() {
            [Node::Word(key), Node::Mark('='), rest @ ..] if key == "name" => {
                let words = rest.iter().map(|node| match node {
                    Node::Word(word) | Node::Text(word) => word.to_string(),
                    Node::Mark(mark) => mark.to_string(),
                    Node::Block(_) => String::new(),
                });
                Some(words.collect())
            }
            _ => None,
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

fn clock(statement: &Statement<'_>, block: &[Statement<'_>]) -> Result<ClockClass> {
    let name = tree::value(block, "name");
    let name = name.ok_or_else(|| statement.error("a clock without name"))?;
    let number = |key: &str, default: i64| match tree::value(block, key) {
        None => Ok(default),
        Some(text) => match super::types::number(text) {
            Some(number) => Ok(number),
            None => Err(statement.error(format!("clock `{name}`: no valid {key}"))),
        },
    };
    let (mut offset_s, mut offset) = (number("offset_s", 0)?, number("offset", 0)?);
    let frequency = number("freq", 1_000_000_000)?;
    if frequency <= 0 {
        return Err(statement.error(format!("a clock of frequency {frequency}")));
    }
    if offset < 0 {
        offset_s = offset_s.saturating_add(offset.div_euclid(frequency));
        offset = offset.rem_euclid(frequency);
    }
    Ok(ClockClass {
        name: name.to_owned(),
        identity: tree::value(block, "uuid").map(str::to_owned),
        frequency: frequency as u64,
        offset_s,
        offset: offset as u64,
        is_absolute: tree::value(block, "absolute").is_some_and(super::types::is_true),
    })
}

fn types_number(text: &str) -> Option<u64> {
    super::types::number(text)
}
