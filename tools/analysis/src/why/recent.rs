// SPDX-License-Identifier: GPL-2.0

//! The newest interrupts and disk requests of a trace.

use super::numbers::Numbers;
use crate::critical_path::handlers::Waker;
use crate::interrupts::Interrupt;
use crate::io::requests::Done;
use ahash::HashMap;
use std::collections::{BTreeMap, VecDeque};

/// Number of interrupts of a CPU, and of requests, that are kept.
const KEPT: usize = 1 << 16;

/// The newest interrupts and requests.
#[derive(Debug, Default)]
pub struct Recent {
    /// The newest interrupts by CPU index.
    handled: HashMap<usize, VecDeque<Handled>>,
    /// The newest requests that have ended.
    done: VecDeque<Done>,
    /// The request that a CPU has just completed, by CPU index.
    completed: HashMap<usize, Done>,
    /// Number of hard interrupts of all CPUs by handler.
    hard: BTreeMap<u32, u64>,
    /// By handler: number of completed requests by the names of their threads.
    completes: HashMap<u32, BTreeMap<u32, u64>>,
}

/// An interrupt that a CPU handled.
#[derive(Clone, Copy, Debug)]
struct Handled {
    from: u64,
    to: u64,
    own: u64,
    name: u32,
}

/// Returns the name of a request.
pub fn request(done: &Done) -> String {
    let (device, operation) = done.names();
    format!("disk {device} ({operation})")
}

impl Recent {
    /// Adds an interrupt of the handler with this number.
    pub fn interrupt(&mut self, interrupt: &Interrupt<'_>, name: u32) {
        if interrupt.source.is_hard {
            *self.hard.entry(name).or_default() += 1;
        }
        let from = interrupt.from;
        let handled = self.handled.entry(interrupt.cpu).or_default();
        if handled.len() == KEPT {
            handled.pop_front();
        }
        handled.push_back(Handled {
            from,
            to: from.saturating_add(interrupt.ticks),
            own: interrupt.own_ticks,
            name,
        });
    }

    /// Returns the interrupts that a CPU handled in a time, each with its own ticks there.
    pub fn interrupts(&self, cpu: Option<usize>, from: u64, to: u64) -> Vec<(u32, u64)> {
        let handled = cpu.and_then(|cpu| self.handled.get(&cpu));
        let newest = handled.into_iter().flat_map(|handled| handled.iter().rev());
        // In the order of their ends. An interrupt in which others are nested ends after them.
        let within = newest.take_while(|handled| handled.to > from);
        let parts = within.filter(|handled| handled.from < to).map(|handled| {
            let overlap = handled.to.min(to).saturating_sub(handled.from.max(from));
            (handled.name, handled.own.min(overlap))
        });
        parts.collect()
    }

    /// Notes a request that a CPU has completed, in this handler.
    pub fn complete(
        &mut self,
        done: Done,
        handler: &Waker,
        cpu: usize,
        names: &mut Numbers<String>,
    ) {
        if let Waker::Handler(handler) = handler {
            let handler = names.of(handler.to_string());
            let name = names.of(done.comm.clone());
            let counts = self.completes.entry(handler).or_default();
            *counts.entry(name).or_default() += 1;
        }
        if self.done.len() == KEPT {
            self.done.pop_front();
        }
        self.done.push_back(done.clone());
        self.completed.insert(cpu, done);
    }

    /// Returns the request that a CPU has just completed.
    pub fn completed(&self, cpu: usize) -> Option<&Done> {
        self.completed.get(&cpu)
    }

    /// Notes that a CPU does something else than to complete a request.
    pub fn leave(&mut self, cpu: usize) {
        self.completed.remove(&cpu);
    }

    /// Counts the requests of other threads that the device completed while a request was in its queue, by the names of
    /// the threads.
    pub fn ahead(&self, request: &Done, names: &mut Numbers<String>) -> BTreeMap<u32, u64> {
        let mut ahead = BTreeMap::new();
        let Some(inserted) = request.inserted else {
            return ahead;
        };
        for done in self.done.iter().rev() {
            if done.ended < inserted {
                break;
            }
            let is_ahead = done.ended <= request.ended && done.queue.0 == request.queue.0;
            if is_ahead && done.tid != request.tid {
                *ahead.entry(names.of(done.comm.clone())).or_default() += 1;
            }
        }
        ahead
    }

    /// Returns the numbers of the requests that a handler completed, by the names of their threads.
    pub fn completes(&self, handler: u32) -> Option<&BTreeMap<u32, u64>> {
        self.completes.get(&handler)
    }

    /// Returns the hard interrupt that completed most requests; if none did, the most frequent one. The second number is
    /// that of its occurrences.
    pub fn most(&self) -> Option<(u32, u64)> {
        let most = self.hard.iter().max_by_key(|(handler, times)| {
            let completed = self.completes(**handler);
            (completed.map(|of| of.values().sum::<u64>()), **times)
        });
        most.map(|(handler, times)| (*handler, *times))
    }

    /// Handles a loss: interrupts and requests may be missing from now on.
    pub fn lost(&mut self) {
        self.done.clear();
        self.completed.clear();
        self.handled.clear();
    }
}
