// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, in order of time, that hands what was chosen to a format.

use super::choice::Choice;
use super::format::{Format, Loss, Now};
use analysis::losses::{Damages, Losses};
use analysis::schedule::{Schedule, Span};
use analysis::summary::{cut, Content, Earlier};
use analysis::{key, Catalogue, EventKey};
use consumer::State;
use ctf::{name_of, Damage, Event, Item, Packet};
use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use store::{Recording, Trace};
use terminal::date::PointInTime;

/// What was exported, and what is missing.
pub struct Exported {
    /// Events.
    pub events: u64,
    /// Those of them of which it is not known which task they happened to.
    pub nameless: u64,
    /// Numbers of events read and lost; of a range of time, only the losses in it.
    pub losses: Losses,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
}

/// Reads the trace and gives `format` the chosen events of the chosen time. `progress` hears of every piece that
/// was read, and may stop it.
pub fn read(
    trace: &Trace,
    choice: &Choice,
    chosen: HashSet<EventKey>,
    format: &mut dyn Format,
    out: &mut dyn Write,
    mut progress: impl FnMut(u64) -> io::Result<()>,
) -> anyhow::Result<Exported> {
    let mut merge = trace.merge()?;
    let mut pass = Pass::new(trace, choice, chosen, format, out);
    let mut is_all_read = true;
    while let Some((stream, item)) = merge.next_item()? {
        match item {
            Item::Packet(packet) => {
                pass.packet(stream, &packet)?;
                progress(packet.at.size())?;
            }
            Item::Whole { timestamp } => pass.whole(stream, timestamp),
            Item::Event(event) => {
                if pass.event(stream, &event)?.is_break() {
                    is_all_read = false;
                    break;
                }
            }
            Item::Damaged { damage, timestamp } => pass.damaged(stream, damage, timestamp)?,
            Item::End { partial } => pass.end(stream, partial)?,
        }
    }
    pass.finish(is_all_read)
}

struct Pass<'a> {
    trace: &'a Trace,
    choice: &'a Choice,
    format: &'a mut dyn Format,
    out: &'a mut dyn Write,
    chosen: HashSet<EventKey>,
    /// From when to when, in nanoseconds of the trace's clock: once the begin is known.
    range: Option<(u64, u64)>,
    schedule: Schedule,
    /// What the schedule says has ended.
    spans: Vec<Span>,
    /// By their places in the trace.
    streams: Vec<Stream<'a>>,
    /// Losses of the streams' first packets, and damage before them, as long as the range is not known.
    untold: Vec<(Loss, Option<Damage>)>,
    /// Losses in the range.
    told: Content,
    /// When the first packet began and the last one that was read ends, once there was one.
    extent: Option<(u64, u64)>,
    /// When the last event that was read was.
    now: u64,
    exported: u64,
    nameless: u64,
    warnings: Vec<String>,
    damages: Damages,
}

/// What is known of a stream.
struct Stream<'a> {
    /// Its first file.
    path: &'a Path,
    /// The place of its CPU in the schedule; none before its first packet.
    cpu: Option<usize>,
    content: Content,
    /// Where its last packet ended.
    end: u64,
}

impl<'a> Pass<'a> {
    fn new(
        trace: &'a Trace,
        choice: &'a Choice,
        chosen: HashSet<EventKey>,
        format: &'a mut dyn Format,
        out: &'a mut dyn Write,
    ) -> Self {
        let schedule = Schedule::new(&Catalogue::new(&trace.metadata));
        let stream = |files: &'a [PathBuf]| Stream {
            path: &files[0],
            cpu: None,
            content: Content::default(),
            end: 0,
        };
        Self {
            trace,
            choice,
            format,
            out,
            chosen,
            range: None,
            schedule,
            spans: Vec::new(),
            streams: trace.streams_by_name().map(stream).collect(),
            untold: Vec::new(),
            told: Content::default(),
            extent: None,
            now: 0,
            exported: 0,
            nameless: 0,
            warnings: Vec::new(),
            damages: Damages::of(trace),
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        self.trace.metadata.clock.nanoseconds(ticks)
    }

    /// From when to when is exported. The first packets of all streams come before anything else, so
    /// that behind them it is known when the trace begins.
    fn range(&mut self) -> io::Result<(u64, u64)> {
        if let Some(range) = self.range {
            return Ok(range);
        }
        let ticks = self.extent.map_or(0, |(begin, _)| begin);
        let begin = self.ns(ticks);
        let epoch = self.trace.metadata.clock.since_epoch(ticks);
        let bound = |time: Option<PointInTime>| {
            let after = time?.after_begin(begin, epoch);
            let clock = i128::from(begin).saturating_add(after).max(0);
            Some(u64::try_from(clock).unwrap_or(u64::MAX))
        };
        let range = (
            bound(self.choice.from).unwrap_or(0),
            bound(self.choice.to).unwrap_or(u64::MAX),
        );
        self.range = Some(range);
        self.format.begin(begin, self.out)?;
        for (loss, damage) in std::mem::take(&mut self.untold) {
            self.tell(&loss, damage)?;
        }
        Ok(range)
    }

    fn packet(&mut self, number: usize, packet: &Packet<'_>) -> io::Result<()> {
        let header = packet.at.header;
        let (begin, end) = (header.timestamp_begin, header.timestamp_end);
        let (first, last) = self.extent.unwrap_or((begin, end));
        self.extent = Some((first.min(begin), last.max(end)));
        let stream = &mut self.streams[number];
        let is_first = stream.cpu.is_none();
        let earlier = Earlier::of(self.trace.recording.as_ref(), stream.path);
        let before = stream.content;
        stream
            .content
            .add_packet(packet, is_first.then_some(earlier));
        let events = stream.content.lost - before.lost;
        let packets = |content: &Content| content.packets_lost + content.packets_damaged;
        let packets = packets(&stream.content) - packets(&before);
        let ended = std::mem::replace(&mut stream.end, end);
        let since = if is_first { begin } else { ended };
        let place = *stream
            .cpu
            .get_or_insert_with(|| self.schedule.place(header.cpu_id));
        if packet.packets_lost > 0 || packet.events_lost > 0 {
            self.lose(place, since)?;
        } else if is_first {
            self.schedule.begin(place, begin);
        }
        if events > 0 || packets > 0 {
            let loss = Loss {
                cpu: header.cpu_id,
                ns: self.ns(since),
                until: self.ns(end),
                events,
                packets,
                damaged: 0,
            };
            match self.range {
                Some(_) => self.tell(&loss, None)?,
                None => self.untold.push((loss, None)),
            }
        }
        Ok(())
    }

    /// A place of a stream is damaged: events are missing from this time on.
    fn damaged(&mut self, number: usize, damage: &Damage, time: u64) -> io::Result<()> {
        let stream = &self.streams[number];
        let (place, end) = (stream.cpu, stream.end);
        let cpu = match place {
            Some(place) => Some(self.schedule.number(place)),
            None => name_of(stream.path).map(|name| name.cpu),
        };
        if let Some(place) = place {
            self.lose(place, time)?;
        }
        let loss = Loss {
            cpu: cpu.unwrap_or(0),
            ns: self.ns(time),
            until: self.ns(end.max(time)),
            events: 0,
            packets: 0,
            damaged: damage.bytes.max(1),
        };
        let damage = Some(damage.clone());
        match self.range {
            Some(_) => self.tell(&loss, damage),
            None => {
                self.untold.push((loss, damage));
                Ok(())
            }
        }
    }

    /// Tells the format of a loss, if it may be in the range.
    fn tell(&mut self, loss: &Loss, damage: Option<Damage>) -> io::Result<()> {
        let (from, to) = self.range()?;
        if loss.until < from || loss.ns > to {
            return Ok(());
        }
        self.told.lost += loss.events;
        self.told.packets_lost += loss.packets;
        if let Some(damage) = damage {
            self.damages.add(damage);
        }
        let ns = loss.ns.max(from);
        self.format.loss(&Loss { ns, ..*loss }, self.out)
    }

    /// Events are missing on a CPU from this time on.
    fn lose(&mut self, place: usize, time: u64) -> io::Result<()> {
        self.schedule.lose(place, time, &mut self.spans);
        self.hand_out()?;
        let ns = self.ns(time);
        self.format.gap(place, ns, &self.schedule, self.out)
    }

    fn whole(&mut self, number: usize, time: u64) {
        if let Some(cpu) = self.streams[number].cpu {
            self.schedule.regain(cpu, time);
        }
    }

    /// Says whether to stop: nothing that comes now is wanted.
    fn event(&mut self, number: usize, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.now = event.timestamp;
        let ns = self.ns(event.timestamp);
        let (from, to) = self.range()?;
        if ns > to {
            return Ok(ControlFlow::Break(()));
        }
        let stream = &mut self.streams[number];
        stream.content.events += 1;
        let Some(place) = stream.cpu else {
            return Ok(ControlFlow::Continue(()));
        };
        let key = key(event.layout);
        let happened = self.schedule.event(event, place, &mut self.spans);
        self.hand_out()?;
        if ns < from || !self.chosen.contains(&key) {
            return Ok(ControlFlow::Continue(()));
        }
        let task = self.schedule.task(&happened);
        self.exported += 1;
        self.nameless += u64::from(task.is_none());
        let now = Now {
            ns,
            place,
            cpu: self.schedule.number(place),
            task,
            switch: happened.switch,
            schedule: &self.schedule,
        };
        self.format.event(event, &now, self.out)?;
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self, number: usize, partial: u64) -> io::Result<()> {
        let stream = &self.streams[number];
        self.warnings.extend(cut(stream.path, partial));
        let state = self.recording().map(|recording| recording.state);
        // Streams that were cut end at any time: what came later on this CPU is missing.
        let is_cut = partial > 0 || matches!(state, Some(State::Writing | State::Failed));
        match stream.cpu {
            Some(place) if is_cut => self.lose(place, stream.end),
            _ => Ok(()),
        }
    }

    /// Gives the format what has ended, as far as that is in the range.
    fn hand_out(&mut self) -> io::Result<()> {
        let mut spans = std::mem::take(&mut self.spans);
        for span in spans.drain(..) {
            let (from, _) = self.range()?;
            if self.ns(span.to) > from {
                self.format.span(&span, &self.schedule, self.out)?;
            }
        }
        self.spans = spans;
        Ok(())
    }

    fn recording(&self) -> Option<&'a Recording> {
        self.trace.recording.as_ref()
    }

    fn finish(mut self, is_all_read: bool) -> anyhow::Result<Exported> {
        let (_, to) = self.range()?;
        let end = match self.extent {
            Some((_, end)) if is_all_read => end,
            _ => self.now,
        };
        self.schedule.end(end, &mut self.spans);
        self.hand_out()?;
        self.format.end(self.ns(end).min(to), self.out)?;
        let mut all = self.told;
        let is_all = self.choice.from.is_none() && self.choice.to.is_none();
        if is_all {
            all = Content::default();
            self.streams
                .iter()
                .for_each(|stream| all.add(&stream.content));
        }
        // What the kernel counted is of all.
        let recording = self.recording().filter(|_| is_all);
        let losses = Losses::new(&all, recording, self.damages);
        self.warnings.extend(losses.warnings());
        Ok(Exported {
            events: self.exported,
            nameless: self.nameless,
            losses,
            warnings: self.warnings,
        })
    }
}
