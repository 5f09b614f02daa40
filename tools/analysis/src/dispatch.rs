// SPDX-License-Identifier: GPL-2.0

//! Hands the items of a trace, which come in order of time, to the schedule and to analyses.

use super::interrupts::Interrupts;
use super::schedule::{Happened, Schedule, Span};
use super::{Analysis, Catalogue, EventKey, Gap, Moment};
use ctf::{Event, Packet};
use std::collections::{HashMap, HashSet};

/// Who wants an event.
#[derive(Clone, Copy, Debug)]
enum Receiver {
    Interrupts,
    /// The analysis at this place.
    Analysis(usize),
}

/// The schedule, the analyses, and who of them wants what.
pub struct Dispatch<A: ?Sized> {
    schedule: Schedule,
    /// What the schedule says has ended.
    spans: Vec<Span>,
    interrupts: Interrupts,
    analyses: Vec<Box<A>>,
    /// Those that are given all events.
    curious: Vec<usize>,
    /// Who wants an event, and the number by which each knows it.
    routes: HashMap<EventKey, Vec<(Receiver, usize)>>,
    /// The stream classes of these events.
    classes: HashSet<u32>,
    /// By their numbers; none before a stream's first packet.
    streams: Vec<Option<Stream>>,
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The place of its CPU in the schedule.
    cpu: usize,
    /// Whether it can have events that are wanted: else its losses do not matter.
    is_wanted: bool,
    /// Where its last packet ended.
    end: u64,
    /// Where events of it may be missing, if that is now.
    gap: Option<Gap>,
}

impl<A: Analysis + ?Sized> Dispatch<A> {
    /// Of a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, analyses: Vec<Box<A>>) -> Self {
        let schedule = Schedule::new(catalogue);
        let interrupts = Interrupts::new(catalogue);
        let mut routes: HashMap<EventKey, Vec<(Receiver, usize)>> = HashMap::new();
        let mut route = |receiver, events: Vec<EventKey>| {
            for (which, key) in events.into_iter().enumerate() {
                routes.entry(key).or_default().push((receiver, which));
            }
        };
        if analyses.iter().any(|analysis| analysis.wants_interrupts()) {
            route(Receiver::Interrupts, interrupts.events());
        }
        for (place, analysis) in analyses.iter().enumerate() {
            route(Receiver::Analysis(place), analysis.events());
        }
        // Without these events some state is unknown, but none is wrong.
        let wanted = schedule.events().chain(routes.keys().copied());
        let wanted = wanted.filter(|key| !catalogue.is_state(*key));
        Self {
            classes: wanted.map(|(class, _)| class).collect(),
            schedule,
            spans: Vec::new(),
            interrupts,
            curious: (0..analyses.len())
                .filter(|place| analyses[*place].wants_all())
                .collect(),
            analyses,
            routes,
            streams: Vec::new(),
        }
    }

    /// Who runs where.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Who runs where, and the analyses.
    pub fn parts(&mut self) -> (&Schedule, &mut [Box<A>]) {
        (&self.schedule, &mut self.analyses)
    }

    /// The place of a stream's CPU in the schedule; none before the stream's first packet.
    pub fn cpu(&self, number: usize) -> Option<usize> {
        self.stream(number).map(|stream| stream.cpu)
    }

    /// A packet of a stream begins.
    pub fn packet(&mut self, number: usize, packet: &Packet<'_>) {
        let header = packet.at.header;
        let known = self.stream(number);
        let cpu = known.map(|stream| stream.cpu);
        let cpu = cpu.unwrap_or_else(|| self.schedule.place(header.cpu_id));
        let is_wanted = self.classes.contains(&{ header.stream_id });
        if self.streams.len() <= number {
            self.streams.resize(number + 1, None);
        }
        let before = known.map_or(0, |stream| stream.end);
        let is_lossy = packet.packets_lost > 0 || packet.events_lost > 0;
        let gap = is_lossy.then_some(Gap {
            cpu: header.cpu_id,
            from: before,
            to: before,
            events: packet.events_lost,
            packets: packet.packets_lost,
        });
        self.streams[number] = Some(Stream {
            cpu,
            is_wanted,
            end: header.timestamp_end,
            gap: gap.or(known.and_then(|stream| stream.gap)),
        });
        if known.is_none() {
            for analysis in &mut self.analyses {
                analysis.cpu(header.cpu_id);
            }
        }
        if !is_wanted {
            return;
        }
        if is_lossy {
            self.lose(cpu, before);
        } else if known.is_none() {
            self.schedule.begin(cpu, header.timestamp_begin);
        }
    }

    /// No event of a stream is missing from this time on.
    pub fn whole(&mut self, number: usize, time: u64) {
        self.close_gap(number, time);
        if let Some(stream) = self.stream(number).filter(|stream| stream.is_wanted) {
            self.schedule.regain(stream.cpu, time);
        }
    }

    /// A stream was cut where its last packet ended: what came later on its CPU is missing.
    pub fn cut(&mut self, number: usize) {
        if let Some(stream) = self.stream(number) {
            self.lose_from(number, stream.end);
        }
    }

    /// Events of a stream are missing from this time on.
    pub fn lose_from(&mut self, number: usize, time: u64) {
        let Some(stream) = self.stream(number) else {
            return;
        };
        let gap = Gap {
            cpu: self.schedule.number(stream.cpu),
            from: time,
            to: time,
            events: 0,
            packets: 0,
        };
        self.streams[number] = Some(Stream {
            gap: Some(gap),
            ..stream
        });
        if stream.is_wanted {
            self.lose(stream.cpu, time);
        }
    }

    /// An event of a stream.
    pub fn event(&mut self, number: usize, event: &Event<'_>) {
        if let Some(happened) = self.happen(number, event) {
            self.analyse(event, &happened);
        }
    }

    /// The meaning of a stream's event to all views; none before the stream's first packet. The analyses hear
    /// of what ended and of switches, not of the event.
    pub fn happen<'e>(&mut self, number: usize, event: &Event<'e>) -> Option<Happened<'e>> {
        let cpu = self.cpu(number)?;
        let happened = self.schedule.event(event, cpu, &mut self.spans);
        hand_out(&mut self.spans, &mut self.analyses, &self.schedule);
        if let Some(switch) = happened.switch {
            let now = Moment::new(&self.schedule, event, &happened);
            for analysis in &mut self.analyses {
                analysis.switch(&switch, &now);
            }
        }
        Some(happened)
    }

    /// The analyses hear of an event.
    pub fn analyse(&mut self, event: &Event<'_>, happened: &Happened<'_>) {
        let now = Moment::new(&self.schedule, event, happened);
        for &place in &self.curious {
            self.analyses[place].any(event, &now);
        }
        let key = (event.layout.stream_id, event.layout.id);
        for &(receiver, which) in self.routes.get(&key).into_iter().flatten() {
            match receiver {
                Receiver::Interrupts if !self.schedule.is_whole(now.cpu) => {}
                Receiver::Interrupts => {
                    if let Some(interrupt) = self.interrupts.event(which, event, now.cpu) {
                        for analysis in &mut self.analyses {
                            analysis.interrupt(&interrupt, &self.schedule);
                        }
                    }
                }
                Receiver::Analysis(place) => self.analyses[place].event(which, event, &now),
            }
        }
    }

    /// The trace is over at this time. The analyses have all of it.
    pub fn end(mut self, time: u64) -> Vec<Box<A>> {
        for number in 0..self.streams.len() {
            self.close_gap(number, time);
        }
        self.schedule.end(time, &mut self.spans);
        hand_out(&mut self.spans, &mut self.analyses, &self.schedule);
        self.analyses
    }

    fn stream(&self, number: usize) -> Option<Stream> {
        self.streams.get(number).copied().flatten()
    }

    /// Nothing of a stream is missing from this time on, or the trace is over.
    fn close_gap(&mut self, number: usize, time: u64) {
        let stream = self.streams.get_mut(number).and_then(Option::as_mut);
        if let Some(gap) = stream.and_then(|stream| stream.gap.take()) {
            let to = time.max(gap.from);
            for analysis in &mut self.analyses {
                analysis.gap(&Gap { to, ..gap });
            }
        }
    }

    /// Events are missing on a CPU from this time on.
    fn lose(&mut self, cpu: usize, time: u64) {
        self.interrupts.lose(cpu);
        self.schedule.lose(cpu, time, &mut self.spans);
        hand_out(&mut self.spans, &mut self.analyses, &self.schedule);
        for analysis in &mut self.analyses {
            analysis.lost(&self.schedule);
        }
    }
}

/// Gives the analyses what has ended.
fn hand_out<A: Analysis + ?Sized>(
    spans: &mut Vec<Span>,
    analyses: &mut [Box<A>],
    schedule: &Schedule,
) {
    for span in spans.drain(..) {
        for analysis in &mut *analyses {
            analysis.span(&span, schedule);
        }
    }
}
