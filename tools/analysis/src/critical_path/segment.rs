// SPDX-License-Identifier: GPL-2.0

//! A stretch of the path: one activity of one thread.

use std::sync::Arc;

/// An activity of a thread that another thread waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The thread.
    pub tid: i64,
    /// Begin, in clock ticks.
    pub from: u64,
    /// End, in clock ticks.
    pub to: u64,
    /// The activity.
    pub what: What,
    /// The thread that waited for this thread; `None` if this thread is the one of `--critical-path`.
    pub wakes: Option<i64>,
    /// If the thread was blocked: the number of the place in which it slept, if it is known.
    pub place: Option<u32>,
    /// The sleepers between this thread and the one whose path it is on, from this thread on.
    pub chain: Option<Arc<Link>>,
}

/// A thread on a path that slept until the next thread of the path woke it.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// The thread.
    pub tid: i64,
    /// Begin of its sleep, in clock ticks.
    pub since: u64,
    /// Number of the place in which it slept, if it is known.
    pub place: Option<u32>,
    /// The thread that waited for this one; `None` if that is the thread whose path it is.
    pub up: Option<Arc<Link>>,
}

/// Activity of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The thread ran.
    Ran,
    /// The thread was runnable and waited for a CPU: the CPU's number and the thread that ran there, if
    /// they are known.
    WaitedFor(Option<(u32, Option<i64>)>),
    /// The thread was blocked until the handler with this name woke it.
    WokenBy(Arc<str>),
    /// The activity is not known.
    Unknown,
}

/// The segments of a path. Each begins at the end of the previous one.
#[derive(Debug, Default)]
pub struct Path {
    segments: Vec<Segment>,
}

impl Path {
    /// Returns the end of the path, if it has segments.
    pub fn end(&self) -> Option<u64> {
        self.segments.last().map(|segment| segment.to)
    }

    /// Adds a segment. A gap before it becomes an unknown segment of the thread `tid`.
    pub fn push(&mut self, mut segment: Segment, tid: i64) {
        let end = self.end().unwrap_or(segment.from);
        if segment.from > end {
            self.join(Segment {
                tid,
                from: end,
                to: segment.from,
                what: What::Unknown,
                wakes: None,
                place: None,
                chain: None,
            });
        }
        segment.from = segment.from.max(end);
        if segment.from < segment.to {
            self.join(segment);
        }
    }

    /// Extends the last segment if the new segment continues it; otherwise adds the new segment.
    fn join(&mut self, segment: Segment) {
        let same = |last: &Segment| {
            let key = |of: &Segment| (of.tid, of.wakes);
            key(last) == key(&segment) && last.what == segment.what
        };
        match self.segments.last_mut().filter(|last| same(last)) {
            Some(last) => last.to = segment.to,
            None => self.segments.push(segment),
        }
    }

    /// Removes the part of the path after `end`.
    pub fn cut(&mut self, end: u64) {
        while self.segments.last().is_some_and(|last| last.from >= end) {
            self.segments.pop();
        }
        if let Some(last) = self.segments.last_mut() {
            last.to = last.to.min(end);
        }
    }

    /// Returns all segments in order of time.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}
