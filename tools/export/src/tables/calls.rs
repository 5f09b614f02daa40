// SPDX-License-Identifier: GPL-2.0

//! `syscalls`: a row for each call.
//!
//! An entry and an exit form one call as in the report (`analysis/syscalls`). If only one of them is known, the
//! row has no duration. A row from an entry alone has no result either.

use super::{epoch, made, row, THREAD};
use crate::format::Now;
use analysis::begun::{Begun, Doer};
use analysis::schedule::Schedule;
use analysis::syscalls::{edge, is_end_of, CallName, Edge, ERRORS};
use analysis::{key, ByEvent, Catalogue, EventKey, Moment};
use ctf::{Clock, Event};
use decode::error_name;
use std::collections::HashSet;
use tables::{Folder, Kind, TableId};

/// Columns after the place and the thread.
const COLUMNS: [(&str, Kind); 4] = [
    ("name", Kind::Text),
    ("duration_ns", Kind::LONG),
    ("ret", Kind::LONG),
    ("error", Kind::Text),
];

/// The table.
pub struct Calls {
    clock: Clock,
    table: TableId,
    events: ByEvent<Known>,
    /// Open call of each thread.
    open: Begun<(), Call>,
}

/// Meaning of an event.
struct Known {
    name: CallName,
    edge: Edge,
}

/// A call that has not returned.
struct Call {
    name: String,
    /// Time of the entry.
    time: u64,
    cpu: u32,
    tid: Option<i64>,
    pid: Option<i64>,
    comm: Option<Vec<u8>>,
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
        let known = events.filter_map(|layout| {
            let (name, edge) = edge(layout)?;
            Some((key(layout), Known { name, edge }))
        });
        let events: ByEvent<_> = known.collect();
        if events.is_empty() {
            return Ok(None);
        }
        let table = made(folder, "syscalls", THREAD.into_iter().chain(COLUMNS), begin)?;
        if !folder.wants(table) {
            return Ok(None);
        }
        Ok(Some(Self {
            clock: catalogue.metadata().clock,
            table,
            events,
            open: Begun::default(),
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
        if let Some(switch) = &now.switch {
            let gone = self.open.switch(switch, moment);
            self.add_all(gone, folder)?;
            // A thread that exits does not return from its last call.
            let last = self.open.ended(switch, moment);
            self.add_all(last, folder)?;
        }
        let Some(known) = self.events.get(&key(event.layout)) else {
            return Ok(());
        };
        let doer = moment.doer();
        let before = doer.and_then(|doer| self.open.end(doer, &(), moment));
        let before = before.map(|ended| (ended.what, ended.ticks));
        let call = Call {
            name: known.name.of(event).into_owned(),
            time: event.timestamp,
            cpu: now.cpu,
            tid: moment.tid(),
            pid: moment.owner().pid(),
            comm: moment.comm().map(<[u8]>::to_vec),
        };
        if let Edge::Entry = known.edge {
            if let Some((call, _)) = before {
                self.add(&call, None, None, folder)?;
            }
            return self.begin(doer, call, moment, folder);
        }
        let ret = known.edge.result(event);
        match before {
            Some((begun, ticks)) if ret.is_some() && is_end_of(&call.name, &begun.name) => {
                self.add(&begun, Some(ticks), ret, folder)
            }
            before => {
                if let Some((begun, _)) = before {
                    self.add(&begun, None, None, folder)?;
                }
                match ret {
                    None => Ok(()),
                    Some(_) => self.add(&call, None, ret, folder),
                }
            }
        }
    }

    /// Begins a call. If its end cannot be distinguished from the end of another call, adds the row at once.
    fn begin(
        &mut self,
        doer: Option<Doer>,
        call: Call,
        moment: &Moment<'_>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        match doer {
            Some(doer) if doer.is_followed(moment) => {
                self.open.begin(doer, (), call, moment);
                Ok(())
            }
            _ => self.add(&call, None, None, folder),
        }
    }

    fn add(
        &self,
        call: &Call,
        ticks: Option<u64>,
        ret: Option<i64>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let mut row = row(folder, self.table, epoch(&self.clock, call.time))?;
        row.integer(call.cpu.into());
        row.number(call.tid);
        row.number(call.pid);
        row.text(call.comm.as_deref());
        row.text(Some(call.name.as_bytes()));
        match ticks {
            Some(ticks) => row.integer(self.clock.nanoseconds(ticks)),
            None => row.null(),
        }
        row.number(ret);
        let error = ret.filter(|ret| ERRORS.contains(ret));
        let error = error.map(|ret| error_name(-ret).unwrap_or_else(|| (-ret).to_string()));
        row.text(error.as_ref().map(String::as_bytes));
        Ok(())
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lose(&mut self, schedule: &Schedule, folder: &mut Folder) -> tables::Result<()> {
        let gone = self.open.lost(schedule);
        self.add_all(gone, folder)
    }

    /// Ends the trace: adds the rows of the calls that have not returned.
    pub fn end(&mut self, folder: &mut Folder) -> tables::Result<()> {
        let rest = self.open.rest();
        self.add_all(rest, folder)
    }

    /// Adds rows of calls whose end is not known.
    fn add_all(&self, calls: Vec<Call>, folder: &mut Folder) -> tables::Result<()> {
        let mut calls = calls.iter();
        calls.try_for_each(|call| self.add(call, None, None, folder))
    }
}
