// SPDX-License-Identifier: GPL-2.0

//! The parts of a wait: the segments of the path to its waker, as causes.

use super::tree::{By, Cause, Instance, Node, Reason, Runner};
use super::{places, Why};
use crate::critical_path::segment::{Link, Segment, What};
use crate::schedule::Schedule;
use std::sync::Arc;

/// Number of sleepers between a thread and the causes that are shown below each other.
const LEVELS: usize = 3;

/// A part of the time of a wait: the sleepers on the way to it, and its cause.
pub struct Part {
    way: Vec<(Cause, Instance)>,
    cause: Cause,
    tid: i64,
    from: u64,
    to: u64,
}

impl Part {
    /// Adds the part, as far as it is before `end`, below the cause of the wait.
    pub fn add(self, node: &mut Node, end: u64) {
        if self.from >= end {
            return;
        }
        let ticks = self.to.min(end).saturating_sub(self.from);
        let mut node = node;
        for (cause, instance) in self.way {
            node = node.below.add(cause, instance, self.from, ticks);
            node.thread(instance.0);
        }
        let leaf = node
            .below
            .add(self.cause, (self.tid, self.from), self.from, ticks);
        leaf.thread(self.tid);
    }
}

impl Why {
    /// Converts the segments of a path to parts of the tree.
    pub(super) fn parts(&mut self, path: &[Segment], tid: i64, schedule: &Schedule) -> Vec<Part> {
        let mut parts = Vec::new();
        for segment in path {
            let way = self.way(segment.chain.as_ref(), segment.tid, schedule);
            let mut add = |cause, from, to| {
                parts.push(Part {
                    way: way.clone(),
                    cause,
                    tid: segment.tid,
                    from,
                    to,
                });
            };
            let (from, to) = (segment.from, segment.to);
            let who = self.name(segment.tid, schedule);
            match &segment.what {
                What::Ran => {
                    let mut end = to;
                    self.history
                        .calls(segment.tid, from, to, |begin, until, name| {
                            let until = until.min(end);
                            if until < end {
                                add(Cause::Ran { who, call: None }, until, end);
                            }
                            if begin < until {
                                let call = Some(name);
                                add(Cause::Ran { who, call }, begin, until);
                            }
                            end = end.min(begin);
                        });
                    if from < end {
                        add(Cause::Ran { who, call: None }, from, end);
                    }
                }
                What::WaitedFor(cpu) => {
                    let who = Some(who);
                    let runner = cpu.and_then(|(_, runner)| runner);
                    let cause = match runner.filter(|runner| *runner != tid) {
                        Some(0) => Cause::Runnable {
                            who,
                            by: Runner::Idle,
                            woken: true,
                        },
                        Some(runner) => Cause::Runnable {
                            who,
                            by: Runner::Thread(self.name(runner, schedule)),
                            woken: true,
                        },
                        None => Cause::Unknown {
                            who,
                            is_blocked: false,
                            place: None,
                            why: Reason::NoActivity,
                        },
                    };
                    add(cause, from, to);
                }
                What::WokenBy(name) => {
                    let place = segment.place;
                    let known = place.and_then(|place| self.places.get(place));
                    let by = match known.is_some_and(places::Place::is_pause) {
                        true => By::Timer,
                        false => By::Handler(self.names.of(name.to_string())),
                    };
                    let who = Some(who);
                    add(Cause::Blocked { who, place, by }, from, to);
                }
                What::Unknown => {
                    let cause = Cause::Unknown {
                        who: Some(who),
                        is_blocked: true,
                        place: None,
                        why: Reason::NoActivity,
                    };
                    add(cause, from, to);
                }
            }
        }
        parts
    }

    /// Returns the sleepers between the thread that is asked about and the thread `tid`, the first one first.
    fn way(
        &mut self,
        chain: Option<&Arc<Link>>,
        tid: i64,
        schedule: &Schedule,
    ) -> Vec<(Cause, Instance)> {
        let mut way = Vec::new();
        let (mut link, mut waker) = (chain, tid);
        while let Some(at) = link {
            let by = By::Thread(self.name(waker, schedule));
            let who = Some(self.name(at.tid, schedule));
            let place = at.place;
            way.push((Cause::Blocked { who, place, by }, (at.tid, at.since)));
            (link, waker) = (at.up.as_ref(), at.tid);
        }
        way.reverse();
        way.truncate(LEVELS);
        way
    }
}
