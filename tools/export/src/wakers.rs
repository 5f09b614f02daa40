// SPDX-License-Identifier: GPL-2.0

//! The stacks of the threads that woke a thread, through chains of wakers: for `rtrace export folded --off-wake`.

use super::format::Now;
use analysis::handlers::{Handlers, Waker};
use analysis::schedule::{Schedule, Span};
use analysis::schedule_events::TaskFields;
use analysis::tasks::Life;
use analysis::{key, Catalogue, EventKey};
use ctf::Event;
use std::collections::HashMap;

/// Number of wakers of a chain. Further ones are left out.
const CHAIN: usize = 8;
/// Separates a sleeper from its waker, and that waker from its own, as in offwaketime of BCC.
const WAKER: &str = ";--";
/// A waker that no event names.
const UNKNOWN: &str = ";--;[unknown]";

/// A thread, by its id and the life of the id.
type Thread = (i64, Life);

/// The wakers of threads.
pub struct Wakers {
    handlers: Handlers,
    /// Events that are read, and the number of each for the handlers.
    numbers: HashMap<EventKey, usize>,
    waking: HashMap<EventKey, Wakes>,
    /// Wakers of threads that are woken before they have gone to sleep.
    early: HashMap<i64, String>,
    /// Sleeps that have just ended, and whose wakers are not known yet.
    slept: HashMap<Thread, Span>,
    /// Wakers of each thread at the end of its last sleep: their stacks, and the time.
    chains: HashMap<Thread, (String, u64)>,
}

/// An event of a wake-up.
#[derive(Clone, Copy)]
struct Wakes {
    fields: TaskFields,
    /// Whether the event happens to the waker; otherwise it may happen to the CPU of the woken thread.
    is_waker: bool,
}

impl Wakers {
    /// Creates the wakers for a trace with these events; none if no event names a waker.
    pub fn new(catalogue: &Catalogue<'_>) -> Option<Self> {
        let handlers = Handlers::new(catalogue);
        let wakes = |name, is_waker| {
            let layout = catalogue.event(name)?;
            let fields = TaskFields::of(layout)?;
            Some((key(layout), Wakes { fields, is_waker }))
        };
        let waking = wakes("sched_waking", true)?;
        let woken = ["sched_wakeup", "sched_wakeup_new"].map(|name| wakes(name, false));
        Some(Self {
            numbers: handlers.events().zip(0..).collect(),
            handlers,
            waking: woken.into_iter().flatten().chain([waking]).collect(),
            early: HashMap::new(),
            slept: HashMap::new(),
            chains: HashMap::new(),
        })
    }

    /// Notes a sleep that has ended. The event that names the waker follows.
    pub fn slept(&mut self, span: &Span) {
        self.slept.insert((span.tid, span.life), *span);
    }

    /// Processes an event. Returns the sleep that it ends, with the stacks of the wakers. `stack` returns the stack of
    /// the event, the innermost function first: without the program's functions, if an interrupt happened to it.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        now: &Now<'_>,
        stack: impl FnOnce(Option<&str>) -> String,
    ) -> Option<(Span, String)> {
        let has_interrupts = now.schedule.has_interrupts(now.moment.cpu);
        match (now.switch, has_interrupts) {
            (_, false) => self.handlers.forget(now.moment.cpu),
            (Some(_), true) => self.handlers.switch(&now.moment),
            (None, true) => {}
        }
        let key = key(event.layout);
        if let Some(number) = self.numbers.get(&key).filter(|_| has_interrupts) {
            self.handlers.event(*number, event, &now.moment);
        }
        let Wakes { fields, is_waker } = *self.waking.get(&key)?;
        let tid = fields.read(event)?.tid;
        let thread = (tid, now.schedule.life(tid));
        let is_slept = |span: &Span| span.to == event.timestamp;
        let slept = self.slept.get(&thread).copied().filter(is_slept);
        let text = match is_waker {
            true => self.chain(slept.as_ref(), now, stack),
            false => self.early.remove(&tid).unwrap_or(UNKNOWN.to_owned()),
        };
        let Some(slept) = slept else {
            if is_waker && now.schedule.runs(tid) {
                self.early.insert(tid, text);
            }
            return None;
        };
        self.slept.remove(&thread);
        self.chains.insert(thread, (text.clone(), slept.to));
        Some((slept, text))
    }

    /// Returns the stack of the waker of a sleep, and those of its own wakers meanwhile.
    fn chain(
        &self,
        slept: Option<&Span>,
        now: &Now<'_>,
        stack: impl FnOnce(Option<&str>) -> String,
    ) -> String {
        let waker = self.handlers.waker(&now.moment);
        let handler = match &waker {
            Waker::Handler(name) => Some(&**name),
            _ => None,
        };
        let mut text = WAKER.to_owned() + &stack(handler);
        let Waker::Thread(tid) = waker else {
            return text;
        };
        // A waker that slept until this sleep has a waker of its own.
        let own = self.chains.get(&(tid, now.schedule.life(tid)));
        let own = own.filter(|(_, end)| slept.is_some_and(|slept| *end > slept.from));
        if let Some((chain, _)) = own {
            let mut ends = chain.match_indices(WAKER).skip(CHAIN - 1);
            let end = ends.next().map_or(chain.len(), |(end, _)| end);
            text += &chain[..end];
        }
        text
    }

    /// Returns a sleep of a thread whose waker no event has named, if there is one.
    pub fn without_waker(&mut self, thread: Thread) -> Option<(Span, String)> {
        let span = self.slept.remove(&thread)?;
        self.chains.remove(&thread);
        Some((span, UNKNOWN.to_owned()))
    }

    /// Handles a loss. Returns the sleeps whose wakers are not known.
    pub fn lost(&mut self, schedule: &Schedule) -> Vec<(Span, String)> {
        self.handlers.lost(schedule);
        self.chains.clear();
        self.early.clear();
        self.rest()
    }

    /// Returns the sleeps whose wakers are not known.
    pub fn rest(&mut self) -> Vec<(Span, String)> {
        let slept = std::mem::take(&mut self.slept).into_values();
        slept.map(|span| (span, UNKNOWN.to_owned())).collect()
    }
}
