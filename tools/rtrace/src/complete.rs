// SPDX-License-Identifier: GPL-2.0

//! Values that a shell offers for options and arguments: events, sessions, functions, contexts, recipes and traces.
//!
//! The shell runs `rtrace` for each completion, with the command line so far. If a source cannot be read, its values
//! are not offered.

use clap_complete::engine::CompletionCandidate;
use control::{events, Tracer};
use record::recipes;
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use store::is_trace;

/// File in tracefs with the kernel functions that can be traced. debugfs and /sys/kernel contain this tracefs.
const FUNCTIONS: &str = "tracing/available_filter_functions";

/// Maximum number of functions to offer.
const MOST_FUNCTIONS: usize = 500;

/// The directory of the tracer's files that the command line so far names, or the usual one.
fn debugfs() -> OsString {
    let mut words = env::args_os().skip_while(|word| word != "--debugfs");
    words
        .nth(1)
        .unwrap_or_else(|| control::usual_place().into())
}

fn tracer() -> Option<Tracer> {
    Tracer::find(Path::new(&debugfs())).ok()
}

/// The candidates that begin with `current`.
fn beginning(current: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let names = names.into_iter();
    names
        .filter(|name| name.starts_with(&*current))
        .map(CompletionCandidate::new)
        .collect()
}

/// Candidates for an event: event names without the system, systems, and system calls.
pub fn events(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names: BTreeSet<String> = decode::calls().map(str::to_owned).collect();
    let available = tracer().and_then(|tracer| events::available(&tracer).ok());
    for event in available.into_iter().flatten() {
        match event.name.split_once(':') {
            // If the user has typed a system already, the whole name.
            Some(_) if current.to_string_lossy().contains(':') => names.insert(event.name),
            Some((system, name)) => names.insert(system.to_owned()) | names.insert(name.to_owned()),
            None => names.insert(event.name),
        };
    }
    beginning(current, names)
}

/// Candidates for a session.
pub fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let sessions = tracer().and_then(|tracer| tracer.sessions().ok());
    beginning(current, sessions.unwrap_or_default())
}

/// Candidates for a recipe of maps.
pub fn recipes(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(current, recipes::names().map(str::to_owned))
}

/// Candidates for a context.
pub fn contexts(current: &OsStr) -> Vec<CompletionCandidate> {
    let contexts = tracer().and_then(|tracer| tracer.available_contexts().ok());
    beginning(current, contexts.unwrap_or_default())
}

/// Candidates for a function of the kernel.
pub fn functions(current: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(file) = File::open(Path::new(&debugfs()).join(FUNCTIONS)) else {
        return Vec::new();
    };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    // The module of a function follows its name.
    let names = lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned());
    let typed = current.to_string_lossy().into_owned();
    let names = names.filter(|name| name.starts_with(&typed));
    beginning(current, names.take(MOST_FUNCTIONS))
}

/// Candidates for a trace: traces, and directories that may contain some.
pub fn traces(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let parent = typed.rfind('/').map_or("", |slash| &typed[..=slash]);
    let dir = match parent {
        "" => Path::new("."),
        parent => Path::new(parent),
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.path().is_dir());
    let names = entries.filter_map(|entry| {
        let name = format!("{parent}{}", entry.file_name().to_str()?);
        Some(match is_trace(&entry.path()) {
            true => name,
            false => format!("{name}/"),
        })
    });
    beginning(current, names)
}
