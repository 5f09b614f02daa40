// SPDX-License-Identifier: GPL-2.0

//! What of a trace is exported: which events, and of which time.

use crate::ftrace;
use analysis::{key, EventKey};
use anyhow::bail;
use control::events::{self, Event};
use ctf::{EventLayout, Metadata};
use std::collections::HashSet;
use std::str::FromStr;

/// What the user chose.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Patterns of events; all events, if there are none.
    pub patterns: Vec<String>,
    /// Nothing before this.
    pub from: Option<Time>,
    /// Nothing after it.
    pub to: Option<Time>,
}

/// A time of a trace, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// By the trace's clock.
    Clock(u64),
    /// Since the trace began.
    SinceBegin(u64),
}

impl Time {
    /// By the clock of a trace that began at `begin`, in nanoseconds.
    pub fn clock(self, begin: u64) -> u64 {
        match self {
            Self::Clock(time) => time,
            Self::SinceBegin(time) => begin.saturating_add(time),
        }
    }
}

/// Seconds, with up to nine decimals; with a `+` in front since the trace's begin.
impl FromStr for Time {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let nanoseconds = |word: &str| {
            let (seconds, decimals) = word.split_once('.').unwrap_or((word, "0"));
            let is_number =
                |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number(seconds) || !is_number(decimals) || decimals.len() > 9 {
                return None;
            }
            let seconds: u64 = seconds.parse().ok()?;
            let rest: u64 = format!("{decimals:0<9}").parse().ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(rest)
        };
        let time = match word.strip_prefix('+') {
            Some(word) => nanoseconds(word).map(Self::SinceBegin),
            None => nanoseconds(word).map(Self::Clock),
        };
        time.ok_or_else(|| {
            "not a number of seconds, as 1234.567890, or +1.5 for 1.5 s after the trace's begin"
                .to_owned()
        })
    }
}

impl Choice {
    /// The events of a trace that are chosen. A pattern that picks none is an error.
    pub fn events(&self, metadata: &Metadata) -> anyhow::Result<HashSet<EventKey>> {
        let classes = metadata.streams.iter();
        let layouts: Vec<&EventLayout> = classes.flat_map(|class| class.events.values()).collect();
        if self.patterns.is_empty() {
            return Ok(layouts.into_iter().map(key).collect());
        }
        let events: Vec<Event> = layouts.iter().map(|layout| event(&layout.name)).collect();
        if let Some(complaint) = events::unmatched(&events, &self.patterns) {
            bail!("the trace's description: {complaint}");
        }
        let names: HashSet<&str> = events::picked(&events, &self.patterns)
            .into_iter()
            .map(|event| event.name.as_str())
            .collect();
        let pairs = layouts.into_iter().zip(&events);
        let picked = pairs.filter(|(_, event)| names.contains(event.name.as_str()));
        Ok(picked.map(|(layout, _)| key(layout)).collect())
    }
}

/// What patterns are compared with. A trace does not say to which subsystem an event belongs: it is
/// taken for what stands before the first `_`.
fn event(name: &str) -> Event {
    let subsystem = match ftrace::syscall(name) {
        Some(_) => "syscalls",
        None => name.split('_').next().unwrap_or(name),
    };
    let alias = ftrace::name(name);
    let aliases = (alias != name).then(|| format!("{subsystem}:{alias}"));
    Event {
        name: format!("{subsystem}:{name}"),
        aliases: aliases.into_iter().collect(),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let s = 1_000_000_000;
        for (word, time) in [
            ("0", Time::Clock(0)),
            ("1234.56789", Time::Clock(1_234_567_890_000)),
            ("1.000000001", Time::Clock(s + 1)),
            ("+1.5", Time::SinceBegin(s + s / 2)),
        ] {
            assert_eq!(word.parse(), Ok(time), "{word}");
        }
        for word in [
            "",
            "-1",
            "1.",
            "+",
            "1e3",
            "1.0000000001",
            "99999999999999",
            "1.+5",
        ] {
            assert!(word.parse::<Time>().is_err(), "{word}");
        }
        assert_eq!(Time::SinceBegin(5).clock(7), 12);
        assert_eq!(Time::Clock(5).clock(7), 5);
    }

    #[test]
    fn events_have_the_names_that_patterns_have() {
        let names = |name| {
            let Event { name, aliases, .. } = event(name);
            [vec![name], aliases].concat().join(" ")
        };
        assert_eq!(names("sched_switch"), "sched:sched_switch");
        assert_eq!(
            names("irq_softirq_entry"),
            "irq:irq_softirq_entry irq:softirq_entry"
        );
        assert_eq!(
            names("syscall_exit_read"),
            "syscalls:syscall_exit_read syscalls:sys_exit_read"
        );
        assert_eq!(names("kfree"), "kfree:kfree");
    }
}
