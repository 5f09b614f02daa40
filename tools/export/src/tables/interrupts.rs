// SPDX-License-Identifier: GPL-2.0

//! `interrupts`: a row for each that was handled.

use super::{epoch, made, row};
use crate::format::Now;
use analysis::interrupts::Interrupts;
use analysis::{key, Catalogue, EventKey};
use ctf::{Clock, Event};
use std::collections::{HashMap, HashSet};
use tables::{Folder, Kind, TableId};

/// Behind those of the place.
const COLUMNS: [(&str, Kind); 5] = [
    ("kind", Kind::Text),
    ("number", Kind::LONG),
    ("name", Kind::Text),
    ("duration_ns", Kind::LONG),
    // Without those that came meanwhile.
    ("own_ns", Kind::LONG),
];

/// The table.
pub struct InterruptTable {
    clock: Clock,
    interrupts: Interrupts,
    /// Its events, and their numbers there.
    events: HashMap<EventKey, usize>,
    table: TableId,
}

impl InterruptTable {
    /// Of a trace, if the events that it is made from are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let interrupts = Interrupts::new(catalogue);
        let events = interrupts.events().into_iter().zip(0..);
        let events: HashMap<_, _> = events.filter(|(key, _)| chosen.contains(key)).collect();
        if events.is_empty() {
            return Ok(None);
        }
        let table = made(folder, "interrupts", COLUMNS, begin)?;
        Ok(Some(Self {
            clock: catalogue.metadata().clock,
            interrupts,
            events,
            table,
        }))
    }

    /// An event; a row if an interrupt ends with it.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        now: &Now<'_>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let Some(which) = self.events.get(&key(event.layout)) else {
            return Ok(());
        };
        if !now.schedule.is_whole(now.place) {
            return Ok(());
        }
        let Some(interrupt) = self.interrupts.event(*which, event, now.place) else {
            return Ok(());
        };
        let source = interrupt.source;
        let kind = if source.is_hard { "hard" } else { "soft" };
        let mut row = row(folder, self.table, epoch(&self.clock, interrupt.from))?;
        row.integer(now.cpu.into());
        row.text(Some(kind.as_bytes()));
        row.integer(source.number as u64);
        row.text(Some(source.name.as_bytes()));
        row.integer(self.clock.nanoseconds(interrupt.ticks));
        row.integer(self.clock.nanoseconds(interrupt.own_ticks));
        Ok(())
    }

    /// Events of a CPU may be missing.
    pub fn lose(&mut self, cpu: usize) {
        self.interrupts.lose(cpu);
    }
}
