// SPDX-License-Identifier: GPL-2.0

//! Choice of the kernel functions to trace, and of the recorded events.

use crate::session::patience::{Interrupted, Patience};
use anyhow::{bail, Context};
use control::{FunctionSet, Session};
use std::fs;
use std::path::Path;
use std::slice;
use system::signals::Signals;

/// Choice of the user. The default is no function.
#[derive(Debug, Default)]
pub struct Functions {
    /// Recorded events of a function.
    pub what: What,
    /// Patterns of the functions to trace; `@FILE` stands for the functions in a file.
    pub only: Vec<String>,
    /// Patterns of functions to exclude from `only`.
    pub not: Vec<String>,
    /// Maximum depth of nested calls.
    pub max_depth: Option<u32>,
}

/// Recorded events of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// The calls.
    #[default]
    Calls,
    /// The calls and the returns.
    Graph,
}

impl Functions {
    /// The functions of a graph, or without any the functions whose calls are recorded.
    pub fn new(calls: &[String], graph: &[String]) -> Self {
        let (what, only) = match graph.is_empty() {
            true => (What::Calls, calls),
            false => (What::Graph, graph),
        };
        Self {
            what,
            only: only.to_vec(),
            ..Self::default()
        }
    }

    /// The pattern of the events. `None` if no function is chosen.
    pub fn events(&self) -> Option<&'static str> {
        (!self.only.is_empty()).then_some(match self.what {
            What::Calls => "ftrace:function",
            What::Graph => "ftrace:funcgraph_*",
        })
    }

    /// Fails if a signal has arrived. Called before and after the start, because choosing and hooking many functions
    /// takes long.
    pub fn check_signals(&self, signals: &mut Signals) -> Result<(), Interrupted> {
        match self.events() {
            Some(_) => Interrupted::check(signals),
            None => Ok(()),
        }
    }

    /// Reports a start or stop that takes long, if functions are traced.
    pub fn patience(&self) -> Option<Patience> {
        self.events().map(|_| Patience::new())
    }

    /// Whether calls and returns are recorded.
    pub fn is_graph(&self) -> bool {
        !self.only.is_empty() && self.what == What::Graph
    }

    /// Sets the choice in the session.
    pub fn apply(&self, session: &Session) -> anyhow::Result<()> {
        if self.only.is_empty() {
            return Ok(());
        }
        if !self.not.is_empty() {
            set(session, FunctionSet::Not, &expand(&self.not)?)?;
        }
        set(session, FunctionSet::Only, &expand(&self.only)?)?;
        if let Some(depth) = self.max_depth {
            session.set_max_graph_depth(depth)?;
        }
        Ok(())
    }
}

/// Sets a set of functions. If one of several patterns is refused, the error names all refused patterns with the
/// reasons, and the patterns that would work. The set then contains the functions of a single pattern.
fn set(session: &Session, set: FunctionSet, patterns: &[String]) -> anyhow::Result<()> {
    let Err(error) = session.set_functions(set, patterns) else {
        return Ok(());
    };
    if patterns.len() < 2 {
        return Err(error.into());
    }
    let (mut fine, mut wrong) = (Vec::new(), Vec::new());
    for pattern in patterns {
        match session.set_functions(set, slice::from_ref(pattern)) {
            Ok(()) => fine.push(format!("`{pattern}`")),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if wrong.is_empty() {
        return Err(error.into());
    }
    let wrong = wrong.join("\n");
    if fine.is_empty() {
        bail!(wrong);
    }
    bail!(
        "{wrong}\nno functions were chosen; these patterns are valid: {}",
        fine.join(", ")
    );
}

/// The patterns, with `@FILE` replaced by the functions in the file.
fn expand(patterns: &[String]) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for pattern in patterns {
        let Some(file) = pattern.strip_prefix('@') else {
            all.push(pattern.clone());
            continue;
        };
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let before = all.len();
        all.extend(text.lines().filter_map(listed));
        anyhow::ensure!(
            all.len() > before,
            "{} names no function",
            Path::new(file).display()
        );
    }
    Ok(all)
}

/// Parses a line with a function in ftrace's form: `vfs_read`, or `ext4_map_blocks [ext4]`.
fn listed(line: &str) -> Option<String> {
    let line = line.split('#').next().unwrap_or("");
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let module = words.next().and_then(|word| {
        let word = word.strip_prefix('[')?;
        word.strip_suffix(']')
    });
    Some(match module {
        Some(module) => format!("{name}:mod:{module}"),
        None => name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_list_functions_as_ftrace_does() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("names");
        fs::write(
            &file,
            "# some\nvfs_read\n\n  ext4_da_* [ext4]\t# of a module\n",
        )
        .unwrap();
        let patterns = ["do_*".to_owned(), format!("@{}", file.display())];
        let expanded = expand(&patterns).unwrap();
        assert_eq!(expanded, ["do_*", "vfs_read", "ext4_da_*:mod:ext4"]);
    }

    #[test]
    fn a_file_without_a_name_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("names");
        let pattern = format!("@{}", file.display());
        let error = expand(&[pattern.clone()]).unwrap_err().to_string();
        assert!(error.contains("cannot read"), "{error}");
        fs::write(&file, "# vfs_read\n").unwrap();
        let error = expand(&[pattern]).unwrap_err().to_string();
        assert!(error.contains("names no function"), "{error}");
    }
}
