// SPDX-License-Identifier: GPL-2.0

//! System calls that have begun and not ended.

use super::argument::Argument;
use super::call_filter::{CallCondition, Values};
use super::who::Who;
use analysis::syscalls::is_end_of;
use analysis::tasks::Serial;
use std::collections::HashMap;
use std::sync::Arc;

/// A call that has begun.
#[derive(Clone, Debug)]
pub struct PendingCall {
    /// Name of the call.
    pub name: String,
    /// The arguments at the begin.
    pub arguments: Vec<Argument>,
    /// The argument that decides the meaning of the result.
    pub decider: Option<u64>,
    /// When it began.
    pub since: u64,
    /// The calling task.
    pub who: Who,
    /// Filter of the call, if it has one.
    pub wanted: Option<Arc<CallCondition>>,
    /// The values that the filter compares.
    pub values: Values,
}

impl PendingCall {
    /// Whether the filter accepts the call. Always true without a filter.
    pub fn is_wanted(&self) -> bool {
        let mut wanted = self.wanted.iter();
        wanted.all(|wanted| wanted.wants(&self.values))
    }
}

/// The begin of a call that ends.
#[derive(Debug)]
pub enum Begin {
    /// The begin is known: it is this call.
    Known(PendingCall),
    /// The thread was in this call. It may be another call than the one that ends.
    Other(PendingCall),
    /// The begin is not in the trace.
    Unknown,
}

/// The calls by thread. A thread is in at most one call.
#[derive(Debug, Default)]
pub struct Calls {
    open: HashMap<Serial, PendingCall>,
}

impl Calls {
    /// Begins a call. Returns the call in which the thread was before, whose end was lost.
    pub fn begin(&mut self, thread: Serial, call: PendingCall) -> Option<PendingCall> {
        self.open.insert(thread, call)
    }

    /// The call of a thread that has not ended.
    pub fn of_thread(&mut self, thread: Serial) -> Option<&mut PendingCall> {
        self.open.get_mut(&thread)
    }

    /// Ends the call of this name, or without a name any call. `is_last` says that no event is missing since the thread
    /// began its last call.
    pub fn end(&mut self, thread: Serial, name: Option<&str>, is_last: bool) -> Begin {
        match self.open.remove(&thread) {
            None => Begin::Unknown,
            Some(call) if !is_last => Begin::Other(call),
            Some(call) if name.is_some_and(|name| !is_end_of(name, &call.name)) => {
                Begin::Other(call)
            }
            Some(call) => Begin::Known(call),
        }
    }

    /// Removes and returns the calls of a process that ends, in order of time.
    pub fn of_process(&mut self, process: i64) -> Vec<PendingCall> {
        self.take(|call| call.who.pid == Some(process))
    }

    /// Removes and returns the calls of the other threads of a process. They end when the thread `but` of the process
    /// executes a program.
    pub fn of_others(&mut self, process: i64, but: Option<Serial>) -> Vec<PendingCall> {
        self.take(|call| call.who.pid == Some(process) && call.who.serial != but)
    }

    /// Removes and returns all calls, in order of time.
    pub fn rest(&mut self) -> Vec<PendingCall> {
        self.take(|_| true)
    }

    fn take(&mut self, is_wanted: impl Fn(&PendingCall) -> bool) -> Vec<PendingCall> {
        let wanted = self.open.iter().filter(|(_, call)| is_wanted(call));
        let mut wanted: Vec<_> = wanted.map(|(tid, call)| (call.since, *tid)).collect();
        wanted.sort_unstable();
        let wanted = wanted.into_iter();
        wanted
            .filter_map(|(_, tid)| self.open.remove(&tid))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, since: u64, process: i64) -> PendingCall {
        PendingCall {
            name: name.to_owned(),
            arguments: Vec::new(),
            decider: None,
            since,
            who: Who {
                pid: Some(process),
                ..Who::default()
            },
            wanted: None,
            values: Values::default(),
        }
    }

    fn kind(begin: Begin) -> &'static str {
        match begin {
            Begin::Known(_) => "known",
            Begin::Other(_) => "other",
            Begin::Unknown => "unknown",
        }
    }

    #[test]
    fn nothing_is_joined_across_a_loss() {
        let mut calls = Calls::default();
        let read = |calls: &mut Calls, end_name, is_last| {
            assert!(calls.begin(1, call("read", 10, 1)).is_none());
            kind(calls.end(1, end_name, is_last))
        };
        assert_eq!(read(&mut calls, Some("read"), true), "known");
        assert_eq!(read(&mut calls, None, true), "known");
        assert_eq!(read(&mut calls, Some("write"), true), "other");
        assert_eq!(read(&mut calls, Some("read"), false), "other");
        assert_eq!(kind(calls.end(1, Some("read"), true)), "unknown");
    }

    #[test]
    fn what_is_left_comes_in_order() {
        let mut calls = Calls::default();
        for (tid, since, process) in [(1, 5, 1), (2, 3, 1), (3, 4, 3)] {
            calls.begin(tid, call("futex", since, process));
        }
        assert_eq!(calls.begin(3, call("read", 6, 3)).unwrap().since, 4);
        let since = |calls: Vec<PendingCall>| -> Vec<u64> {
            calls.into_iter().map(|call| call.since).collect()
        };
        assert_eq!(since(calls.of_process(1)), [3, 5]);
        assert_eq!(since(calls.rest()), [6]);
        assert!(calls.rest().is_empty());
    }
}
