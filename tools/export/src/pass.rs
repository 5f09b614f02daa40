// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, in order of time, that hands the chosen events of the chosen time to a format.

use super::choice::Choice;
use super::format::{Format, Loss, Now};
use analysis::engine::{Ended, Engine};
use analysis::interrupts::{Interrupt, Interrupts};
use analysis::loss::{self, Account, Content, Damages, Losses};
use analysis::pass::each_of;
use analysis::schedule::{Schedule, Span};
use analysis::{key, Analysis, Catalogue, EventKey, Moment};
use ctf::{Clock, Event, Item};
use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use store::Trace;

/// Result of an export, with its losses.
pub struct Exported {
    /// Number of exported events.
    pub events: u64,
    /// Number of exported events with an unknown task.
    pub nameless: u64,
    /// Numbers of events read and lost. For a range of time, only the losses in the range.
    pub losses: Losses,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
}

/// Reads the trace and gives `format` the chosen events of the chosen time. After each packet, `progress` gets
/// the size of the packet, and may stop the pass.
pub fn read(
    trace: &Trace,
    choice: &Choice,
    chosen: HashSet<EventKey>,
    format: &mut dyn Format,
    out: &mut dyn Write,
    mut progress: impl FnMut(u64) -> io::Result<()>,
) -> anyhow::Result<Exported> {
    let catalogue = Catalogue::new(&trace.metadata);
    let exporter = Exporter::new(trace, &catalogue, choice, chosen, format, out);
    let engine = Engine::new(&catalogue, Account::of(trace), vec![Box::new(exporter)]);
    let mut engine = engine.choose(&choice.part);
    let mut now = 0;
    let merge = trace.merge()?.only(|layout| engine.wants(key(layout)));
    let is_all_read = each_of(
        merge,
        |bytes| Ok::<_, anyhow::Error>(progress(bytes)?),
        |stream, item| {
            // The first packets of all streams precede every other item. At such an item, the begin of the trace is
            // known.
            if !matches!(item, Item::Packet(_) | Item::Damaged { .. }) {
                let begin = engine.extent().begin();
                for exporter in engine.parts().1 {
                    exporter.begin(begin)?;
                }
            }
            if let Item::Event(event) = item {
                now = event.timestamp;
                // The first event after the range ends the export, whatever event it is.
                if engine.is_over(now) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            engine.item(stream, item);
            for exporter in engine.parts().1 {
                exporter.take_result()?;
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let extent = engine.extent();
    for exporter in engine.parts().1 {
        exporter.begin(extent.begin())?;
    }
    let end = if is_all_read { extent.end() } else { now };
    let Ended {
        mut analyses,
        account,
        extent,
        ..
    } = engine.end(end);
    let exporter = analyses.remove(0);
    exporter.finish(extent.end(), &account)
}

/// Gives the chosen events to a format.
struct Exporter<'a> {
    clock: Clock,
    is_all: bool,
    format: &'a mut dyn Format,
    out: &'a mut dyn Write,
    chosen: Vec<EventKey>,
    /// Whether hard and soft interrupts are chosen.
    interrupts: [bool; 2],
    /// Begin of the trace, in nanoseconds of its clock. None until it is known.
    begin: Option<u64>,
    /// Losses in the range.
    told: Content,
    damages: Damages,
    exported: u64,
    nameless: u64,
    /// The first error of the format.
    result: io::Result<()>,
}

impl<'a> Exporter<'a> {
    fn new(
        trace: &'a Trace,
        catalogue: &Catalogue<'_>,
        choice: &Choice,
        chosen: HashSet<EventKey>,
        format: &'a mut dyn Format,
        out: &'a mut dyn Write,
    ) -> Self {
        let interrupts = Interrupts::new(catalogue);
        let are_chosen = |is_hard| interrupts.of(is_hard).all(|key| chosen.contains(&key));
        Self {
            clock: trace.metadata.clock,
            is_all: choice.part.is_all(),
            format,
            out,
            interrupts: [are_chosen(true), are_chosen(false)],
            chosen: chosen.into_iter().collect(),
            begin: None,
            told: Content::default(),
            damages: Damages::of(trace),
            exported: 0,
            nameless: 0,
            result: Ok(()),
        }
    }

    fn ns(&self, ticks: u64) -> u64 {
        self.clock.nanoseconds(ticks)
    }

    /// Takes the time at which the trace begins.
    fn begin(&mut self, time: u64) -> io::Result<()> {
        if self.begin.is_some() {
            return Ok(());
        }
        let begin = self.ns(time);
        self.begin = Some(begin);
        self.format.begin(begin, self.out)
    }

    /// Gives the format a loss.
    fn tell(&mut self, loss: &loss::Loss) -> io::Result<()> {
        if loss.events == 0 && loss.packets == 0 && loss.damage.is_none() {
            return Ok(());
        }
        let begin = self.begin.unwrap_or(0);
        self.told.lost += loss.events;
        self.told.packets_lost += loss.packets;
        if let Some(damage) = &loss.damage {
            self.damages.add(damage.clone());
        }
        let loss = Loss {
            cpu: loss.cpu,
            ns: self.ns(loss.from).max(begin),
            until: self.ns(loss.to).max(begin),
            events: loss.events,
            packets: loss.packets,
            damaged: loss.damage.as_ref().map_or(0, |damage| damage.bytes.max(1)),
        };
        self.format.loss(&loss, self.out)
    }

    /// Calls the format, unless it has failed before.
    fn with(&mut self, act: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.result.is_ok() {
            self.result = act(self);
        }
    }

    fn take_result(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.result, Ok(()))
    }

    /// Ends the export at `end`, the end of the trace or of the range.
    fn finish(mut self, end: u64, account: &Account) -> anyhow::Result<Exported> {
        self.take_result()?;
        self.format.end(self.ns(end), self.out)?;
        let losses = match self.is_all {
            true => account.total(),
            // The kernel's counters cover the whole trace.
            false => Losses::new(&self.told, None, self.damages),
        };
        let mut warnings = account.cuts().to_vec();
        warnings.extend(losses.warnings());
        Ok(Exported {
            events: self.exported,
            nameless: self.nameless,
            losses,
            warnings,
        })
    }
}

impl Analysis for Exporter<'_> {
    fn events(&self) -> Vec<EventKey> {
        self.chosen.clone()
    }

    fn event(&mut self, _which: usize, event: &Event<'_>, now: &Moment<'_>) {
        self.exported += 1;
        self.nameless += u64::from(now.task.is_none());
        let now = Now {
            ns: self.ns(now.time),
            cpu: now.schedule.number(now.cpu),
            moment: *now,
        };
        self.with(|this| this.format.event(event, &now, this.out));
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        self.with(|this| this.format.span(span, schedule, this.out));
    }

    fn wants_interrupts(&self) -> bool {
        self.interrupts.contains(&true)
    }

    fn interrupt(&mut self, interrupt: &Interrupt<'_>, schedule: &Schedule) {
        if self.interrupts[usize::from(!interrupt.source.is_hard)] {
            self.with(|this| this.format.interrupt(interrupt, schedule, this.out));
        }
    }

    fn lost(&mut self, schedule: &Schedule, time: u64) {
        let ns = self.ns(time);
        self.with(|this| this.format.lost(ns, schedule, this.out));
    }

    fn loss(&mut self, loss: &loss::Loss) {
        self.with(|this| this.tell(loss));
    }
}
