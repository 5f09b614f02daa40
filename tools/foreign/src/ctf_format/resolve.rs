// SPDX-License-Identifier: GPL-2.0

//! Finds the fields that lengths and variants refer to, and the meanings of the reader's own fields.

use super::model::*;
use std::collections::HashMap;

/// The scopes of fields, in their order in a packet.
const SCOPES: [&[&str]; 6] = [
    &["trace", "packet", "header"],
    &["stream", "packet", "context"],
    &["stream", "event", "header"],
    &["stream", "event", "context"],
    &["event", "context"],
    &["event", "fields"],
];

/// The integers that were seen, with the names of their values: of the trace, the stream class and the event.
#[derive(Debug, Default)]
struct Seen([HashMap<Vec<String>, Vec<Label>>; 3]);

impl Seen {
    fn get(&self, path: &[String]) -> Option<&Vec<Label>> {
        self.0.iter().find_map(|level| level.get(path))
    }

    fn insert(&mut self, scope: usize, path: &[String], labels: &[Label]) {
        self.0[LEVELS[scope]].insert(path.to_vec(), labels.to_vec());
    }
}

/// The level of each scope.
const LEVELS: [usize; 6] = [0, 1, 1, 1, 2, 2];

/// The places of referenced fields.
type Places = HashMap<Vec<String>, u16>;

/// Resolves all references of a description. Returns the number of places in which values are kept; or the reason why
/// a reference has no target.
pub fn resolve(this: &mut Description) -> Result<u16, String> {
    let mut resolver = Resolver::default();
    let mut seen = Seen::default();
    resolver.scope(0, &mut this.packet_header, &mut seen)?;
    for stream in &mut this.streams {
        seen.0[1].clear();
        resolver.stream.clear();
        resolver.scope(1, &mut stream.packet_context, &mut seen)?;
        resolver.scope(2, &mut stream.header, &mut seen)?;
        resolver.scope(3, &mut stream.context, &mut seen)?;
        for event in &mut stream.events {
            seen.0[2].clear();
            resolver.event.clear();
            let named = |what| format!("event `{}`: {what}", event.name);
            let context = resolver.scope(4, &mut event.context, &mut seen);
            context.map_err(named)?;
            let payload = resolver.scope(5, &mut event.payload, &mut seen);
            payload.map_err(named)?;
            mark(4, &mut event.context, &resolver.event);
            mark(5, &mut event.payload, &resolver.event);
        }
        mark(1, &mut stream.packet_context, &resolver.stream);
        mark(2, &mut stream.header, &resolver.stream);
        mark(3, &mut stream.context, &resolver.stream);
    }
    mark(0, &mut this.packet_header, &resolver.trace);
    Ok(resolver.count)
}

/// Sets the meanings that fields of CTF 1.8 have by their names.
pub fn name_roles(this: &mut Description) {
    let header = |name: &str| match name {
        "magic" => Some(Role::Magic),
        "uuid" => Some(Role::Uuid),
        "stream_id" => Some(Role::StreamClass),
        "stream_instance_id" => Some(Role::Stream),
        _ => None,
    };
    let context = |name: &str| match name {
        "timestamp_begin" => Some(Role::Begin),
        "timestamp_end" => Some(Role::End),
        "content_size" => Some(Role::ContentSize),
        "packet_size" => Some(Role::PacketSize),
        "packet_seq_num" => Some(Role::Number),
        "events_discarded" => Some(Role::Discarded),
        "cpu_id" => Some(Role::Cpu),
        _ => None,
    };
    let event = |name: &str| match name {
        "id" => Some(Role::EventId),
        "timestamp" => Some(Role::Time),
        _ => None,
    };
    set_roles(this.packet_header.as_mut(), &header);
    for stream in &mut this.streams {
        set_roles(stream.packet_context.as_mut(), &context);
        set_roles(stream.header.as_mut(), &event);
    }
}

fn set_roles(ty: Option<&mut Type>, role: &dyn Fn(&str) -> Option<Role>) {
    match ty {
        Some(Type::Structure(fields, _)) => {
            for field in fields {
                let clocked = match &field.ty {
                    Type::Integer(Integer { clock: Some(_), .. }) => Some(Role::Time),
                    _ => None,
                };
                let is_value = !matches!(field.ty, Type::Structure(..) | Type::Variant(..));
                let own = role(&field.name).filter(|_| is_value);
                // A clock's value in the header of an event is its time, whatever its name.
                let is_event = role("timestamp").is_some();
                field.role = own.or(clocked.filter(|_| is_event));
                set_roles(Some(&mut field.ty), role);
            }
        }
        Some(Type::Variant(_, choices)) => {
            for choice in choices {
                set_roles(Some(&mut choice.ty), role);
            }
        }
        _ => {}
    }
}

#[derive(Debug, Default)]
struct Resolver {
    trace: Places,
    stream: Places,
    event: Places,
    count: u16,
}

impl Resolver {
    fn scope(
        &mut self,
        scope: usize,
        ty: &mut Option<Type>,
        seen: &mut Seen,
    ) -> Result<(), String> {
        let mut path: Vec<_> = SCOPES[scope]
            .iter()
            .map(|word| (*word).to_owned())
            .collect();
        match ty {
            Some(ty) => self.ty(scope, ty, &mut path, seen),
            None => Ok(()),
        }
    }

    /// Resolves the references in a type at this path.
    fn ty(
        &mut self,
        scope: usize,
        ty: &mut Type,
        path: &mut Vec<String>,
        seen: &mut Seen,
    ) -> Result<(), String> {
        match ty {
            Type::Integer(_) | Type::Changed(..) | Type::Mapped(..) => {
                seen.insert(scope, path, &[])
            }
            Type::Enumeration(_, labels) => seen.insert(scope, path, labels),
            Type::Float { .. } | Type::String => {}
            Type::Structure(fields, _) => {
                for field in fields {
                    path.push(field.name.clone());
                    self.ty(scope, &mut field.ty, path, seen)?;
                    path.pop();
                }
            }
            Type::Variant(to, choices) => {
                let target = self.refer(scope, to, path, seen)?;
                let labels = seen.get(&target).map_or(&[][..], Vec::as_slice);
                for choice in choices.iter_mut() {
                    if choice.values.is_empty() {
                        // The names of options may have an underscore before them.
                        let plain = |name: &str| name.trim_start_matches('_').to_owned();
                        let own = labels.iter().filter(|label| {
                            label.name == choice.name || plain(&label.name) == plain(&choice.name)
                        });
                        choice.values = own.map(|label| (label.first, label.last)).collect();
                    }
                }
                for choice in choices {
                    path.push(choice.name.clone());
                    self.ty(scope, &mut choice.ty, path, seen)?;
                    path.pop();
                }
            }
            Type::Array(element, ..) => {
                path.push("[]".to_owned());
                self.ty(scope, element, path, seen)?;
                path.pop();
            }
            Type::Sequence(element, to, _) => {
                self.refer(scope, to, path, seen)?;
                path.push("[]".to_owned());
                self.ty(scope, element, path, seen)?;
                path.pop();
            }
        }
        Ok(())
    }

    /// Finds the target of a reference at this path, and gives it a place.
    fn refer(
        &mut self,
        scope: usize,
        to: &mut Reference,
        path: &[String],
        seen: &Seen,
    ) -> Result<Vec<String>, String> {
        let is_absolute = SCOPES.iter().any(|scope| {
            to.path.iter().zip(*scope).all(|(a, b)| a == b) && to.path.len() > scope.len()
        });
        let mut candidates = Vec::new();
        if is_absolute {
            candidates.push(to.path.clone());
        }
        let root = SCOPES[scope].len();
        for length in (root..path.len().max(root)).rev() {
            candidates.push([&path[..length], &to.path].concat());
        }
        for scope in SCOPES[..scope].iter().rev() {
            let root = scope.iter().map(|word| (*word).to_owned());
            candidates.push(root.chain(to.path.iter().cloned()).collect());
        }
        let target = candidates.into_iter().find(|path| seen.get(path).is_some());
        let target = target.ok_or_else(|| {
            let field = path.last().map_or("", String::as_str);
            format!(
                "field `{field}` refers to `{}`, which is no earlier integer",
                to.path.join(".")
            )
        })?;
        let places = match target[0].as_str() {
            "trace" => &mut self.trace,
            "stream" => &mut self.stream,
            _ => &mut self.event,
        };
        let next = self.count;
        let place = *places.entry(target.clone()).or_insert(next);
        if place == next {
            self.count = self.count.checked_add(1).ok_or("too many references")?;
        }
        to.place = place;
        Ok(target)
    }
}

/// Marks the fields whose values are kept.
fn mark(scope: usize, ty: &mut Option<Type>, places: &Places) {
    if let (Some(ty), false) = (ty, places.is_empty()) {
        let mut path: Vec<_> = SCOPES[scope]
            .iter()
            .map(|word| (*word).to_owned())
            .collect();
        mark_in(ty, &mut path, places);
    }
}

fn mark_in(ty: &mut Type, path: &mut Vec<String>, places: &Places) {
    let mut inner = |name: &str, ty: &mut Type| {
        path.push(name.to_owned());
        mark_in(ty, path, places);
        path.pop();
    };
    match ty {
        Type::Structure(fields, _) => {
            fields
                .iter_mut()
                .for_each(|field| inner(&field.name.clone(), &mut field.ty));
        }
        Type::Variant(_, choices) => {
            choices
                .iter_mut()
                .for_each(|choice| inner(&choice.name.clone(), &mut choice.ty));
        }
        Type::Array(element, ..) | Type::Sequence(element, ..) => inner("[]", element),
        Type::Integer(integer)
        | Type::Enumeration(integer, _)
        | Type::Changed(integer, _)
        | Type::Mapped(integer, _) => {
            integer.save = places.get(path).copied();
        }
        Type::Float { .. } | Type::String => {}
    }
}
