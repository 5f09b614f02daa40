// SPDX-License-Identifier: GPL-2.0

//! The selection of the functions that a session traces.

use crate::input::caret::Caret;
use crate::input::function::{self as input, FunctionNames};
use crate::input::glob;
use crate::session::Session;
use crate::source::function::{FunctionSet, TracedFunctions};
use crate::sys::debugfs::text::Text;
use crate::sys::functions::names::{self, FunctionName};
use crate::sys::signal;
use core::fmt::{Display, Write};
use kernel::prelude::*;
use kernel::str::CString;

/// A choice of one of the two sets.
#[derive(Clone, Copy)]
pub(in crate::session) enum FunctionChoice {
    /// Only these functions.
    Only,
    /// Not these functions.
    Not,
}

impl FunctionChoice {
    fn set(self, choice: &TracedFunctions) -> &FunctionSet {
        match self {
            Self::Only => &choice.only,
            Self::Not => &choice.not,
        }
    }

    fn set_mut(self, choice: &mut TracedFunctions) -> &mut FunctionSet {
        match self {
            Self::Only => &mut choice.only,
            Self::Not => &mut choice.not,
        }
    }
}

impl Session {
    /// Adds functions to a set or removes them, word by word. With `replace`, the set is emptied first. An
    /// active trace follows at once. On failure nothing changes. May take seconds.
    pub(in crate::session) fn choose_functions(
        &self,
        choice: FunctionChoice,
        file: &str,
        words: &str,
        replace: bool,
    ) -> Result {
        let _control = self.control.lock();
        self.sources.functions.choose(|known| {
            let set = choice.set_mut(known);
            if replace {
                *set = FunctionSet::NONE;
            }
            for word in words.split_ascii_whitespace() {
                // Each word takes a while.
                signal::go_on()?;
                let wrong = |at, reason: &dyn Display| {
                    let text = word;
                    let caret = Caret { text, at, reason };
                    self.refuse(format_args!("{file}: this chooses no function\n{caret}"))
                };
                let parsed = input::FunctionWord::parse(word);
                let parsed = parsed.map_err(|error| wrong(error.at, &error.reason))?;
                let found = find(parsed.functions).map_err(|error| match error {
                    ENOENT => wrong(usize::from(parsed.removes), &none(parsed.functions)),
                    error => error,
                })?;
                *set = match parsed.removes {
                    true => set.without(&found)?,
                    false => set.with(&found)?,
                };
            }
            Ok(())
        })
    }

    /// Removes all functions from a set.
    pub(in crate::session) fn clear_functions(&self, choice: FunctionChoice) -> Result {
        self.sources.functions.choose(|known| {
            *choice.set_mut(known) = FunctionSet::NONE;
            Ok(())
        })
    }

    /// Number of functions in a set.
    pub(in crate::session) fn function_count(&self, choice: FunctionChoice) -> usize {
        self.sources.functions.look(|known| choice.set(known).len())
    }

    /// Writes the names of a set's functions, one per line.
    pub(in crate::session) fn write_functions(
        &self,
        choice: FunctionChoice,
        out: &mut Text,
    ) -> Result {
        let set = self
            .sources
            .functions
            .look(|known| choice.set(known).try_clone())?;
        for function in &*set {
            writeln!(out, "{}", FunctionName::of(*function))?;
        }
        Ok(())
    }

    /// Number of calls that graphs missed, because too many earlier calls of their task had not returned.
    pub(crate) fn graph_missed(&self) -> u64 {
        self.sources.functions.missed()
    }
}

/// Finds functions. `ENOENT`: there are none. May sleep.
fn find(functions: FunctionNames<'_>) -> Result<FunctionSet> {
    let text = |text: &str| CString::try_from_fmt(fmt!("{text}"));
    FunctionSet::new(match functions {
        // By name the kernel finds them slowly: it patches all of them for a moment.
        FunctionNames::Named("*") => match names::all() {
            Err(ENOMEM) => return Err(ENOMEM),
            Ok(all) => all,
            Err(_) => names::matching(c"*")?,
        },
        FunctionNames::Named(name) => names::matching(&text(name)?)?,
        FunctionNames::OfModule { module, name } => {
            let mut found = names::of_module(&text(module)?)?;
            found.retain(|function| glob::matches(name, FunctionName::of(*function).bare()));
            if found.is_empty() {
                return Err(ENOENT);
            }
            found
        }
        FunctionNames::At(address) => names::at(&[usize::try_from(address)?])?,
    })
}

/// Reason why no function was found.
fn none(functions: FunctionNames<'_>) -> &'static str {
    match functions {
        FunctionNames::Named(_) => "no traceable function has this name",
        FunctionNames::OfModule { .. } => {
            "no module of this name is loaded, or it has no such functions"
        }
        FunctionNames::At(_) => "no traceable function begins at this address",
    }
}
