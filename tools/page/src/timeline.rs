// SPDX-License-Identifier: GPL-2.0

//! Gathers the data of the page's timeline, in the pass that answers the questions.

use super::calls::Calls;
use super::lanes::{Lane, Lanes, BLOCKED, RUNNING, SENT_OFF, WOKEN};
use super::marks::Marks;
use super::moments::Moments;
use super::stacks::Stacks;
use super::threads::Threads;
use analysis::interrupts::{Interrupt, InterruptSource};
use analysis::loss::Loss;
use analysis::recent::Recent;
use analysis::schedule::{Schedule, Span};
use analysis::schedule_events::Activity;
use analysis::schedule_events::Switch;
use analysis::{Analysis, Answer, Catalogue, EventKey, Moment, SendAnalysis};
use ctf::Event;
use serde_json::{json, Value as Json};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// Maximum number of slices on a page, and of single events. A slice or an event takes about 5 bytes of the
/// page.
const LIMIT: usize = 3_000_000;

/// The event that `rtrace mark` emits.
const MARKER: &str = "rtrace_marker";

/// Contents of the timeline. Times are in clock ticks.
#[derive(Debug)]
pub struct Timeline {
    /// The numbers of the CPUs.
    pub cpus: BTreeSet<u32>,
    /// The number of each CPU, in the order in which the trace names them.
    pub cpu_numbers: Vec<u32>,
    /// The threads.
    pub threads: Threads,
    /// Slices of the rows.
    pub lanes: Lanes,
    /// Marks of the events.
    pub marks: Marks,
    /// Names of the events that occur, by place.
    pub events: Vec<String>,
    /// Number of occurrences of each event.
    counts: Vec<u64>,
    places: HashMap<EventKey, u32>,
    recent: Recent<EventKey>,
    /// The system calls.
    pub calls: Calls,
    /// Sources of interrupts, by place.
    pub interrupts: Vec<InterruptSource>,
    interrupt_places: HashMap<InterruptSource, u32>,
    /// Intervals in which events may be missing.
    pub gaps: Vec<Loss>,
    /// The call stacks.
    pub stacks: Stacks,
    /// The important moments.
    pub moments: Moments,
    /// Place of the event that `rtrace mark` emits, after its first occurrence.
    marker: Option<u32>,
}

impl Timeline {
    /// For a trace with these events and these call stacks.
    pub fn new(catalogue: &Catalogue<'_>, stacks: Stacks) -> Self {
        Self::bounded(catalogue, stacks, LIMIT)
    }

    /// For up to `limit` slices and as many marks.
    pub fn bounded(catalogue: &Catalogue<'_>, stacks: Stacks, limit: usize) -> Self {
        Self {
            cpus: BTreeSet::new(),
            cpu_numbers: Vec::new(),
            threads: Threads::default(),
            lanes: Lanes::new(limit),
            marks: Marks::new(limit),
            events: Vec::new(),
            counts: Vec::new(),
            places: HashMap::new(),
            recent: Recent::default(),
            calls: Calls::new(catalogue),
            interrupts: Vec::new(),
            interrupt_places: HashMap::new(),
            gaps: Vec::new(),
            stacks,
            moments: Moments::default(),
            marker: None,
        }
    }

    /// Whether slices or events were merged because of their number.
    pub fn is_merged(&self) -> bool {
        self.lanes.resolution() > 0 || self.marks.resolution() > 0
    }

    /// Returns the analysis that gathers the timeline.
    pub fn gather(&mut self) -> SendAnalysis<'_> {
        Box::new(Gather(self))
    }

    /// Returns the place of an event. Several channels may have the same event.
    fn event_place(&mut self, event: &Event<'_>) -> u32 {
        let key = (event.layout.stream_id, event.layout.id);
        let (places, events) = (&mut self.places, &mut self.events);
        let (counts, marker) = (&mut self.counts, &mut self.marker);
        self.recent.place(key.1 as usize, key, |key| {
            *places.entry(key).or_insert_with(|| {
                let name = &event.layout.name;
                let known = events.iter().position(|known| known == name);
                let place = known.unwrap_or_else(|| {
                    events.push(name.clone());
                    counts.push(0);
                    events.len() - 1
                }) as u32;
                if name == MARKER {
                    *marker = Some(place);
                }
                place
            })
        })
    }
}

/// Gathers a timeline.
struct Gather<'a>(&'a mut Timeline);

impl Gather<'_> {
    /// Returns the place of a CPU. The page shows the number of the CPU.
    fn cpu_place(&mut self, cpu: usize, schedule: &Schedule) -> u32 {
        let numbers = &mut self.0.cpu_numbers;
        while numbers.len() <= cpu {
            numbers.push(schedule.number(numbers.len()));
        }
        cpu as u32
    }
}

impl Analysis for Gather<'_> {
    fn cost(&self) -> u32 {
        15
    }

    fn wants_all(&self) -> bool {
        true
    }

    fn any(&mut self, event: &Event<'_>, now: &Moment<'_>) {
        let place = self.0.event_place(event);
        self.0.counts[place as usize] += 1;
        let comm = match now.tid() {
            Some(0) => Some(b"idle".as_slice()),
            _ => now.comm(),
        };
        let thread = now.task.filter(|task| task.tid != 0);
        let thread = thread.map(|task| self.0.threads.named((task.tid, task.life), comm, now.time));
        let cpu = self.cpu_place(now.cpu, now.schedule);
        self.0.marks.push(cpu, now.time, place, thread);
        if self.0.marker == Some(place) {
            self.0.moments.marked(now.time);
        }
        let tid = now.tid();
        self.0.stacks.add(event, place, tid, comm.unwrap_or(b"?"));
    }

    fn events(&self) -> Vec<EventKey> {
        self.0.calls.events()
    }

    fn event(&mut self, _which: usize, event: &Event<'_>, now: &Moment<'_>) {
        if let Some(call) = self.0.calls.event(event, now) {
            let thread = self.0.threads.seen(call.thread, call.from, now.schedule);
            let value = (call.call << 1) | u32::from(call.failed);
            if call.failed {
                let moments = &mut self.0.moments;
                moments.failed(call.call, thread, call.from, now.time);
            }
            let lane = Lane::Calls(thread);
            self.0.lanes.push(lane, call.from, now.time, value);
        }
    }

    fn switch(&mut self, switch: &Switch<'_>, now: &Moment<'_>) {
        self.0.calls.switch(switch, now);
    }

    fn lost(&mut self, schedule: &Schedule, _time: u64) {
        self.0.calls.lost(schedule);
    }

    fn cpu(&mut self, number: u32) {
        self.0.cpus.insert(number);
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        if span.tid == 0 {
            return;
        }
        let id = (span.tid, span.life);
        let thread = self.0.threads.seen(id, span.from, schedule);
        let cpu = span.cpu.map(|cpu| self.cpu_place(cpu, schedule));
        let number = span.cpu.map_or(0, |cpu| schedule.number(cpu) + 1);
        let doing = match span.state {
            Activity::Running => {
                self.0.threads.ran(thread, span.ticks());
                if let Some(cpu) = cpu {
                    let lane = Lane::Tasks(cpu);
                    self.0.lanes.push(lane, span.from, span.to, thread);
                }
                RUNNING
            }
            Activity::Runnable { woken: true } => {
                self.0.moments.waited(thread, span.from, span.to);
                WOKEN
            }
            Activity::Runnable { woken: false } => SENT_OFF,
            Activity::Blocked(left) => BLOCKED + left.way() as u32,
        };
        let value = (number << 4) | doing;
        let lane = Lane::States(thread);
        self.0.lanes.push(lane, span.from, span.to, value);
    }

    fn wants_interrupts(&self) -> bool {
        true
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        let next = self.0.interrupts.len() as u32;
        let place = match self.0.interrupt_places.get(interrupt.source) {
            Some(place) => *place,
            None => {
                self.0.interrupts.push(interrupt.source.clone());
                let source = interrupt.source.clone();
                self.0.interrupt_places.insert(source, next);
                next
            }
        };
        let cpu = self.cpu_place(interrupt.cpu, schedule);
        let lane = if interrupt.source.is_hard {
            Lane::Hard(cpu)
        } else {
            Lane::Soft(cpu)
        };
        let (from, to) = (
            interrupt.from,
            interrupt.from.saturating_add(interrupt.ticks),
        );
        self.0.lanes.push(lane, from, to, place);
    }

    fn loss(&mut self, gap: &Loss) {
        let near = self.0.lanes.resolution();
        let mut gaps = self.0.gaps.iter_mut().rev();
        match gaps.find(|last| last.cpu == gap.cpu) {
            Some(last) if gap.from <= last.to.saturating_add(near) => {
                last.to = last.to.max(gap.to);
                last.events = last.events.saturating_add(gap.events);
                last.packets = last.packets.saturating_add(gap.packets);
                last.packets_before = last.packets_before.saturating_add(gap.packets_before);
            }
            _ => self.0.gaps.push(gap.clone()),
        }
    }

    fn answer(self: Box<Self>, _ticks: u64) -> Box<dyn Answer> {
        let names = self.0.events.iter().cloned();
        let counts = names.zip(self.0.counts.iter().copied());
        let mut counts: Vec<_> = counts.collect();
        counts.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        Box::new(Counts(counts))
    }
}

/// Number of occurrences of each event, the most frequent first.
struct Counts(Vec<(String, u64)>);

impl Answer for Counts {
    fn name(&self) -> &'static str {
        "events"
    }

    fn json(&self) -> serde_json::Result<Json> {
        let rows = self.0.iter();
        let rows = rows.map(|(name, count)| json!({"name": name, "count": count}));
        Ok(json!({"events": rows.collect::<Vec<_>>()}))
    }

    fn text(&self, _out: &mut String, _rows: usize) -> fmt::Result {
        // The plain report has these counts as text.
        Ok(())
    }
}
