// SPDX-License-Identifier: GPL-2.0

//! A value from the user, and its place in a file.

use anyhow::Context;
use std::fmt::Display;

/// A value from the command line, or from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// `FILE:LINE`. `None` on the command line.
    place: Option<String>,
}

impl<T> From<T> for Given<T> {
    /// A value from the command line.
    fn from(value: T) -> Self {
        Self { value, place: None }
    }
}

impl<T> Given<T> {
    /// A value from a line of a file.
    pub fn in_file(value: T, file: &str, line: usize) -> Self {
        Self {
            value,
            place: Some(format!("{file}:{line}")),
        }
    }

    /// Converts the value and keeps the place.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Given<U> {
        Given {
            value: make(self.value),
            place: self.place,
        }
    }

    /// A message about the value, after its place.
    pub fn wrong(&self, what: impl Display) -> String {
        match &self.place {
            Some(place) => format!("{place}: {what}"),
            None => what.to_string(),
        }
    }

    /// Adds the place to an error from the use of the value.
    pub fn used<R>(&self, result: Result<R, impl Into<anyhow::Error>>) -> anyhow::Result<R> {
        let result = result.map_err(Into::into);
        match &self.place {
            Some(place) => result.with_context(|| place.clone()),
            None => result,
        }
    }
}

impl AsRef<str> for Given<String> {
    fn as_ref(&self) -> &str {
        &self.value
    }
}
