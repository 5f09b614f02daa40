// SPDX-License-Identifier: GPL-2.0

//! The causes of waits as rows, in words.

use super::places::Place;
use super::tree::{By, Cause, Node, Reason, Runner, Tree};
use super::Why;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use terminal::printable;

/// Number of causes below a cause that the text has.
const BELOW: usize = 4;
/// Part of a cause, in percent, below which the text leaves its causes out.
const LEAST: u64 = 3;
/// Part of all waits below which the text leaves causes of a cause out.
const LEAST_SHARE: f64 = 0.005;
/// Number of names that a list in the text has.
const NAMES: usize = 3;

/// A cause.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Row {
    /// blocked, runnable, interrupted, running, queued, served or unknown.
    kind: &'static str,
    /// The cause in words.
    pub text: String,
    /// Its time.
    pub total_ns: u64,
    /// Part of the waiting time of all threads.
    share: f64,
    /// Number of instances.
    pub times: u64,
    /// The longest instances.
    pub longest: Vec<Longest>,
    /// The thread that was blocked or runnable, or that ran; `None` if it is one of those that are asked about.
    comm: Option<String>,
    /// Name of the threads that woke, or ran instead.
    by: Option<String>,
    /// Interrupt, timer or request that woke, or interrupt that ran instead.
    source: Option<String>,
    /// Threads that are the cause, eight at most.
    tids: Vec<i64>,
    /// System call in which the thread was blocked, or ran.
    call: Option<String>,
    /// Lock for which the thread was blocked.
    lock: Option<String>,
    /// Kernel function in which it was blocked.
    function: Option<String>,
    /// The innermost functions of its call stack.
    stack: Option<String>,
    /// The innermost functions of the waker's call stack, of the stack with most time.
    waker_stack: Option<String>,
    /// Numbers of requests: of those before the request in its queue, or that the interrupt completed, by the name of
    /// their threads.
    requests: BTreeMap<String, u64>,
    /// Options of `rtrace record` that make an unknown cause known.
    record: Option<&'static str>,
    /// The causes of the cause.
    causes: Vec<Row>,
}

/// An instance of a cause.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Longest {
    begin_ns: Option<i64>,
    pub duration_ns: u64,
}

/// Returns the rows of a tree, those with most time first.
pub fn rows(tree: Tree, why: &Why, whole: u64) -> Vec<Row> {
    let nodes = tree.nodes.into_iter();
    let mut rows: Vec<_> = nodes
        .filter(|(_, node)| node.ticks > 0)
        .map(|(cause, node)| row(&cause, node, why, whole))
        .collect();
    rows.sort_by(|a, b| (b.total_ns, &a.text).cmp(&(a.total_ns, &b.text)));
    rows
}

fn row(cause: &Cause, mut node: Node, why: &Why, whole: u64) -> Row {
    let clock = why.clock;
    let name = |number: u32| why.names.get(number).cloned().unwrap_or_default();
    let place = |number: Option<u32>| number.and_then(|number| why.places.get(number));
    let longest = node.longest().iter().map(|(ticks, begin)| Longest {
        begin_ns: i64::try_from(clock.since_epoch(*begin)).ok(),
        duration_ns: clock.nanoseconds(*ticks),
    });
    let longest = longest.collect();
    let total_ns = clock.nanoseconds(node.ticks);
    let tids: Vec<_> = node.threads.iter().copied().collect();
    let stack = node.stacks.iter().max_by_key(|(_, ticks)| **ticks);
    let mut row = Row {
        kind: "unknown",
        text: String::new(),
        total_ns,
        share: total_ns as f64 / whole.max(1) as f64,
        times: node.times,
        longest,
        comm: None,
        by: None,
        source: None,
        tids,
        call: None,
        lock: None,
        function: None,
        stack: None,
        waker_stack: stack.map(|(stack, _)| name(*stack)),
        requests: BTreeMap::new(),
        record: None,
        causes: rows(node.below, why, whole),
    };
    let requests = |row: &mut Row, counts: Option<&BTreeMap<u32, u64>>| {
        let counts = counts.into_iter().flatten();
        row.requests = counts.map(|(who, count)| (name(*who), *count)).collect();
        of_threads(&row.requests)
    };
    match *cause {
        Cause::Blocked { who, place: at, by } => {
            row.kind = "blocked";
            row.comm = who.map(name);
            row.at(place(at));
            let at = row.place();
            row.text = match by {
                By::Thread(by) => {
                    row.by = Some(name(by));
                    let by = match row.comm {
                        None => row.named(row.by.as_deref()),
                        Some(_) => printable(&name(by)).to_string(),
                    };
                    let (whose, did, from) = (row.whose(), row.did(), row.from());
                    format!("{whose}blocked{at} until {by} {did}{from}")
                }
                By::Handler(by) => {
                    row.source = Some(name(by));
                    let of = requests(&mut row, why.recent.completes(by));
                    let by = printable(&name(by)).to_string();
                    format!("{}blocked{at} until {by} woke it{of}", row.whose())
                }
                By::Request(by) => {
                    row.source = Some(name(by));
                    let by = printable(&name(by)).to_string();
                    format!("{}blocked{at} by a request to {by}", row.whose())
                }
                By::Holders => {
                    let wakers = row.causes.iter().take(NAMES);
                    let wakers = wakers.map(|cause| cause.named(cause.by.as_deref()));
                    let wakers: Vec<_> = wakers.collect();
                    row.by = row.causes.first().and_then(|cause| cause.by.clone());
                    let did = row.did();
                    format!("blocked{at} until {} {did}", wakers.join(", "))
                }
                By::Timer => {
                    row.source = Some("timer".to_owned());
                    format!("{}slept{at} until its own timer expired", row.whose())
                }
            };
        }
        Cause::Runnable { who, by, woken } => {
            row.kind = "runnable";
            row.comm = who.map(name);
            let how = match (woken, row.comm.is_some()) {
                (_, true) => format!("{}runnable", row.whose()),
                (true, _) => "woken, but its CPU was taken".to_owned(),
                (false, _) => "preempted".to_owned(),
            };
            row.text = match by {
                Runner::Thread(by) => {
                    row.by = Some(name(by));
                    let by = match row.comm {
                        None => row.named(row.by.as_deref()),
                        Some(_) => printable(&name(by)).to_string(),
                    };
                    format!("{how}: {by} ran there")
                }
                Runner::Handler(by) => {
                    row.source = Some(name(by));
                    let of = requests(&mut row, why.recent.completes(by));
                    format!("{how}: {} ran there{of}", printable(&name(by)))
                }
                Runner::Idle => match row.comm.is_some() {
                    true => format!("{how}: its CPU left idle"),
                    false => "woken, while its CPU left idle".to_owned(),
                },
            };
        }
        Cause::Until { waker } => {
            row.kind = "blocked";
            row.by = Some(name(waker));
            let by = row.named(row.by.as_deref());
            row.text = format!("until {by} woke it{}", row.from());
        }
        Cause::Interrupted { handler: None } => {
            row.kind = "interrupted";
            row.text = "interrupted".to_owned();
            // The work of the thread may also be slow because of interrupts on other CPUs: of devices that they share.
            if let Some((handler, times)) = why.recent.most() {
                row.source = Some(name(handler));
                let of = requests(&mut row, why.recent.completes(handler));
                let handler = printable(&name(handler)).to_string();
                row.text += &format!("; on all CPUs, {handler} ran {times} times{of}");
            }
        }
        Cause::Interrupted {
            handler: Some(handler),
        } => {
            row.kind = "interrupted";
            row.source = Some(name(handler));
            let of = requests(&mut row, why.recent.completes(handler));
            row.text = format!("by {}{of}", printable(&name(handler)));
        }
        Cause::Ran { who, call } => {
            row.kind = "running";
            row.comm = Some(name(who));
            row.call = call.map(|call| why.places.call(call).to_owned());
            let who = row.named(row.comm.as_deref());
            row.text = match (&row.call, why.places.has_calls()) {
                (Some(call), _) => format!("{who} ran in {}", printable(call)),
                (None, true) => format!("{who} ran outside of the recorded calls"),
                (None, false) => format!("{who} ran"),
            };
        }
        Cause::Queued => {
            row.kind = "queued";
            let of = requests(&mut row, Some(&node.ahead));
            row.text = format!("in the queue of the device, behind others{of}");
            if row.requests.is_empty() {
                row.text = "in the queue of the device".to_owned();
            }
        }
        Cause::Served => {
            row.kind = "served";
            row.text = "on the device".to_owned();
        }
        Cause::Unknown {
            who,
            is_blocked,
            place: at,
            why: reason,
        } => {
            row.comm = who.map(name);
            row.at(place(at));
            let (reason, record) = match reason {
                Reason::Lost => ("events were lost", Some("-b SIZExN")),
                Reason::Unfinished => ("the wait does not end in the trace", None),
                Reason::NoWakeups => ("no event names the waker", Some("-e sched_waking")),
                Reason::NoWaker => ("the event of the wake-up is missing", None),
                Reason::NoActivity => ("no event shows the cause", None),
            };
            row.record = record;
            let state = if is_blocked { "blocked" } else { "runnable" };
            row.text = format!("{}unknown: {state}{}, {reason}", row.whose(), row.place());
            if let Some(record) = record {
                let _ = write!(row.text, " (`rtrace record {record}`)");
            }
        }
    }
    row
}

/// Returns the threads of requests in words; empty if there are none.
fn of_threads(requests: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<_> = requests.iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(**count));
    let names = counts.iter().take(NAMES);
    let names = names.map(|(name, count)| format!("{count} of {}", printable(name)));
    let names: Vec<_> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (requests: {})", names.join(", ")),
    }
}

impl Row {
    /// Sets the place.
    fn at(&mut self, place: Option<&Place>) {
        if let Some(place) = place {
            self.call.clone_from(&place.call);
            self.lock.clone_from(&place.lock);
            self.function.clone_from(&place.function);
            self.stack.clone_from(&place.stack);
        }
    }

    /// Returns the place in words, after a space; empty if it is not known.
    fn place(&self) -> String {
        let place = Place {
            call: self.call.clone(),
            lock: self.lock.clone(),
            function: self.function.clone(),
            stack: self.stack.clone(),
        };
        let text = place.text();
        text.map_or_else(String::new, |text| format!(" in {}", printable(&text)))
    }

    /// Returns what the thread did that ended the wait.
    fn did(&self) -> &'static str {
        match &self.lock {
            Some(lock) if !lock.starts_with("futex") => "released it",
            _ => "woke it",
        }
    }

    /// Returns the waker's stack in words, after a space; empty if it is not known.
    fn from(&self) -> String {
        let stack = self.waker_stack.as_deref();
        stack.map_or_else(String::new, |stack| format!(" ({})", printable(stack)))
    }

    /// Returns the thread, if it is another one than those that are asked about, before a space.
    fn whose(&self) -> String {
        match &self.comm {
            Some(comm) => format!("{} ", self.named(Some(comm))),
            None => String::new(),
        }
    }

    /// Returns a name with the ids of the threads.
    fn named(&self, name: Option<&str>) -> String {
        let name = printable(name.unwrap_or("?")).to_string();
        match self.tids.as_slice() {
            [] => name,
            [tid] => format!("{name} ({tid})"),
            [tid, others @ ..] => format!("{name} ({tid} and {} more)", others.len()),
        }
    }

    /// Adds a line for the cause, and lines for its causes. If not `is_all`, the small ones of them are left out.
    pub fn lines<'a>(&'a self, depth: usize, is_all: bool, lines: &mut Vec<(usize, &'a Self)>) {
        lines.push((depth, self));
        let least = self.total_ns / 100 * LEAST;
        let most = if is_all { usize::MAX } else { BELOW };
        let rows = self.causes.iter().take(most);
        let is_large = |row: &&Self| row.total_ns >= least && row.share >= LEAST_SHARE;
        for row in rows.filter(|row| is_all || is_large(row)) {
            row.lines(depth + 1, is_all, lines);
        }
    }
}

impl Row {
    /// Returns the begin of the longest instance.
    pub fn begin(&self) -> Option<i64> {
        self.longest.first()?.begin_ns
    }
}
