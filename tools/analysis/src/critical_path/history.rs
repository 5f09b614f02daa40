// SPDX-License-Identifier: GPL-2.0

//! Activity of all threads while the analysed thread is off its CPU.
//!
//! Only this activity can be on the path of a waiting thread. The history therefore begins when the thread
//! leaves its CPU, and is empty while the thread runs. It keeps at most [`KEPT`] changes, in less than 100
//! megabytes. If there are more, it forgets the older half, whose time is then unknown.

use super::handlers::Waker;
use super::segment::{Link, Segment, What};
use crate::schedule::{Schedule, Span};
use crate::schedule_events::Activity;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of changes that are kept. The end of an activity counts once for the thread and, if the
/// thread ran, once for the CPU.
const KEPT: usize = 1 << 20;

/// Activity of all threads since a moment. No event was missing at that moment, and none is missing since
/// then.
#[derive(Debug, Default)]
pub struct History {
    /// That moment, or the end of the forgotten part; `None` if the history keeps nothing.
    since: Option<u64>,
    threads: HashMap<i64, Past>,
    /// Runs by CPU index, the earliest first.
    cpus: HashMap<usize, Vec<Run>>,
    /// Number of kept changes.
    kept: usize,
    /// Number of times that older changes were forgotten.
    forgotten: u64,
}

/// Past of a thread.
#[derive(Debug, Default)]
struct Past {
    comm: Vec<u8>,
    /// Time of the thread's creation, and its creator.
    born: Option<(u64, i64)>,
    /// Activities, the earliest first.
    records: Vec<Record>,
    /// System calls that have returned, the earliest first.
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Record {
    from: u64,
    to: u64,
    did: Did,
    /// Number of the place in which the thread slept, if the caller of [`History::add`] knows one.
    place: Option<u32>,
}

/// A system call that has returned.
#[derive(Clone, Copy, Debug)]
struct Call {
    from: u64,
    to: u64,
    /// Number of its name.
    name: u32,
}

#[derive(Clone, Debug)]
enum Did {
    Ran,
    /// The thread waited for the CPU at this index, if it is known.
    WaitedFor(Option<usize>),
    Slept(Waker),
}

/// Time in which a thread ran on a CPU.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u64,
    to: u64,
    tid: i64,
}

/// A stretch of the path that remains to be followed. The thread `tid` wakes the thread `wakes` at its end.
struct Part {
    tid: i64,
    from: u64,
    to: u64,
    wakes: Option<i64>,
    /// The sleepers between this thread and the one whose path is followed.
    chain: Option<Arc<Link>>,
}

impl History {
    /// Forgets all, and begins again at this time.
    pub fn restart(&mut self, now: u64) {
        self.stop();
        self.since = Some(now);
    }

    /// Forgets all, and keeps nothing until the next restart.
    pub fn stop(&mut self) {
        *self = Self {
            forgotten: self.forgotten,
            ..Self::default()
        };
    }

    /// Returns whether the history keeps changes.
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the number of times that older changes were forgotten because there were too many.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns the number of changes that are kept.
    pub fn size(&self) -> usize {
        self.kept
    }

    /// Adds an activity of a thread. If the thread slept, `place` is the number of the place, if the caller knows one.
    pub fn add(&mut self, span: &Span, place: Option<u32>, schedule: &Schedule) {
        let Some(since) = self.since.filter(|since| span.to > *since) else {
            return;
        };
        let Span { tid, from, to, .. } = *span;
        if let (Activity::Running, Some(cpu)) = (span.state, span.cpu) {
            let runs = self.cpus.entry(cpu).or_default();
            runs.push(Run { from, to, tid });
            self.kept += 1;
        }
        // The idle task is on no thread's path.
        if tid != 0 {
            let past = self.threads.entry(tid).or_default();
            if let Some(comm) = schedule.comm(tid).filter(|comm| past.comm != *comm) {
                past.comm = comm.to_vec();
            }
            let did = match span.state {
                Activity::Running => Did::Ran,
                Activity::Runnable { .. } => Did::WaitedFor(span.cpu),
                Activity::Blocked(_) => Did::Slept(Waker::Unknown),
            };
            past.records.push(Record {
                from,
                to,
                did,
                place,
            });
            self.kept += 1;
        }
        if self.kept > KEPT {
            self.forget(since, to);
        }
    }

    /// Forgets at least the older half of the changes.
    fn forget(&mut self, since: u64, now: u64) {
        let mut since = since;
        self.forgotten += 1;
        while self.kept > KEPT / 2 && since < now {
            since += (now - since).div_ceil(2);
            self.forget_before(since);
        }
    }

    /// Forgets the changes before a moment.
    pub fn forget_before(&mut self, since: u64) {
        for past in self.threads.values_mut() {
            past.records.retain(|record| record.to > since);
            past.calls.retain(|call| call.to > since);
            past.born = past.born.filter(|(time, _)| *time > since);
        }
        for runs in self.cpus.values_mut() {
            runs.retain(|run| run.to > since);
        }
        let pasts = self.threads.values();
        let records = pasts.map(|past| past.records.len() + past.calls.len());
        let runs = self.cpus.values().map(Vec::len);
        self.kept = records.chain(runs).sum();
        self.threads.retain(|_, past| {
            !past.records.is_empty() || !past.calls.is_empty() || past.born.is_some()
        });
        self.since = self.since.map(|begin| begin.max(since));
    }

    /// Adds a system call of a thread that has returned.
    pub fn called(&mut self, tid: i64, from: u64, to: u64, name: u32) {
        if self.since.is_some_and(|since| to > since) {
            let past = self.threads.entry(tid).or_default();
            past.calls.push(Call { from, to, name });
            self.kept += 1;
        }
    }

    /// Passes each part of a time that the thread spent in a system call to `each`, with the number of the call's name.
    pub fn calls(&self, tid: i64, from: u64, to: u64, mut each: impl FnMut(u64, u64, u32)) {
        let calls = self.threads.get(&tid).map_or(&[][..], |past| &past.calls);
        let behind = calls.partition_point(|call| call.from < to);
        for call in calls[..behind].iter().rev() {
            if call.to <= from {
                break;
            }
            each(call.from.max(from), call.to.min(to), call.name);
        }
    }

    /// Records the waker of a thread that slept until now.
    pub fn woken(&mut self, tid: i64, now: u64, waker: &Waker) {
        let past = self.threads.get_mut(&tid);
        let last = past.and_then(|past| past.records.last_mut());
        if let Some(record) = last.filter(|record| record.to == now) {
            if let Did::Slept(known @ Waker::Unknown) = &mut record.did {
                known.clone_from(waker);
            }
        }
    }

    /// Records the creation of a thread by `parent`.
    pub fn born(&mut self, tid: i64, now: u64, parent: i64) {
        if self.is_on() {
            let past = Past {
                born: Some((now, parent)),
                ..Past::default()
            };
            self.threads.insert(tid, past);
        }
    }

    /// Returns the last name of a thread.
    pub fn comm(&self, tid: i64) -> Option<&[u8]> {
        let comm = self.threads.get(&tid)?.comm.as_slice();
        (!comm.is_empty()).then_some(comm)
    }

    /// Returns the path from `from` to `to` in order of time. It ends in `waker`, which woke `wakes` at
    /// `to`.
    pub fn path(
        &self,
        waker: i64,
        wakes: i64,
        from: u64,
        to: u64,
        schedule: &Schedule,
    ) -> Vec<Segment> {
        let part = |tid, from, to, wakes, chain| Part {
            tid,
            from,
            to,
            wakes,
            chain,
        };
        let mut out = Vec::new();
        // Hops from one thread to the next that take no time. More hops than threads mean a circle.
        let mut hops = 0;
        let mut todo = vec![part(waker, from, to, Some(wakes), None)];
        while let Some(Part {
            tid,
            from,
            to,
            wakes,
            chain,
        }) = todo.pop()
        {
            if from >= to {
                continue;
            }
            let past = self.threads.get(&tid);
            let record = past.and_then(|past| past.before(to));
            let place = record.and_then(|record| record.place);
            let segment = |from, what| Segment {
                tid,
                from,
                to,
                what,
                wakes,
                place,
                chain: chain.clone(),
            };
            // The thread `tid` is a sleeper on the way to its waker.
            let through = |since| {
                Some(Arc::new(Link {
                    tid,
                    since,
                    place,
                    up: chain.clone(),
                }))
            };
            let open = schedule.state(tid).filter(|(_, since)| *since < to);
            let (begin, what) = match (open, record) {
                (Some((Activity::Running, since)), _) => (since, What::Ran),
                (Some((Activity::Runnable { .. }, since)), _) => (since, What::WaitedFor(None)),
                (Some((Activity::Blocked(_), since)), _) => (since, What::Unknown),
                (None, Some(record)) if record.to < to => (record.to, What::Unknown),
                (None, Some(record)) => match &record.did {
                    Did::Ran => (record.from, What::Ran),
                    Did::WaitedFor(cpu) => {
                        let begin = record.from.max(from);
                        self.waited(*cpu, begin, to, schedule, |from, to, what| {
                            out.push(Segment {
                                to,
                                ..segment(from, what)
                            });
                        });
                        hops = 0;
                        todo.push(part(tid, from, begin, wakes, chain));
                        continue;
                    }
                    Did::Slept(Waker::Handler(name)) => (record.from, What::WokenBy(name.clone())),
                    Did::Slept(Waker::Thread(other)) if hops <= self.threads.len() => {
                        let begin = record.from.max(from);
                        hops += 1;
                        let link = through(record.from);
                        todo.push(part(tid, from, begin, wakes, chain));
                        todo.push(part(*other, begin, to, Some(tid), link));
                        continue;
                    }
                    Did::Slept(_) => (record.from, What::Unknown),
                },
                // Before the thread existed, its creator was on the path.
                (None, None) => match past.and_then(|past| past.born) {
                    Some((_, parent)) if hops <= self.threads.len() => {
                        hops += 1;
                        todo.push(part(parent, from, to, Some(tid), through(from)));
                        continue;
                    }
                    _ => (from, What::Unknown),
                },
            };
            let begin = begin.max(from);
            out.push(segment(begin, what));
            hops = 0;
            todo.push(part(tid, from, begin, wakes, chain));
        }
        out.reverse();
        out
    }

    /// Passes each thread that ran on the CPU that a thread waited for to `each`, the last one first.
    pub fn waited(
        &self,
        cpu: Option<usize>,
        from: u64,
        to: u64,
        schedule: &Schedule,
        mut each: impl FnMut(u64, u64, What),
    ) {
        let number = cpu.map(|cpu| schedule.number(cpu));
        let what = |runner| What::WaitedFor(number.map(|number| (number, runner)));
        let runs = cpu.and_then(|cpu| self.cpus.get(&cpu));
        let runs = runs.map_or(&[][..], Vec::as_slice);
        let behind = runs.partition_point(|run| run.from < to);
        let mut end = to;
        for run in runs[..behind].iter().rev() {
            if run.to <= from {
                break;
            }
            let (begin, until) = (run.from.max(from), run.to.min(end));
            if until < end {
                each(until, end, what(None));
            }
            if begin < until {
                each(begin, until, what(Some(run.tid)));
            }
            end = begin;
        }
        if from < end {
            each(from, end, what(None));
        }
    }
}

impl Past {
    /// Returns the last activity that began before a moment.
    fn before(&self, time: u64) -> Option<&Record> {
        let behind = self.records.partition_point(|record| record.from < time);
        self.records[..behind].last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial::InitialThreads;
    use crate::schedule_events::Left;
    use crate::Catalogue;
    use ctf::Metadata;
    use rtrace_abi::header::Layout;

    /// Two threads wake each other, more often than the history keeps.
    #[test]
    fn a_long_sleep_is_unknown_in_its_older_part() {
        let metadata = synthetic::metadata(synthetic::UUID, Layout::Compact);
        let metadata = Metadata::parse(&metadata).unwrap();
        let schedule = Schedule::new(&Catalogue::new(&metadata), InitialThreads::default());
        let mut history = History::default();
        let end = KEPT as u64;
        history.restart(0);
        for now in 1..=end {
            let (ran, slept) = ((now % 2) as i64 + 8, (now + 1) as i64 % 2 + 8);
            let span = |tid, state| Span {
                life: 0,
                tid,
                cpu: Some(0),
                state,
                from: now - 1,
                to: now,
                is_complete: true,
            };
            history.add(&span(ran, Activity::Running), None, &schedule);
            history.add(
                &span(slept, Activity::Blocked(Left::default())),
                None,
                &schedule,
            );
            history.woken(slept, now, &Waker::Thread(ran));
            assert!(history.kept <= KEPT);
        }
        assert!(history.forgotten() > 1);
        let path = history.path(8, 7, 0, end, &schedule);
        let mut at = 0;
        for segment in &path {
            assert_eq!(segment.from, at);
            at = segment.to;
        }
        assert_eq!(at, end);
        assert_eq!(path[0].what, What::Unknown);
        let known = path[1..].iter().all(|segment| segment.what == What::Ran);
        assert!(known && path[0].to < end - end / 16, "{:?}", path[0]);
    }

    /// Threads that wake each other at one moment do not lead back in time.
    #[test]
    fn a_circle_is_left() {
        let metadata = synthetic::metadata(synthetic::UUID, Layout::Compact);
        let metadata = Metadata::parse(&metadata).unwrap();
        let schedule = Schedule::new(&Catalogue::new(&metadata), InitialThreads::default());
        let mut history = History::default();
        history.restart(0);
        for (tid, other) in [(8, 9), (9, 8)] {
            let span = Span {
                life: 0,
                tid,
                cpu: None,
                state: Activity::Blocked(Left::default()),
                from: 0,
                to: 10,
                is_complete: true,
            };
            history.add(&span, None, &schedule);
            history.woken(tid, 10, &Waker::Thread(other));
        }
        let path = history.path(8, 7, 0, 10, &schedule);
        assert_eq!(path.len(), 1);
        assert_eq!((path[0].from, path[0].to), (0, 10));
        assert_eq!(path[0].what, What::Unknown);
    }
}
