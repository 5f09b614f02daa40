// SPDX-License-Identifier: GPL-2.0

//! The threads of the timeline.

use super::recent::Recent;
use analysis::schedule::Schedule;
use analysis::tasks::Life;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The page has at most so many threads by name: those that ran longest. There may be hundreds of
/// thousands where a trace of hours has short-lived processes.
const NAMED: usize = 20_000;

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Its number.
    pub tid: i64,
    /// Its process, if that is known.
    pub pid: Option<i64>,
    /// Its last name.
    pub comm: String,
    /// Clock ticks for which it ran.
    #[serde(skip)]
    pub ran: u64,
    /// When something of it was first seen, in clock ticks.
    #[serde(skip)]
    pub since: u64,
}

/// All threads that were seen.
#[derive(Debug, Default)]
pub struct Threads {
    threads: Vec<Thread>,
    /// By thread id, and which of the threads that had it.
    places: HashMap<(i64, Life), u32>,
    recent: Recent<(i64, Life)>,
}

impl Threads {
    /// The place of a thread, which is not the idle task.
    fn place(&mut self, thread: (i64, Life), since: u64) -> u32 {
        let (places, threads) = (&mut self.places, &mut self.threads);
        let place = self.recent.place(thread.0 as usize, thread, || {
            *places.entry(thread).or_insert_with(|| {
                threads.push(Thread {
                    tid: thread.0,
                    pid: None,
                    comm: String::new(),
                    ran: 0,
                    since,
                });
                threads.len() as u32 - 1
            })
        });
        let known = &mut self.threads[place as usize].since;
        *known = since.min(*known);
        place
    }

    /// All of them, by place.
    pub fn all(&self) -> &[Thread] {
        &self.threads
    }

    /// The place of a thread, which gets this name if it has none yet.
    pub fn named(&mut self, thread: (i64, Life), comm: Option<&[u8]>, time: u64) -> u32 {
        let place = self.place(thread, time);
        let known = &mut self.threads[place as usize].comm;
        if let Some(comm) = comm.filter(|_| known.is_empty()) {
            *known = String::from_utf8_lossy(comm).into_owned();
        }
        place
    }

    /// The place of a thread, and its name and process as the schedule has them now.
    pub fn seen(&mut self, (tid, life): (i64, Life), since: u64, schedule: &Schedule) -> u32 {
        let place = self.place((tid, life), since);
        let thread = &mut self.threads[place as usize];
        if let Some(comm) = schedule.comm(tid) {
            if thread.comm.as_bytes() != comm {
                thread.comm = String::from_utf8_lossy(comm).into_owned();
            }
        }
        thread.pid = schedule.process(tid).or(thread.pid);
        place
    }

    /// A thread ran for so many clock ticks.
    pub fn ran(&mut self, place: u32, ticks: u64) {
        let thread = &mut self.threads[place as usize];
        thread.ran = thread.ran.saturating_add(ticks);
    }

    /// The threads in the page's order: those that ran longest first.
    pub fn sorted(&self) -> Sorted<'_> {
        let mut order: Vec<_> = (0..self.threads.len()).collect();
        order.sort_by_key(|place| {
            let thread = &self.threads[*place];
            (Reverse(thread.ran), thread.tid)
        });
        order.truncate(NAMED);
        let mut numbers = vec![None; self.threads.len()];
        for (number, place) in (0..).zip(&order) {
            numbers[*place] = Some(number);
        }
        Sorted {
            threads: order.iter().map(|place| &self.threads[*place]).collect(),
            numbers,
            nameless: self.threads.len() - order.len(),
        }
    }
}

/// The threads of the page.
#[derive(Debug)]
pub struct Sorted<'a> {
    /// In their order.
    pub threads: Vec<&'a Thread>,
    /// By its place among all threads: a thread's number in that order.
    numbers: Vec<Option<u32>>,
    /// How many are not among them.
    pub nameless: usize,
}

impl Sorted<'_> {
    /// A thread's number on the page; none if it is not there.
    pub fn number(&self, place: u32) -> Option<u32> {
        self.numbers[place as usize]
    }

    /// All numbers, by place.
    pub fn numbers(&self) -> &[Option<u32>] {
        &self.numbers
    }
}
