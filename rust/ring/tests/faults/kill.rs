// SPDX-License-Identifier: GPL-2.0

//! Checks that must find faults. Shared by the crates with faults.

use std::any::Any;
use std::path::Path;
use std::time::{Duration, Instant};

/// The suite that finds a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `tests/ring`: one CPU at a time; each store is visible at once.
    Ring,
    /// `tests/order`: two CPUs, weak memory.
    Order,
    /// `tests/shuttle`: two CPUs, long random runs. No fault is found by this suite alone.
    Shuttle,
    /// `rust/map/tests/map`: one CPU at a time.
    Map,
    /// `rust/map/tests/order`: two CPUs, weak memory.
    MapOrder,
}

/// A fault, and a check that finds it.
#[derive(Clone, Copy)]
pub struct Kill {
    /// The suite of the check.
    pub suite: Suite,
    /// Name of the fault. After "on" follows the fault that `run` and `without` both have.
    pub fault: &'static str,
    /// Description of the mistake.
    pub text: &'static str,
    /// Name of the check.
    pub check: &'static str,
    /// Text of the check's failure.
    pub message: &'static str,
    /// Runs the check with the fault.
    pub run: fn(),
    /// Runs the check without the fault. It passes.
    pub without: fn(),
}

/// Runs a check. Returns its message if it fails.
fn outcome(check: fn()) -> (Option<String>, Duration) {
    let begin = Instant::now();
    // On its own thread, so that thread-local state of a failed check is dropped.
    let ended = std::thread::spawn(check).join();
    let failure = ended.err().map(|panic| message(&*panic));
    (failure, begin.elapsed())
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").into()
}

impl Kill {
    /// The line of this fault in Documentation/internals/verification.md.
    fn line(&self) -> String {
        format!(
            "| {} | {} | {} | {} |\n",
            self.fault, self.text, self.check, self.message
        )
    }

    /// Returns an error if the check does not find the fault, or fails for another reason.
    fn test(&self) -> Result<Duration, String> {
        let Self { fault, check, .. } = self;
        match outcome(self.run) {
            (None, _) => Err(format!("{fault} survives {check}")),
            (Some(message), _) if !message.contains(self.message) => Err(format!(
                "{fault} makes {check} fail for another reason: {message}"
            )),
            (Some(_), took) => Ok(took),
        }
    }
}

/// Returns the problems of `kills`. A check must find each fault, for the reason named, and pass
/// without the fault.
pub fn problems(kills: &[Kill]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut passed = Vec::new();
    for kill in kills {
        let ground = kill.fault.split_once(" on ").map(|(_, ground)| ground);
        if !passed.contains(&(kill.check, ground)) {
            if let (Some(message), _) = outcome(kill.without) {
                wrong.push(format!(
                    "{} fails without {}: {message}",
                    kill.check, kill.fault
                ));
                continue;
            }
            passed.push((kill.check, ground));
        }
        match kill.test() {
            Ok(took) => eprintln!(
                "killed: {}: {}: {}: {:.2} s",
                kill.fault,
                kill.check,
                kill.message,
                took.as_secs_f32()
            ),
            Err(what) => wrong.push(what),
        }
    }
    wrong
}

/// Requires that the checks find these faults, all those of `suite`, and that
/// Documentation/internals/verification.md lists them.
pub fn test(suite: Suite, kills: &[Kill]) {
    let mut wrong = problems(kills);
    if let Err(what) = check_table(suite, &kills.iter().map(Kill::line).collect::<String>()) {
        wrong.push(what);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const HEAD: &str = "| fault | what is wrong | found by | which says |\n| --- | --- | --- | --- |\n";

/// Checks that the table of `suite` in Documentation/internals/verification.md consists of `lines`. With `RTRACE_TABLES=write` it writes
/// the table.
fn check_table(suite: Suite, lines: &str) -> Result<(), String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../../Documentation/internals/verification.md");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file:?}: {error}"))?;
    let (begin, end) = (format!("<!-- faults: {suite:?} -->\n"), "<!-- end -->");
    let table = text.split_once(&begin).and_then(|(before, rest)| {
        let (table, after) = rest.split_once(end)?;
        Some((before, table, after))
    });
    let (before, table, after) = table.ok_or(format!("{file:?} has no table after {begin}"))?;
    let expected = format!("{HEAD}{lines}");
    if table == expected {
        Ok(())
    } else if std::env::var("RTRACE_TABLES").is_ok_and(|value| value == "write") {
        let text = format!("{before}{begin}{expected}{end}{after}");
        std::fs::write(&file, text).map_err(|error| format!("{file:?}: {error}"))
    } else {
        Err(format!(
            "the table of {suite:?} in Documentation/internals/verification.md is not what was found; \
             tools/testing/run fault-tables writes it"
        ))
    }
}
