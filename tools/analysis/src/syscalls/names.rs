// SPDX-License-Identifier: GPL-2.0

//! What system calls are called.

use ctf::Event;
use std::borrow::Cow;
use std::collections::HashMap;

/// What the call of an event is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallName {
    /// As the event's own name says.
    Own(String),
    /// As the number in this field is: one event stands for all calls of 32-bit programs.
    OfNumber(usize),
}

impl CallName {
    /// The name of an event's call.
    pub fn of<'a>(&'a self, event: &Event<'_>) -> Cow<'a, str> {
        let field = match self {
            Self::Own(name) => return Cow::Borrowed(name),
            Self::OfNumber(field) => *field,
        };
        let ty = &event.layout.fields[field].ty;
        let name = event.value(field).and_then(|value| ty.value_name(value));
        format!("compat_{}", name.as_deref().unwrap_or("unknown")).into()
    }
}

/// Whether the exit of a call `ended` can be that of a call that `began`. A program that another one takes the place
/// of by execveat(2) returns as if from execve(2), as a program of its own kind: of 32 or of 64 bits.
pub fn is_end_of(ended: &str, began: &str) -> bool {
    let own = |name| str::strip_prefix(name, "compat_").unwrap_or(name);
    ended == began || own(ended) == "execve" && matches!(own(began), "execve" | "execveat")
}

/// The names of the calls of a trace. Each is known by its place in this list.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

/// Which call an event is of.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// That at this place.
    At(usize),
    /// That whose number is in this field.
    OfNumber(usize),
}

impl Names {
    /// Which call events are of that have this name.
    pub fn which(&mut self, name: CallName) -> Which {
        match name {
            CallName::Own(name) => Which::At(self.add(name)),
            CallName::OfNumber(field) => Which::OfNumber(field),
        }
    }

    /// The place of an event's call.
    pub fn place(&mut self, which: Which, event: &Event<'_>) -> usize {
        match which {
            Which::At(place) => place,
            Which::OfNumber(field) => self.add(CallName::OfNumber(field).of(event).into_owned()),
        }
    }

    /// Whether the exit of the call at one place can be that of the call at another.
    pub fn is_end_of(&self, ended: usize, began: usize) -> bool {
        let name = |place| self.names.get(place).map_or("", String::as_str);
        ended == began || is_end_of(name(ended), name(began))
    }

    /// All names, by place.
    pub fn all(&self) -> &[String] {
        &self.names
    }

    fn add(&mut self, name: String) -> usize {
        let names = &mut self.names;
        *self.places.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_returns_from_its_own_execve() {
        for (ended, began, is_it) in [
            ("read", "read", true),
            ("read", "compat_read", false),
            ("execve", "execve", true),
            ("compat_execve", "execve", true),
            ("execve", "compat_execve", true),
            ("execve", "execveat", true),
            ("compat_execve", "execveat", true),
            ("execveat", "execve", false),
            ("execve", "read", false),
        ] {
            assert_eq!(is_end_of(ended, began), is_it, "{ended} ends {began}");
        }
    }
}
