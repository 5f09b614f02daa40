// SPDX-License-Identifier: GPL-2.0

//! Seeded faults: each is found by a check that passes without it, and for the reason named.

mod table;

use rtrace_ring::fault::Fault;
use std::any::Any;
use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

thread_local! {
    /// A bit for each fault that is on. Of the thread, as a search is: loom and shuttle run
    /// all their threads on it.
    static ON: Cell<u64> = const { Cell::new(0) };
    /// Checks are run for a table: what they say of themselves is known already.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Whether the ring is to make that mistake now.
#[inline]
pub fn is_on(fault: Fault) -> bool {
    ON.get() & (1 << fault as u32) != 0
}

/// Says how much was searched: it belongs to the result, so it is not captured.
pub fn say(text: &str) {
    if !QUIET.get() {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// The tests that find a fault.
// Each is a program of its own, and names itself alone.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `tests/ring`: one CPU at a time, every access seen at once.
    Ring,
    /// `tests/order`: two CPUs, weak memory.
    Order,
    /// `tests/shuttle`: two CPUs, long random runs. No fault is left to these alone.
    Shuttle,
}

/// Who has to find `fault`. A new fault does not compile before it has its place here.
fn finder(fault: Fault) -> Suite {
    match fault {
        Fault::ProducedCount
        | Fault::UnsignedCount
        | Fault::AddThenLoad
        | Fault::NoEquation3
        | Fault::NoRetest
        | Fault::NoWriterCheck
        | Fault::NoTagCheck
        | Fault::NarrowTag
        | Fault::SeqBeforeFlag
        | Fault::HoldByStore
        | Fault::OnlyOpenerHolds
        | Fault::PushByStore
        | Fault::PushWithoutRetest
        | Fault::PushOnce
        | Fault::TimeOutsideLoop
        | Fault::LateEndTime
        | Fault::LateLosses
        | Fault::SwitchOfEmpty
        | Fault::FullBeforeTooLarge
        | Fault::OneWayExchange
        | Fault::NoExchange
        | Fault::PollByEquation4 => Suite::Ring,
        Fault::RelaxedRcnt | Fault::NoBarrier | Fault::SwitchElsewhere => Suite::Order,
    }
}

/// All that `suite` has to find.
pub fn of(suite: Suite) -> impl Iterator<Item = Fault> {
    let all = Fault::ALL.iter().copied();
    all.filter(move |&fault| finder(fault) == suite)
}

/// A fault, and what finds it.
pub struct Kill {
    pub fault: Fault,
    /// Faults that are on with it and without it. The check passes with these alone.
    pub with: &'static [Fault],
    /// The check's name, and the check.
    pub check: &'static str,
    pub run: fn(),
    /// What the check says when it finds the fault.
    pub message: &'static str,
}

/// Runs `work` with `faults` on.
pub fn with(faults: &[Fault], work: impl FnOnce()) {
    ON.set(faults.iter().fold(0, |on, &fault| on | (1 << fault as u32)));
    work();
    ON.set(0);
}

/// Runs `check` with `faults` on. Returns what it says if it fails.
fn outcome(faults: &[Fault], check: fn()) -> (Option<String>, Duration) {
    let faults = faults.to_vec();
    let begin = Instant::now();
    // Its own thread, so that what a failed check leaves in thread-local words is gone.
    let ended = std::thread::spawn(move || {
        QUIET.set(true);
        with(&faults, check);
    })
    .join();
    let failure = ended.err().map(|panic| message(&*panic));
    (failure, begin.elapsed())
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").into()
}

impl Kill {
    /// Its line in Documentation/verification.md.
    fn line(&self) -> String {
        let mut with = String::new();
        for below in self.with {
            with += &format!(" on {below:?}");
        }
        format!(
            "| {:?}{with} | {} | {} | {} |\n",
            self.fault,
            self.fault.text(),
            self.check,
            self.message
        )
    }

    /// Returns what is wrong if the fault is not found, or something else is.
    fn test(&self) -> Result<Duration, String> {
        let mut faults = self.with.to_vec();
        faults.push(self.fault);
        let (found, took) = outcome(&faults, self.run);
        match found {
            None => Err(format!("{:?} survives {}", self.fault, self.check)),
            Some(message) if !message.contains(self.message) => Err(format!(
                "{:?} makes {} fail for another reason: {message}",
                self.fault, self.check
            )),
            Some(_) => Ok(took),
        }
    }
}

/// Requires that `kills` finds all that `suite` has to, each by a check that passes without it,
/// and that Documentation/verification.md says so.
pub fn test(suite: Suite, kills: &[Kill]) {
    let mut wrong = problems(suite, kills);
    if let Err(what) = table::check(suite, &kills.iter().map(Kill::line).collect::<String>()) {
        wrong.push(what);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with `kills`.
pub fn problems(suite: Suite, kills: &[Kill]) -> Vec<String> {
    let mut wrong = Vec::new();
    for fault in of(suite) {
        if !kills.iter().any(|kill| kill.fault == fault) {
            wrong.push(format!("nothing looks for {fault:?}"));
        }
    }
    let mut passed: Vec<(&str, &[Fault])> = Vec::new();
    for kill in kills {
        if !passed.contains(&(kill.check, kill.with)) {
            if let (Some(message), _) = outcome(kill.with, kill.run) {
                wrong.push(format!(
                    "{} fails without {:?}: {message}",
                    kill.check, kill.fault
                ));
                continue;
            }
            passed.push((kill.check, kill.with));
        }
        match kill.test() {
            Ok(took) => say(&format!(
                "killed: {:?}: {}: {}: {:.2} s",
                kill.fault,
                kill.check,
                kill.message,
                took.as_secs_f32()
            )),
            Err(what) => wrong.push(what),
        }
    }
    wrong
}
