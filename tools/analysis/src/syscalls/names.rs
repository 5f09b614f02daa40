// SPDX-License-Identifier: GPL-2.0

//! Names of system calls.

use ctf::Event;
use std::borrow::Cow;
use std::collections::HashMap;

/// Name of an event's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallName {
    /// The event's own name gives the name.
    Own(String),
    /// The number in this field gives the name. One event stands for all calls of 32-bit programs.
    OfNumber(usize),
    /// The begin of the call gives the name: one event ends every call.
    OfBegin,
}

impl CallName {
    /// Returns the name of an event's call.
    pub fn of<'a>(&'a self, event: &Event<'_>) -> Cow<'a, str> {
        let field = match self {
            Self::Own(name) => return Cow::Borrowed(name),
            Self::OfBegin => return Cow::Borrowed("unknown"),
            Self::OfNumber(field) => *field,
        };
        let ty = &event.layout.fields[field].ty;
        let name = event.value(field).and_then(|value| ty.value_name(value));
        format!("compat_{}", name.as_deref().unwrap_or("unknown")).into()
    }
}

/// Returns whether the exit of the call `ended` can belong to the call `began`. If a program replaces
/// itself by execveat(2), the new program returns from execve(2) on x86-64. It returns as a program of its
/// own kind: of 32 or of 64 bits.
pub fn is_end_of(ended: &str, began: &str) -> bool {
    let own = |name| str::strip_prefix(name, "compat_").unwrap_or(name);
    ended == began || own(ended) == "execve" && matches!(own(began), "execve" | "execveat")
}

/// Names of the calls of a trace. The index of a name identifies its call.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

/// The call of an event.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// The call at this index.
    At(usize),
    /// The call whose number is in this field.
    OfNumber(usize),
    /// The call that the thread has begun.
    OfBegin,
}

impl Names {
    /// Returns the call of the events with this name.
    pub fn which(&mut self, name: CallName) -> Which {
        match name {
            CallName::Own(name) => Which::At(self.add(name)),
            CallName::OfNumber(field) => Which::OfNumber(field),
            CallName::OfBegin => Which::OfBegin,
        }
    }

    /// Returns the index of an event's call. Returns `None` if the event does not have it.
    pub fn place(&mut self, which: Which, event: &Event<'_>) -> Option<usize> {
        match which {
            Which::At(place) => Some(place),
            Which::OfNumber(field) => {
                let name = CallName::OfNumber(field).of(event).into_owned();
                Some(self.add(name))
            }
            Which::OfBegin => None,
        }
    }

    /// Returns whether the exit of the call at one index can belong to the call at the other.
    pub fn is_end_of(&self, ended: usize, began: usize) -> bool {
        let name = |place| self.names.get(place).map_or("", String::as_str);
        ended == began || is_end_of(name(ended), name(began))
    }

    /// Returns all names, by index.
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
