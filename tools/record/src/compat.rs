// SPDX-License-Identifier: GPL-2.0

//! System calls of 32-bit programs. Two events stand for all of these calls, so patterns of names (`*open*`) pick none
//! of them.

use crate::session::setup::Setup;
use rtrace_input::pattern::Pattern;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The pattern of the two events.
pub const EVENTS: &str = "compat_syscall_*_unknown";

/// Begin and end of a call in the names of events: first rtrace's word, then ftrace's.
const EDGES: [(&str, &str); 2] = [("entry", "enter"), ("exit", "exit")];

/// The patterns of a recording, in order.
#[derive(Clone, Debug)]
pub struct Patterns(Vec<String>);

impl Patterns {
    /// The patterns of all channels.
    pub fn of(setup: &Setup) -> Self {
        let events = setup.channels.iter().flat_map(|channel| &channel.events);
        Self(events.flatten().map(|given| given.value.clone()).collect())
    }

    /// Whether the patterns choose system calls by names and say nothing about calls of 32-bit programs.
    pub fn miss_compat(&self) -> bool {
        let is_chosen = |call| {
            EDGES
                .iter()
                .any(|(edge, _)| self.choose(edge, call) == Some(true))
        };
        let mut edges = EDGES.iter();
        edges.all(|(edge, _)| {
            self.last(&[format!("compat_syscall_{edge}_unknown")])
                .is_none()
        }) && decode::calls().any(is_chosen)
    }

    /// Whether the patterns choose the begin (`entry`) or the end (`exit`) of the call `call` of a 32-bit program.
    pub fn choose_compat(&self, edge: &str, call: &str) -> bool {
        self.choose(edge, call).unwrap_or(false)
    }

    /// Whether the patterns choose this end of the call. [`None`] if no pattern is about it.
    fn choose(&self, edge: &str, call: &str) -> Option<bool> {
        let ftrace = EDGES.iter().find(|(own, _)| *own == edge);
        self.last(&[
            format!("syscall_{edge}_{call}"),
            format!("sys_{}_{call}", ftrace.map_or(edge, |(_, ftrace)| ftrace)),
            format!("compat_syscall_{edge}_unknown"),
        ])
    }

    /// Whether the last pattern that picks an event by one of its names enables it.
    fn last(&self, names: &[String]) -> Option<bool> {
        let picks = |pattern: &Pattern<'_>| {
            let mut names = names.iter();
            names.any(|name| pattern.matches("syscalls", name))
        };
        let patterns = self.0.iter().map(|word| Pattern::parse(word));
        Some(patterns.rev().find(picks)?.enables)
    }
}

/// Whether a file is a program of 32 bits.
pub fn is_32_bit(program: &Path) -> bool {
    let mut begin = [0; 5];
    let read = File::open(program).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"\x7fELF\x01"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(words: &str) -> Patterns {
        Patterns(words.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn names_pick_no_calls_of_32_bit_programs() {
        for (words, is_missed) in [
            ("", false),
            ("sched_switch", false),
            ("syscalls", false),
            ("*:*", false),
            ("*open*", true),
            ("sched_switch syscall_*_openat", true),
            ("sys_enter_openat", true),
            ("*open* compat_*", false),
            ("syscalls !compat_*", false),
            ("*open* !*open*", false),
        ] {
            assert_eq!(patterns(words).miss_compat(), is_missed, "{words}");
        }
    }

    #[test]
    fn calls_of_32_bit_programs_are_chosen_by_their_names() {
        for (words, call, is_chosen) in [
            ("*open*", "open", true),
            ("*open*", "close", false),
            ("syscall_*_openat", "openat", true),
            ("sys_enter_openat", "openat", true),
            ("syscalls", "unknown", true),
            ("syscalls !*open*", "open", false),
            ("compat_*", "open", true),
            ("*open* !compat_*", "open", false),
        ] {
            let chosen = patterns(words).choose_compat("entry", call);
            assert_eq!(chosen, is_chosen, "{words}: {call}");
        }
    }

    #[test]
    fn programs_of_32_bits() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        for (begin, is_it) in [
            (&b"\x7fELF\x01\x01"[..], true),
            (b"\x7fELF\x02", false),
            (b"#!", false),
        ] {
            std::fs::write(&program, begin).unwrap();
            assert_eq!(is_32_bit(&program), is_it, "{begin:?}");
        }
    }
}
