// SPDX-License-Identifier: GPL-2.0

//! What a call stack counts for in a flame graph: one for each event, or the time that a thread was blocked.

use super::format::Now;
use analysis::schedule::State;
use std::borrow::Cow;
use std::collections::HashMap;

/// What stacks count for.
#[derive(Debug)]
pub enum Weights {
    /// Events.
    Count,
    /// Microseconds off the CPU: the stack with which a thread was blocked, up to when it runs again.
    OffCpu(Blocked),
}

/// Threads that are blocked: since when in nanoseconds, and the line of their stack.
#[derive(Debug, Default)]
pub struct Blocked(HashMap<i64, (u64, String)>);

impl Weights {
    /// What these are, in words.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Count => "samples",
            Self::OffCpu(_) => "us",
        }
    }

    /// Whether the stack of an event is of use.
    pub fn wants(&self, now: &Now<'_>) -> bool {
        match self {
            Self::Count => true,
            // Of all others it is not known how long they last.
            Self::OffCpu(_) => now.switch.is_some(),
        }
    }

    /// An event with this line, if it has a stack: the line that counts now, and for how much.
    pub fn weigh<'a>(
        &mut self,
        line: Option<&'a str>,
        now: &Now<'_>,
    ) -> Option<(Cow<'a, str>, u64)> {
        let blocked = match self {
            Self::Count => return Some((line?.into(), 1)),
            Self::OffCpu(Blocked(blocked)) => blocked,
        };
        let switch = now.switch?;
        let ended = blocked.remove(&switch.next_tid);
        blocked.remove(&switch.prev_tid);
        let is_blocked = matches!(switch.left.state(), State::Blocked(_)) && !switch.left.is_end();
        // Where events are missing it may run, and block again.
        let is_known = now.schedule.all_whole() && switch.prev_tid != 0;
        if let (true, Some(line)) = (is_blocked && is_known, line) {
            blocked.insert(switch.prev_tid, (now.ns, line.to_owned()));
        }
        let (since, line) = ended?;
        Some((line.into(), now.ns.saturating_sub(since) / 1000))
    }

    /// Events may be missing: who was blocked may have run meanwhile.
    pub fn forget(&mut self) {
        if let Self::OffCpu(Blocked(blocked)) = self {
            blocked.clear();
        }
    }
}
