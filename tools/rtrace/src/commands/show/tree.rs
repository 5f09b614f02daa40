// SPDX-License-Identifier: GPL-2.0

//! Nested calls as text, as ftrace's function_graph tracer shows them, with its column of tasks.
//!
//! A call without nested calls has one line, where it returns. Any other call has one line where it begins and one
//! where it returns. The next event of the task decides between one line and two, so the call's line waits for that
//! event.

use super::who::Who;
use analysis::tasks::Serial;
use std::collections::HashMap;
use std::fmt::{Display, Write};
use terminal::printable;

/// Width of the column of tasks, as in ftrace.
const TASK_WIDTH: usize = 14;

/// The column of durations in a line without a duration.
const NO_DURATION: &str = "              |  ";

/// State of the tree: open calls and waiting lines.
#[derive(Debug, Default)]
pub struct Tree {
    threads: HashMap<Thread, Calls>,
    /// The call of each CPU whose line waits.
    waiting: HashMap<u32, Waiting>,
}

/// A thread. If the thread is not known: the code that runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    Known(Serial),
    On(u32),
}

/// The calls of a thread that have not returned.
#[derive(Debug, Default)]
struct Calls {
    /// The calls, from the outermost to the innermost.
    open: Vec<FunctionCall>,
    /// The CPU on which the innermost call waits for its line.
    waits_on: Option<u32>,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The function's address.
    pub function: u64,
    /// Number of calls around this one.
    pub depth: u32,
}

impl Calls {
    /// Removes the innermost calls while `is_over` is true for them.
    fn leave(&mut self, is_over: impl Fn(&FunctionCall) -> bool) {
        while self.open.last().is_some_and(&is_over) {
            self.open.pop();
        }
    }
}

/// A call whose line is not written yet.
#[derive(Debug)]
struct Waiting {
    thread: Thread,
    call: FunctionCall,
    who: Who,
    name: String,
}

/// Place of an event.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The CPU.
    pub cpu: u32,
    /// The task.
    pub who: &'a Who,
}

impl Place<'_> {
    fn thread(self) -> Thread {
        // Each CPU has an idle thread of its own.
        let known = self.who.serial.map(Thread::Known);
        known.unwrap_or(Thread::On(self.cpu))
    }
}

impl Tree {
    /// Writes the head of the columns.
    pub fn head(out: &mut String) {
        out.push_str(
            "# CPU  TASK/PID         DURATION                  FUNCTION CALLS\n\
             # |     |    |           |   |                     |   |   |   |\n",
        );
    }

    /// Begins a call.
    pub fn begin(&mut self, out: &mut String, place: Place<'_>, call: FunctionCall, name: String) {
        self.settle(out, place);
        let thread = place.thread();
        let calls = self.threads.entry(thread).or_default();
        // Open calls that cannot contain the new call have returned, and their returns were not recorded.
        calls.leave(|open| open.depth >= call.depth);
        calls.open.push(call);
        calls.waits_on = Some(place.cpu);
        let waiting = Waiting {
            thread,
            call,
            who: place.who.clone(),
            name,
        };
        self.waiting.insert(place.cpu, waiting);
    }

    /// Ends a call that took `nanoseconds`.
    pub fn end(
        &mut self,
        out: &mut String,
        place: Place<'_>,
        call: FunctionCall,
        name: &str,
        nanoseconds: u64,
    ) {
        let thread = place.thread();
        let waits = self.waiting.get(&place.cpu);
        if waits.is_some_and(|waiting| waiting.thread == thread && waiting.call == call) {
            self.waiting.remove(&place.cpu);
            let calls = self.threads.entry(thread).or_default();
            calls.waits_on = None;
            calls.open.pop();
            self.forget_idle(thread);
            line(
                out,
                place,
                Some(nanoseconds),
                call.depth,
                format_args!("{name}();"),
            );
            return;
        }
        self.settle(out, place);
        let calls = self.threads.entry(thread).or_default();
        calls.leave(|open| open.depth > call.depth);
        let is_known = calls.open.last() == Some(&call);
        calls.leave(|open| open.depth == call.depth);
        self.forget_idle(thread);
        if is_known {
            line(out, place, Some(nanoseconds), call.depth, "}");
        } else {
            // The begin of the call is not in the trace.
            line(
                out,
                place,
                Some(nanoseconds),
                call.depth,
                format_args!("}} /* {name} */"),
            );
        }
    }

    /// Removes a thread without open calls: the number of threads has no limit.
    fn forget_idle(&mut self, thread: Thread) {
        if self
            .threads
            .get(&thread)
            .is_some_and(|calls| calls.open.is_empty())
        {
            self.threads.remove(&thread);
        }
    }

    /// Writes an event that is not a call.
    pub fn note(&mut self, out: &mut String, place: Place<'_>, what: impl Display) {
        self.settle(out, place);
        let calls = self.threads.get(&place.thread());
        let last = calls.and_then(|calls| calls.open.last());
        let depth = last.map_or(0, |call| call.depth.saturating_add(1));
        line(out, place, None, depth, format_args!("/* {what} */"));
    }

    /// Handles a loss: the threads of the missing events are unknown, so no thread is known to be in a call.
    pub fn lose(&mut self, out: &mut String) {
        self.settle_all(out);
        self.threads.clear();
    }

    /// Writes all waiting lines.
    pub fn settle_all(&mut self, out: &mut String) {
        let mut cpus: Vec<_> = self.waiting.keys().copied().collect();
        cpus.sort_unstable();
        for cpu in cpus {
            self.settle_cpu(out, cpu);
        }
    }

    /// Writes the waiting line of this CPU, and that of this thread on another CPU.
    fn settle(&mut self, out: &mut String, place: Place<'_>) {
        let calls = self.threads.get(&place.thread());
        if let Some(cpu) = calls.and_then(|calls| calls.waits_on) {
            self.settle_cpu(out, cpu);
        }
        self.settle_cpu(out, place.cpu);
    }

    fn settle_cpu(&mut self, out: &mut String, cpu: u32) {
        let Some(Waiting {
            thread,
            call,
            who,
            name,
        }) = self.waiting.remove(&cpu)
        else {
            return;
        };
        if let Some(calls) = self.threads.get_mut(&thread) {
            calls.waits_on = None;
        }
        let place = Place { cpu, who: &who };
        line(out, place, None, call.depth, format_args!("{name}() {{"));
    }
}

/// Writes a line. Writing to a String cannot fail.
fn line(
    out: &mut String,
    Place { cpu, who }: Place<'_>,
    nanoseconds: Option<u64>,
    depth: u32,
    what: impl Display,
) {
    let _ = write!(out, " {cpu:>3}) {} | ", task(who));
    match nanoseconds {
        Some(nanoseconds) => {
            let _ = write!(out, "{} {}|  ", mark(nanoseconds), duration(nanoseconds));
        }
        None => out.push_str(NO_DURATION),
    }
    // ftrace indents no further either.
    for _ in 0..depth.min(50) {
        out.push_str("  ");
    }
    let _ = writeln!(out, "{what}");
}

/// The task, centred in its column. Unknown parts are shown as in ftrace.
fn task(who: &Who) -> String {
    let comm = who.comm.as_deref().map_or("<...>".into(), printable);
    let comm: String = comm.chars().take(7).collect();
    let tid = who
        .tid
        .map_or_else(|| "?".to_owned(), |tid| tid.to_string());
    format!("{:^TASK_WIDTH$}", format!("{comm}-{tid}"))
}

/// ftrace's mark for the length of a duration: more than 10 us, 100 us, 1 ms, 10 ms, 100 ms, 1 s.
fn mark(nanoseconds: u64) -> char {
    match nanoseconds {
        1_000_000_001.. => '$',
        100_000_001.. => '@',
        10_000_001.. => '*',
        1_000_001.. => '#',
        100_001.. => '!',
        10_001.. => '+',
        _ => ' ',
    }
}

/// Microseconds in 8 columns and the unit, as ftrace writes them.
fn duration(nanoseconds: u64) -> String {
    let (whole, rest) = (nanoseconds / 1000, nanoseconds % 1000);
    let whole = whole.to_string();
    let number = match 7_usize.checked_sub(whole.len()) {
        None | Some(0) => whole,
        Some(places) => format!("{whole}.{:.places$}", format!("{rest:03}")),
    };
    let gap = 8_usize.saturating_sub(number.len());
    format!("{number} us {:gap$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Paper {
        tree: Tree,
        text: String,
    }

    impl Paper {
        fn new() -> Self {
            let (tree, text) = (Tree::default(), String::new());
            Self { tree, text }
        }

        fn begin(&mut self, cpu: u32, tid: i64, name: &str, depth: u32) {
            let who = &who(tid);
            let place = Place { cpu, who };
            let call = call(name, depth);
            self.tree
                .begin(&mut self.text, place, call, name.to_owned());
        }

        fn end(&mut self, cpu: u32, tid: i64, name: &str, depth: u32, nanoseconds: u64) {
            let who = &who(tid);
            let place = Place { cpu, who };
            let call = call(name, depth);
            self.tree
                .end(&mut self.text, place, call, name, nanoseconds);
        }

        /// The text after the column of tasks.
        fn lines(&self) -> Vec<&str> {
            let lines = self.text.lines();
            lines
                .map(|line| line.split_once(" | ").unwrap().1)
                .collect()
        }
    }

    fn who(tid: i64) -> Who {
        Who {
            tid: Some(tid),
            serial: Some(tid.unsigned_abs()),
            pid: None,
            comm: Some("cat".to_owned()),
        }
    }

    fn call(name: &str, depth: u32) -> FunctionCall {
        let function = name.bytes().map(u64::from).sum();
        FunctionCall { function, depth }
    }

    #[test]
    fn calls_stand_in_each_other() {
        let mut paper = Paper::new();
        paper.begin(1, 7, "vfs_read", 0);
        paper.begin(1, 7, "rw_verify_area", 1);
        paper.end(1, 7, "rw_verify_area", 1, 450);
        paper.begin(1, 7, "new_sync_read", 1);
        paper.begin(1, 7, "touch_atime", 2);
        paper.end(1, 7, "touch_atime", 2, 1_234);
        paper.end(1, 7, "new_sync_read", 1, 10_001);
        paper.end(1, 7, "vfs_read", 0, 123_456_789);
        assert_eq!(
            paper.text,
            "   1)     cat-7      |               |  vfs_read() {\n\
             \x20  1)     cat-7      |   0.450 us    |    rw_verify_area();\n\
             \x20  1)     cat-7      |               |    new_sync_read() {\n\
             \x20  1)     cat-7      |   1.234 us    |      touch_atime();\n\
             \x20  1)     cat-7      | + 10.001 us   |    }\n\
             \x20  1)     cat-7      | @ 123456.7 us |  }\n"
        );
    }

    #[test]
    fn threads_that_are_in_no_call_take_no_memory() {
        let mut paper = Paper::new();
        for tid in 1..100 {
            paper.begin(0, tid, "read", 0);
            paper.begin(0, tid, "inner", 1);
            paper.end(0, tid, "inner", 1, 1);
            paper.end(0, tid, "read", 0, 2);
            paper.begin(0, tid, "write", 0);
            paper.end(0, tid, "write", 0, 3);
            paper.end(0, tid, "before", 0, 4);
        }
        assert!(paper.tree.threads.is_empty(), "{:?}", paper.tree);
        assert!(paper.tree.waiting.is_empty());
    }

    #[test]
    fn threads_do_not_mix() {
        let mut paper = Paper::new();
        paper.begin(0, 7, "read", 0);
        paper.begin(1, 8, "write", 0);
        // Thread 7 is switched out in its call, and continues on another CPU.
        paper.begin(0, 9, "open", 0);
        paper.end(1, 8, "write", 0, 1);
        paper.end(0, 9, "open", 0, 2);
        paper.end(1, 7, "read", 0, 3);
        assert_eq!(
            paper.lines(),
            [
                "              |  read() {",
                "  0.001 us    |  write();",
                "  0.002 us    |  open();",
                "  0.003 us    |  }",
            ]
        );
    }

    #[test]
    fn a_call_that_waits_is_written_before_its_thread_goes_on_elsewhere() {
        let mut paper = Paper::new();
        paper.begin(0, 7, "read", 0);
        paper.begin(1, 7, "sleep", 1);
        paper.tree.settle_all(&mut paper.text);
        assert_eq!(
            paper.lines(),
            ["              |  read() {", "              |    sleep() {"]
        );
    }

    #[test]
    fn what_is_missing_is_not_made_up() {
        let mut paper = Paper::new();
        paper.end(0, 7, "before", 2, 5_000);
        paper.begin(0, 7, "read", 0);
        paper.begin(0, 7, "lost", 1);
        paper.tree.lose(&mut paper.text);
        paper.end(0, 7, "read", 0, 7_000);
        // The return of `open` is missing.
        paper.begin(0, 7, "open", 0);
        paper.begin(0, 7, "inner", 1);
        paper.begin(0, 7, "close", 0);
        paper.end(0, 7, "close", 0, 9_000);
        assert_eq!(
            paper.lines(),
            [
                "  5.000 us    |      } /* before */",
                "              |  read() {",
                "              |    lost() {",
                "  7.000 us    |  } /* read */",
                "              |  open() {",
                "              |    inner() {",
                "  9.000 us    |  close();",
            ]
        );
    }

    #[test]
    fn marks_and_durations_are_those_of_ftrace() {
        for (nanoseconds, text) in [
            (0, "  0.000 us    "),
            (10_000, "  10.000 us   "),
            (10_001, "+ 10.001 us   "),
            (999_999, "! 999.999 us  "),
            (1_000_001, "# 1000.001 us "),
            (99_999_999, "* 99999.99 us "),
            (999_999_999, "@ 999999.9 us "),
            (9_999_999_999, "$ 9999999 us  "),
        ] {
            let shown = format!("{} {}", mark(nanoseconds), duration(nanoseconds));
            assert_eq!(shown, text);
        }
    }
}
