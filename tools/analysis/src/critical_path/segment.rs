// SPDX-License-Identifier: GPL-2.0

//! A stretch of the path: what one thread did for a while.

use std::rc::Rc;

/// What a thread did for a while that another waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The thread.
    pub tid: i64,
    /// From this time, in clock ticks.
    pub from: u64,
    /// To that.
    pub to: u64,
    /// What it did.
    pub what: What,
    /// The thread that waited for it; none if it is the one whose path this is.
    pub wakes: Option<i64>,
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It ran.
    Ran,
    /// It could run and waited for a CPU: its number, and who ran there, if that is known.
    WaitedFor(Option<(u32, Option<i64>)>),
    /// It waited for something else, until it was woken by what is called so.
    WokenBy(Rc<str>),
    /// Nobody knows.
    Unknown,
}

/// The segments of a path, one behind the other without a gap.
#[derive(Debug, Default)]
pub struct Path {
    segments: Vec<Segment>,
}

impl Path {
    /// Where it ends, if there is any.
    pub fn end(&self) -> Option<u64> {
        self.segments.last().map(|segment| segment.to)
    }

    /// Adds a segment: what is between it and the one before is unknown, and so is `tid`'s.
    pub fn push(&mut self, mut segment: Segment, tid: i64) {
        let end = self.end().unwrap_or(segment.from);
        if segment.from > end {
            self.join(Segment {
                tid,
                from: end,
                to: segment.from,
                what: What::Unknown,
                wakes: None,
            });
        }
        segment.from = segment.from.max(end);
        if segment.from < segment.to {
            self.join(segment);
        }
    }

    /// Adds it to the last one, if it is the same that goes on.
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

    /// Takes away what is behind `end`.
    pub fn cut(&mut self, end: u64) {
        while self.segments.last().is_some_and(|last| last.from >= end) {
            self.segments.pop();
        }
        if let Some(last) = self.segments.last_mut() {
            last.to = last.to.min(end);
        }
    }

    /// All of them, in order of time.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}
