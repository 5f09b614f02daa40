// SPDX-License-Identifier: GPL-2.0

//! The threads of the timeline.

use analysis::recent::Recent;
use analysis::schedule::Schedule;
use analysis::tasks::Life;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use system::printing;

/// Maximum number of threads with a name on the page: the threads that ran longest. A trace of hours with
/// short-lived processes may have hundreds of thousands of threads.
const NAMED: usize = 20_000;

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Thread id.
    pub tid: i64,
    /// Process, if it is known.
    pub pid: Option<i64>,
    /// Last name.
    pub comm: String,
    /// Clock ticks for which it ran.
    #[serde(skip)]
    pub ran: u64,
    /// Time of the thread's first activity, in clock ticks.
    #[serde(skip)]
    pub since: u64,
}

/// All threads of the trace.
#[derive(Debug, Default)]
pub struct Threads {
    threads: Vec<Thread>,
    /// Places by thread id and life of this id.
    places: HashMap<(i64, Life), u32>,
    recent: Recent<(i64, Life)>,
}

impl Threads {
    /// Returns the place of a thread, which must not be the idle task.
    fn place(&mut self, thread: (i64, Life), since: u64) -> u32 {
        let (places, threads) = (&mut self.places, &mut self.threads);
        let place = self.recent.place(thread.0 as usize, thread, |thread| {
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

    /// Returns all threads, by place.
    pub fn all(&self) -> &[Thread] {
        &self.threads
    }

    /// Returns the place of a thread. A thread without a name gets this name.
    pub fn named(&mut self, thread: (i64, Life), comm: Option<&[u8]>, time: u64) -> u32 {
        let place = self.place(thread, time);
        let known = &mut self.threads[place as usize].comm;
        if let Some(comm) = comm.filter(|_| known.is_empty()) {
            *known = printing::text(comm).into_owned();
        }
        place
    }

    /// Returns the place of a thread, and updates its name and process from the schedule.
    pub fn seen(&mut self, (tid, life): (i64, Life), since: u64, schedule: &Schedule) -> u32 {
        let place = self.place((tid, life), since);
        let thread = &mut self.threads[place as usize];
        if let Some(comm) = schedule.comm(tid) {
            if thread.comm.as_bytes() != comm {
                thread.comm = printing::text(comm).into_owned();
            }
        }
        thread.pid = schedule.process(tid).or(thread.pid);
        place
    }

    /// Adds clock ticks for which a thread ran.
    pub fn ran(&mut self, place: u32, ticks: u64) {
        let thread = &mut self.threads[place as usize];
        thread.ran = thread.ran.saturating_add(ticks);
    }

    /// Returns the threads in the page's order: the threads that ran longest first.
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
    /// The threads in the order of the page.
    pub threads: Vec<&'a Thread>,
    /// Number of a thread in this order, by its place among all threads.
    numbers: Vec<Option<u32>>,
    /// Number of threads that are left out.
    pub nameless: usize,
}

impl Sorted<'_> {
    /// Returns a thread's number on the page. None for a thread that is left out.
    pub fn number(&self, place: u32) -> Option<u32> {
        self.numbers[place as usize]
    }

    /// Returns all numbers, by place.
    pub fn numbers(&self) -> &[Option<u32>] {
        &self.numbers
    }
}
