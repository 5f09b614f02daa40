// SPDX-License-Identifier: GPL-2.0

//! `syscalls`: a row for each call.
//!
//! An entry and an exit form one call as in the report (`analysis/syscalls`). If the exit is not known, the row has
//! neither duration nor result. An exit whose entry is not known is no call and has no row.

use super::made::{Made, CPU, THREAD};
use super::paths::Paths;
use crate::format::Now;
use analysis::schedule::Schedule;
use analysis::syscalls::{edge, Edge, Open, Pairs, ERRORS};
use analysis::{key, Catalogue, EventKey};
use ctf::{Event, EventLayout};
use decode::error_name;
use std::collections::HashSet;
use tables::{ColumnKind, Folder};

/// Columns after the place and the thread.
const COLUMNS: [(&str, ColumnKind); 5] = [
    ("name", ColumnKind::Text),
    ("duration_ns", ColumnKind::LONG),
    ("ret", ColumnKind::LONG),
    ("error", ColumnKind::Text),
    ("path", ColumnKind::Text),
];

/// The table.
pub struct Calls {
    table: Made,
    pairs: Pairs<Call>,
    paths: Paths,
}

/// The task and the CPU at an entry or exit.
struct Call {
    cpu: u32,
    tid: Option<i64>,
    pid: Option<i64>,
    comm: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
}

impl Calls {
    /// For a trace, if entries or exits of calls are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let layouts = catalogue.events();
        let events = layouts.filter(|layout| chosen.contains(&key(layout)));
        let events: Vec<_> = events.collect();
        let is_entry = |layout: &&EventLayout| matches!(edge(layout), Some((_, Edge::Entry)));
        if !events.iter().any(is_entry) {
            return Ok(None);
        }
        let pairs = Pairs::new(events.into_iter());
        let columns = [CPU].into_iter().chain(THREAD).chain(COLUMNS);
        let clock = catalogue.metadata().clock;
        let table = Made::new("syscalls", columns, clock, folder, begin)?;
        Ok(table.map(|table| Self {
            table,
            pairs,
            paths: Paths::new(catalogue, chosen),
        }))
    }

    /// Takes an event, and adds a row if a call ends with it.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        now: &Now<'_>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let moment = &now.moment;
        self.paths.event(event, moment);
        if let Some(switch) = &now.switch {
            // A thread that exits does not return from its last call.
            let gone = self.pairs.switch(switch, moment);
            self.add_all(gone.into_iter().flatten(), folder)?;
        }
        let Some(seen) = self.pairs.event(event, moment) else {
            return Ok(());
        };
        self.add_all(seen.cut.into_iter(), folder)?;
        if let Some(begun) = &seen.begun {
            let ticks = moment.time.saturating_sub(begun.since);
            return self.add(begun, Some(ticks), seen.ret, folder);
        }
        if !seen.is_entry {
            return Ok(());
        }
        let call = Call {
            cpu: now.cpu,
            tid: moment.tid(),
            pid: moment.owner().pid(),
            comm: moment.comm().map(<[u8]>::to_vec),
            path: self.paths.path(event, moment),
        };
        let Some(what) = self.pairs.begin(seen.name, call, moment) else {
            return Ok(());
        };
        let open = Open {
            name: seen.name,
            since: moment.time,
            what,
        };
        self.add(&open, None, None, folder)
    }

    fn add(
        &self,
        open: &Open<Call>,
        ticks: Option<u64>,
        ret: Option<i64>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let call = &open.what;
        let mut row = self.table.row(folder, open.since)?;
        row.integer(call.cpu.into());
        row.number(call.tid);
        row.number(call.pid);
        row.text(call.comm.as_deref());
        row.text(self.pairs.names().get(open.name).map(String::as_bytes));
        match ticks {
            Some(ticks) => row.integer(self.table.nanoseconds(ticks)),
            None => row.null(),
        }
        row.number(ret);
        let error = ret.filter(|ret| ERRORS.contains(ret));
        let error = error.map(|ret| error_name(-ret).unwrap_or_else(|| (-ret).to_string()));
        row.text(error.as_ref().map(String::as_bytes));
        row.text(call.path.as_deref());
        Ok(())
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lose(&mut self, schedule: &Schedule, folder: &mut Folder) -> tables::Result<()> {
        self.paths.lost(schedule);
        let gone = self.pairs.lost(schedule);
        self.add_all(gone.into_iter(), folder)
    }

    /// Ends the trace: adds the rows of the calls that have not returned.
    pub fn end(&mut self, folder: &mut Folder) -> tables::Result<()> {
        let rest = self.pairs.rest();
        self.add_all(rest.into_iter(), folder)
    }

    /// Adds rows of calls whose end is not known.
    fn add_all(
        &self,
        mut calls: impl Iterator<Item = Open<Call>>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        calls.try_for_each(|call| self.add(&call, None, None, folder))
    }
}
