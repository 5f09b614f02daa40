// SPDX-License-Identifier: GPL-2.0

//! Conditions of `--until` and `--snapshot-on`.

use crate::run::map_limit::MapLimit;
use crate::run::slow::SlowCall;
use crate::session::channels::Filter;
use control::{Session, Trigger};
use regex::Regex;
use rtrace_input::caret::Caret;
use rtrace_input::trigger::Action;
use rustix::process::Signal;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use system::Error;

/// Something that may happen during a recording.
#[derive(Clone, Debug)]
pub enum Condition {
    /// An event that a pattern picks fires, and the filter accepts it.
    Event {
        /// The pattern, as `set_event` takes it.
        pattern: String,
        /// The filter.
        filter: Option<String>,
    },
    /// A line of the kernel log matches.
    Log(Regex),
    /// A value of a map exceeds a limit.
    Map(MapLimit),
    /// A call takes longer than a limit. [`Condition::define`] makes an event of it.
    Slow(SlowCall),
    /// rtrace gets a signal.
    Signal(Signal),
    /// The command ends with a status other than 0.
    Failure,
}

/// Conditions that end a recording or cause a snapshot.
#[derive(Debug, Default)]
pub struct Conditions {
    /// Conditions that end the recording.
    pub until: Vec<Condition>,
    /// Number of packets to record after an event that ends the recording. Without it, the event ends the recording at
    /// once.
    pub after: Option<u64>,
    /// Conditions that cause a snapshot.
    pub snapshot_on: Vec<Condition>,
    /// Number of snapshots after which the recording ends.
    pub snapshots: Option<u64>,
    /// The least time between two snapshots.
    pub interval: Option<Duration>,
    /// Maximum duration of the recording.
    pub duration: Option<Duration>,
}

/// The signals that can be a condition.
const SIGNALS: [(&str, Signal); 2] = [("USR1", Signal::USR1), ("USR2", Signal::USR2)];

impl Condition {
    /// Whether the condition is a failure of the command.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failure)
    }

    /// If the condition is a slow call: makes it an event in `subsystem`, and returns the specification of that event and
    /// its filter. The event has to be defined before the recording.
    pub fn define(&mut self, subsystem: &str) -> Option<(String, Filter)> {
        let Self::Slow(call) = self else {
            return None;
        };
        let spec = call.spec();
        let pattern = format!("{subsystem}:{}", call.event());
        let filter = call.filter();
        *self = Self::Event {
            pattern: pattern.clone(),
            filter: Some(filter.clone()),
        };
        let filter = Filter {
            patterns: vec![pattern],
            expression: filter.into(),
        };
        Some((spec, filter))
    }

    /// Whether the condition is an event.
    pub fn is_event(&self) -> bool {
        matches!(self, Self::Event { .. })
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |at: usize, reason: &str| format!("\n{}", Caret { text, at, reason });
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let at = text.len() - rest.len();
        match kind {
            "failure" if kind.len() == text.len() => Ok(Self::Failure),
            "event" => event(text, at).map_err(|(at, reason)| wrong(at, reason)),
            "log" if rest.is_empty() => Err(wrong(at, "expected a regular expression")),
            "log" => Regex::new(rest).map(Self::Log).map_err(|e| e.to_string()),
            "map" => match MapLimit::parse(rest) {
                Ok(limit) => Ok(Self::Map(limit)),
                Err((within, reason)) => Err(wrong(at + within, reason)),
            },
            "slow" => match SlowCall::parse(rest) {
                Ok(call) => Ok(Self::Slow(call)),
                Err((within, reason)) => Err(wrong(at + within, reason)),
            },
            "signal" => SIGNALS
                .into_iter()
                .find(|(name, _)| rest.strip_prefix("SIG").unwrap_or(rest) == *name)
                .map(|(_, signal)| Self::Signal(signal))
                .ok_or_else(|| wrong(at, "expected USR1 or USR2")),
            _ => Err(wrong(
                0,
                "expected event:PATTERN, slow:CALL, log:REGEX, map:LIMIT, signal:NAME or failure",
            )),
        }
    }
}

/// Parses the description of an event, from byte `at` on.
fn event(text: &str, at: usize) -> Result<Condition, (usize, &'static str)> {
    let rest = &text[at..];
    let pattern = rest.split(char::is_whitespace).next().unwrap_or("");
    if pattern.is_empty() || pattern.starts_with('!') {
        return Err((at, "expected an event: SYSTEM:EVENT, EVENT or SYSTEM"));
    }
    let behind = rest[pattern.len()..].trim_start();
    let at = text.len() - behind.len();
    let filter = match behind.strip_prefix("if") {
        _ if behind.is_empty() => None,
        Some(filter) if filter.starts_with(char::is_whitespace) && !filter.trim().is_empty() => {
            Some(filter.trim().to_owned())
        }
        _ => return Err((at, "expected 'if' and a filter, or the end")),
    };
    // The begin of a call has its arguments.
    let pattern = match decode::is_call(pattern) {
        true => format!("syscalls:syscall_entry_{pattern}"),
        false => pattern.to_owned(),
    };
    Ok(Condition::Event { pattern, filter })
}

/// Refusal of a trigger by the kernel.
#[derive(Debug, thiserror::Error)]
#[error("{option} event:{pattern}: {cause}")]
pub struct NoTrigger {
    option: &'static str,
    pattern: String,
    cause: Error,
}

impl Conditions {
    /// The end of a run without a command, for the user.
    pub fn end(&self) -> &'static str {
        match self.duration {
            Some(_) => "the time has passed, or Ctrl-C",
            None => "Ctrl-C",
        }
    }

    /// Whether some condition is an event.
    pub fn has_events(&self) -> bool {
        let mut all = self.until.iter().chain(&self.snapshot_on);
        all.any(Condition::is_event)
    }

    /// Sets the session's triggers.
    pub fn apply(&self, session: &Session) -> Result<(), NoTrigger> {
        let end = match self.after {
            Some(packets) => format!("{}:{packets}:1", Action::TraceOffAfter.name()),
            None => format!("{}:1", Action::TraceOff.name()),
        };
        set(session, "--until", &self.until, &end)?;
        let snapshot = Action::Snapshot.name();
        set(session, "--snapshot-on", &self.snapshot_on, snapshot)
    }
}

fn set(
    session: &Session,
    option: &'static str,
    conditions: &[Condition],
    action: &str,
) -> Result<(), NoTrigger> {
    for condition in conditions {
        let Condition::Event { pattern, filter } = condition else {
            continue;
        };
        let filter = filter.as_ref().map(|filter| format!(" if {filter}"));
        let trigger = format!("{action}{}", filter.unwrap_or_default());
        session
            .set_trigger(pattern, &trigger)
            .map_err(|cause| NoTrigger {
                option,
                pattern: pattern.clone(),
                cause,
            })?;
    }
    Ok(())
}

/// A condition that occurred, as text.
#[derive(Debug)]
pub enum Happened {
    /// The condition ends the recording.
    End(String),
    /// The condition causes a snapshot. If it is an event: with the triggers that fired.
    Snapshot(String, Vec<Trigger>),
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::End(what) | Self::Snapshot(what, _)) = self;
        f.write_str(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed() {
        let said = |text: &str| match text.parse().unwrap() {
            Condition::Event { pattern, filter } => format!("{pattern} {filter:?}"),
            Condition::Log(regex) => regex.to_string(),
            Condition::Map(limit) => limit.to_string(),
            Condition::Slow(call) => format!("{} if {}", call.spec(), call.filter()),
            Condition::Signal(signal) => signal.as_raw().to_string(),
            Condition::Failure => "failure".to_owned(),
        };
        for (text, expected) in [
            (
                "event:sched:sched_switch",
                "sched:sched_switch None".to_owned(),
            ),
            ("event:irq", "irq None".to_owned()),
            (
                "event:exit_group if error_code != 0",
                r#"syscalls:syscall_entry_exit_group Some("error_code != 0")"#.to_owned(),
            ),
            (
                "event:a:b  if c == \"d if e\" ",
                r#"a:b Some("c == \"d if e\"")"#.to_owned(),
            ),
            ("log:BUG: |x y", "BUG: |x y".to_owned()),
            ("map:m max > 5ms", "map:m max > 5ms".to_owned()),
            (
                "slow:vfs_fsync > 5ms",
                "slow_vfs_fsync=vfs_fsync -> ret=$retval:s64 if duration_ns > 5000000".to_owned(),
            ),
            ("signal:USR1", Signal::USR1.as_raw().to_string()),
            ("signal:SIGUSR2", Signal::USR2.as_raw().to_string()),
            ("failure", "failure".to_owned()),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_shown() {
        for (text, at, reason) in [
            ("", 0, "expected event:PATTERN"),
            ("sched:sched_switch", 0, "expected event:PATTERN"),
            ("failure:1", 0, "expected event:PATTERN"),
            ("event:", 6, "expected an event"),
            ("event: a", 6, "expected an event"),
            ("event:!a", 6, "expected an event"),
            ("event:a iff b", 8, "expected 'if'"),
            ("event:a if ", 8, "expected 'if'"),
            ("log:", 4, "expected a regular expression"),
            ("map:m max < 5", 10, "expected '>'"),
            ("signal:KILL", 7, "expected USR1"),
            ("slow:", 5, "expected a system call"),
            ("slow:a", 6, "expected '>'"),
            ("slow:a < 1s", 7, "expected '>'"),
            ("slow:a > b", 9, "expected a duration"),
            ("slow:a > 1s b", 12, "expected the end"),
            ("signal", 6, "expected USR1"),
        ] {
            let said = text.parse::<Condition>().unwrap_err();
            let place = format!("\n{text}\n{}^\n{reason}", " ".repeat(at));
            assert!(said.starts_with(&place), "{text}: {said}");
        }
        let said = "log:a(b".parse::<Condition>().unwrap_err();
        assert!(said.contains("a(b") && said.contains('^'), "{said}");
    }
}
