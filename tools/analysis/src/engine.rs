// SPDX-License-Identifier: GPL-2.0

//! The engine. It turns the items of a trace, in order of time, into activities of threads and CPUs, and
//! passes these to the analyses.
//!
//! All views of a trace use the engine, so each quantity has one value. If events are missing, the same values are
//! unknown in all views: the engine decides this from the events that a stream can have, not from the analyses.

use super::choice::{Chosen, Part};
use super::head::Extent;
use super::interrupts::{Interrupt, Interrupts};
use super::loss::{Account, Loss};
use super::schedule::{Happened, Kinds, Schedule, Span};
use super::{key, Analysis, ByEvent, Catalogue, EventKey, Moment};
use ctf::{Clock, Damage, Event, Item, Packet, Value, Wanted};
use std::collections::HashMap;

/// A receiver of an event.
#[derive(Clone, Copy, Debug)]
enum Receiver {
    Interrupts,
    /// The account, for the tracer's markers.
    Markers,
    /// The analysis at this index.
    Analysis(usize),
}

/// The receivers of an event, and the number of its records.
#[derive(Debug)]
struct Route {
    /// Receivers, and the number by which each receiver identifies the event.
    receivers: Vec<(Receiver, usize)>,
    /// Records that the schedule needs.
    scheduled: Wanted,
    /// Number of records so far.
    count: u64,
}

impl Default for Route {
    fn default() -> Self {
        Self {
            receivers: Vec::new(),
            scheduled: Wanted::Never,
            count: 0,
        }
    }
}

/// The event of a marker.
const MARKER: &str = "rtrace_marker";

/// Prefixes of the events that begin or end an operation or a wait of a thread.
const PAIRED: [&str; 5] = [
    "syscall_",
    "compat_syscall_",
    "contention_",
    "block_",
    "io_uring_",
];

/// Prefixes of the events that begin or end the handling of an interrupt.
const INTERRUPTS: [&str; 5] = [
    "irq_",
    "timer_expire_",
    "timer_hrtimer_expire_",
    "local_timer_",
    "call_function_",
];

/// The engine and its analyses.
pub struct Engine<A: ?Sized> {
    schedule: Schedule,
    /// Spans that the schedule has ended and that the analyses have not received yet.
    spans: Vec<Span>,
    interrupts: Interrupts,
    analyses: Vec<Box<A>>,
    /// Indexes of the analyses that receive all events.
    curious: Vec<usize>,
    routes: ByEvent<Route>,
    /// The kinds of events of each stream class.
    classes: HashMap<u32, Kinds>,
    /// Streams by number; `None` before a stream's first packet.
    streams: Vec<Option<Stream>>,
    extent: Extent,
    account: Account,
    clock: Clock,
    /// The part of the trace that the analyses receive; all of it, if `None`.
    choice: Option<Part>,
    /// `choice` as times of the trace's clock. `None` before the begin of the trace is known.
    chosen: Option<Chosen>,
    /// Losses that the last item reported.
    losses: Vec<Loss>,
    /// Whether the begin of the trace is known.
    is_begun: bool,
    /// Losses that the analyses receive when the begin of the trace is known.
    untold: Vec<Loss>,
}

/// State of a stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Index of the stream's CPU in the schedule.
    cpu: usize,
    /// Kinds of events that the stream can have. If it has none of these kinds, a loss makes nothing unknown.
    kinds: Kinds,
    /// End of the last packet.
    end: u64,
    /// Whether events of the stream may be missing now.
    is_missing: bool,
    /// Whether the stream ended before the trace.
    is_cut: bool,
}

/// Results of the engine at the end of the trace.
pub struct Ended<A: ?Sized> {
    /// The analyses, which have received the whole trace.
    pub analyses: Vec<Box<A>>,
    /// Contents and losses.
    pub account: Account,
    /// Time range of the trace.
    pub extent: Extent,
    /// Number of records of each event that occurred.
    pub counts: Vec<(EventKey, u64)>,
}

impl<A: Analysis + ?Sized> Engine<A> {
    /// Creates the engine for a trace with these events.
    pub fn new(catalogue: &Catalogue<'_>, mut account: Account, analyses: Vec<Box<A>>) -> Self {
        let schedule = Schedule::new(catalogue, std::mem::take(&mut account.initial));
        let interrupts = Interrupts::new(catalogue);
        let mut routes: ByEvent<Route> = ByEvent::default();
        for layout in catalogue
            .metadata()
            .streams
            .iter()
            .flat_map(|class| class.events.values())
        {
            routes.get_or_default(key(layout)).scheduled = schedule.needs(key(layout));
        }
        let mut route = |receiver, events: Vec<EventKey>| {
            for (which, key) in events.into_iter().enumerate() {
                routes.get_or_default(key).receivers.push((receiver, which));
            }
        };
        for (place, analysis) in analyses.iter().enumerate() {
            route(Receiver::Analysis(place), analysis.events());
        }
        let markers = catalogue.events().filter(|layout| layout.name == MARKER);
        route(Receiver::Markers, markers.map(key).collect());
        if analyses.iter().any(|analysis| analysis.wants_interrupts()) {
            route(Receiver::Interrupts, interrupts.events());
        }
        let mut classes: HashMap<u32, Kinds> = HashMap::new();
        for layout in catalogue.events() {
            let starts = |prefixes: &[&str]| prefixes.iter().any(|p| layout.name.starts_with(p));
            let kinds = classes.entry(layout.stream_id).or_default();
            kinds.pairs |= starts(&PAIRED);
            kinds.interrupts |= starts(&INTERRUPTS);
        }
        // Without the events of the initial state, some values are unknown, but none is wrong.
        for (class, _) in schedule.events().filter(|key| !catalogue.is_state(*key)) {
            classes.entry(class).or_default().schedule = true;
        }
        Self {
            schedule,
            spans: Vec::new(),
            interrupts,
            curious: (0..analyses.len())
                .filter(|place| analyses[*place].wants_all())
                .collect(),
            analyses,
            routes,
            classes,
            streams: Vec::new(),
            extent: Extent::default(),
            account,
            clock: catalogue.metadata().clock,
            choice: None,
            chosen: None,
            losses: Vec::new(),
            is_begun: false,
            untold: Vec::new(),
        }
    }

    /// Passes only the chosen part of the trace to the analyses. The schedule uses the whole trace.
    pub fn choose(mut self, choice: &Part) -> Self {
        self.choice = (!choice.is_all()).then(|| choice.clone());
        self
    }

    /// Returns which of the events with this key the engine needs; it is enough to count the others. If a part of the
    /// trace is chosen, this is never enough, because the event may be outside the part.
    pub fn wants(&self, event: EventKey) -> Wanted {
        let is_part = self.choice.is_some() || self.chosen.is_some();
        match self.routes.get(&event) {
            Some(route) if !is_part && self.curious.is_empty() && route.receivers.is_empty() => {
                route.scheduled
            }
            _ => Wanted::Each,
        }
    }

    /// Returns whether a time is after the chosen range.
    pub fn is_over(&self, time: u64) -> bool {
        let chosen = self.chosen.as_ref();
        chosen.is_some_and(|chosen| chosen.is_over(time))
    }

    /// Returns the schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the schedule and the analyses.
    pub fn parts(&mut self) -> (&Schedule, &mut [Box<A>]) {
        (&self.schedule, &mut self.analyses)
    }

    /// Returns the time range of the packets that were read, or the chosen part of it.
    pub fn extent(&self) -> Extent {
        match &self.chosen {
            Some(chosen) => self.extent.part(chosen),
            None => self.extent,
        }
    }

    /// Returns contents and losses so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Processes an item of the stream `number`. Returns the losses that the item reports.
    pub fn item(&mut self, number: usize, item: &Item<'_>) -> &[Loss] {
        self.losses.clear();
        // The first packets of all streams precede every other item.
        if !matches!(item, Item::Packet(_) | Item::Damaged { .. }) {
            self.begin();
        }
        match item {
            Item::Event(event) => {
                if let Some(happened) = self.happen(number, event) {
                    self.analyse(event, &happened);
                }
                return &self.losses;
            }
            Item::Packet(packet) => self.packet(number, item, packet),
            Item::Whole { timestamp } => self.whole(number, *timestamp),
            Item::Damaged { damage, timestamp } => self.damaged(number, item, damage, *timestamp),
            Item::End { partial, skipped } => {
                self.account.item(number, item);
                let place = self
                    .account
                    .streams()
                    .get(number)
                    .and_then(|stream| stream.place);
                for (id, count) in skipped.iter() {
                    let class = place.map_or(0, |(class, _)| class);
                    self.routes.get_or_default((class, *id)).count += count;
                }
                if self.account.is_cut(*partial) {
                    self.cut(number);
                }
            }
        }
        &self.losses
    }

    /// Handles the begin of the trace, which is known now: computes the chosen part, and passes the losses in the first
    /// packets to the analyses.
    fn begin(&mut self) {
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        if let Some(choice) = self.choice.take() {
            let begin = self.extent.begin();
            self.chosen = Some(Chosen::new(choice, &self.clock, begin));
        }
        for loss in std::mem::take(&mut self.untold) {
            self.pass_loss(loss);
        }
    }

    fn packet(&mut self, number: usize, item: &Item<'_>, packet: &Packet<'_>) {
        let header = packet.at.header;
        let (begin, end) = (header.timestamp_begin, header.timestamp_end);
        self.extent.add(begin, end);
        let [events, packets, packets_before] = self.account.item(number, item);
        let known = self.stream(number);
        let cpu = known.map(|stream| stream.cpu);
        let cpu = cpu.unwrap_or_else(|| self.schedule.place(header.cpu_id));
        let kinds = self.classes.get(&{ header.stream_id }).copied();
        let kinds = kinds.unwrap_or_default();
        if self.streams.len() <= number {
            self.streams.resize(number + 1, None);
        }
        let from = known.map_or(0, |stream| stream.end);
        self.streams[number] = Some(Stream {
            cpu,
            kinds,
            end,
            is_missing: known.is_some_and(|stream| stream.is_missing),
            is_cut: false,
        });
        if known.is_none() {
            for analysis in &mut self.analyses {
                analysis.cpu(header.cpu_id);
            }
        }
        if packet.packets_lost > 0 || packet.events_lost > 0 || packet.after_damage {
            self.lose(number, from);
            // The position of the discarded events within the packet is not known.
            let to = if packet.events_lost > 0 { end } else { begin };
            self.tell(Loss {
                cpu: header.cpu_id,
                from,
                to: to.max(from),
                events,
                packets,
                packets_before,
                damage: None,
            });
        } else if known.is_none() && kinds.schedule {
            self.schedule.begin(cpu, begin);
        }
    }

    /// Ends the loss of a stream: no event is missing from this time on.
    fn whole(&mut self, number: usize, time: u64) {
        let stream = self.streams.get_mut(number).and_then(Option::as_mut);
        let Some(stream) = stream.filter(|stream| stream.is_missing) else {
            return;
        };
        stream.is_missing = false;
        self.schedule.regain(stream.cpu, stream.kinds, time);
    }

    /// Begins a loss at damaged bytes: events of the stream are missing from this time on.
    fn damaged(&mut self, number: usize, item: &Item<'_>, damage: &Damage, from: u64) {
        self.account.item(number, item);
        self.lose(number, from);
        let end = self.stream(number).map_or(0, |stream| stream.end);
        self.tell(Loss {
            cpu: self.account.cpu(number).unwrap_or(0),
            from,
            to: end.max(from),
            events: 0,
            packets: 0,
            packets_before: 0,
            damage: Some(damage.clone()),
        });
    }

    /// Marks a stream that ends before the trace does: all later events of its CPU are missing.
    fn cut(&mut self, number: usize) {
        if let Some(stream) = self.streams.get_mut(number).and_then(Option::as_mut) {
            stream.is_cut = true;
            let end = stream.end;
            self.lose(number, end);
        }
    }

    /// Returns the meaning of a stream's event for all views; `None` before the stream's first packet.
    /// Passes ended spans and switches to the analyses, but not the event itself.
    pub fn happen<'e>(&mut self, number: usize, event: &Event<'e>) -> Option<Happened<'e>> {
        self.begin();
        self.account.event(number);
        let cpu = self.stream(number)?.cpu;
        let happened = self.schedule.event(event, cpu, &mut self.spans);
        self.hand_out_spans();
        let is_chosen = |switch: &_| {
            let chosen = self.chosen.as_ref();
            chosen.is_none_or(|chosen| chosen.has_switch(switch, event.timestamp, &self.schedule))
        };
        if let Some(switch) = happened.switch.filter(is_chosen) {
            let now = Moment::new(&self.schedule, event, &happened);
            for analysis in &mut self.analyses {
                analysis.switch(&switch, &now);
            }
        }
        Some(happened)
    }

    /// Passes an event to the analyses.
    pub fn analyse(&mut self, event: &Event<'_>, happened: &Happened<'_>) {
        let route = self.routes.get_or_default(key(event.layout));
        let is_needed = !route.receivers.is_empty() || !self.curious.is_empty();
        if self.chosen.is_none() && !is_needed {
            route.count += 1;
            return;
        }
        let now = Moment::new(&self.schedule, event, happened);
        let chosen = self.chosen.as_ref();
        let is_chosen = chosen.is_none_or(|chosen| {
            chosen.has(event.timestamp)
                && chosen.is_of(now.task.as_ref())
                && chosen.has_key(key(event.layout))
        });
        route.count += u64::from(is_chosen);
        for &place in self.curious.iter().filter(|_| is_chosen) {
            self.analyses[place].any(event, &now);
        }
        for &(receiver, which) in &route.receivers {
            match receiver {
                Receiver::Interrupts if !self.schedule.has_interrupts(now.cpu) => {}
                Receiver::Interrupts => {
                    let interrupt = self.interrupts.event(which, event, now.cpu);
                    let is_chosen = |interrupt: &Interrupt<'_>| {
                        let end = interrupt.from.saturating_add(interrupt.ticks);
                        let running = self.schedule.running(interrupt.cpu);
                        chosen.is_none_or(|chosen| {
                            let is_of = |tid| chosen.is_of_thread(tid, &self.schedule);
                            chosen.overlaps(interrupt.from, end) && running.is_none_or(is_of)
                        })
                    };
                    if let Some(interrupt) = interrupt.filter(is_chosen) {
                        for analysis in &mut self.analyses {
                            analysis.interrupt(&interrupt, &self.schedule);
                        }
                    }
                }
                Receiver::Markers => {
                    if let Some(Value::Text(text)) = event.value(0) {
                        let after = event.timestamp.saturating_sub(self.extent.begin());
                        let text = String::from_utf8_lossy(text);
                        self.account.marker(&text, self.clock.nanoseconds(after));
                    }
                }
                Receiver::Analysis(_) if !is_chosen => {}
                Receiver::Analysis(place) => self.analyses[place].event(which, event, &now),
            }
        }
    }

    /// Ends the trace at this time.
    pub fn end(mut self, time: u64) -> Ended<A> {
        self.begin();
        for number in 0..self.streams.len() {
            if let Some(stream) = self.stream(number).filter(|stream| stream.is_cut) {
                self.tell(Loss {
                    cpu: self.schedule.number(stream.cpu),
                    from: stream.end,
                    to: time.max(stream.end),
                    events: 0,
                    packets: 0,
                    packets_before: 0,
                    damage: None,
                });
            }
        }
        self.schedule.end(time, &mut self.spans);
        self.hand_out_spans();
        let extent = self.extent();
        let counts = self.routes.iter().map(|(key, route)| (key, route.count));
        Ended {
            analyses: self.analyses,
            account: self.account,
            extent,
            counts: counts.filter(|(_, count)| *count > 0).collect(),
        }
    }

    fn stream(&self, number: usize) -> Option<Stream> {
        self.streams.get(number).copied().flatten()
    }

    /// Passes the ended spans to the analyses.
    fn hand_out_spans(&mut self) {
        for span in self.spans.drain(..) {
            let part = match &self.chosen {
                Some(chosen) => chosen.part(span, &self.schedule),
                None => Some(span),
            };
            for analysis in &mut self.analyses {
                match &part {
                    Some(part) => analysis.span(part, &self.schedule),
                    None => analysis.around(&span, &self.schedule),
                }
            }
        }
    }

    /// Reports a loss, and passes it to the analyses.
    fn tell(&mut self, loss: Loss) {
        self.losses.push(loss.clone());
        match self.is_begun {
            true => self.pass_loss(loss),
            false => self.untold.push(loss),
        }
    }

    /// Passes the chosen part of a loss to the analyses.
    fn pass_loss(&mut self, loss: Loss) {
        let part = match &self.chosen {
            Some(chosen) => chosen.part_of_loss(&loss),
            None => Some(loss),
        };
        if let Some(part) = part {
            for analysis in &mut self.analyses {
                analysis.loss(&part);
            }
        }
    }

    /// Begins a loss: events of a stream are missing from this time until `whole`.
    fn lose(&mut self, number: usize, time: u64) {
        let stream = self.streams.get_mut(number).and_then(Option::as_mut);
        let Some(stream) = stream.filter(|stream| !stream.is_missing) else {
            return;
        };
        stream.is_missing = true;
        let Stream { cpu, kinds, .. } = *stream;
        self.schedule.lose(cpu, kinds, time, &mut self.spans);
        self.hand_out_spans();
        if kinds.interrupts {
            self.interrupts.lose(cpu);
        }
        for analysis in &mut self.analyses {
            if kinds.interrupts {
                analysis.interrupts_lost(cpu);
            }
            if kinds.schedule || kinds.pairs {
                analysis.lost(&self.schedule, time);
            }
        }
    }
}
