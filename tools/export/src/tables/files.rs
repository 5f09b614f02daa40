// SPDX-License-Identifier: GPL-2.0

//! `files`: a row for each process and file that it read from or wrote to, as in `rtrace report --io`.

use super::made::{Made, THREAD};
use crate::format::Now;
use analysis::io::files::Files;
use analysis::io::FileSort;
use analysis::schedule::Schedule;
use analysis::uring::Uring;
use analysis::{key, Catalogue, EventKey};
use ctf::Event;
use std::collections::{HashMap, HashSet};
use tables::{ColumnKind, Folder};

/// Columns after the time and the thread.
const COLUMNS: [(&str, ColumnKind); 9] = [
    ("path", ColumnKind::Text),
    ("fd", ColumnKind::INT),
    ("reads", ColumnKind::LONG),
    ("read_bytes", ColumnKind::LONG),
    ("writes", ColumnKind::LONG),
    ("written_bytes", ColumnKind::LONG),
    ("errors", ColumnKind::LONG),
    ("duration_ns", ColumnKind::LONG),
    ("max_ns", ColumnKind::LONG),
];

/// The table.
pub struct FileTable {
    table: Made,
    files: Files,
    /// The numbers of the events that the files are read from.
    places: HashMap<EventKey, usize>,
    uring: Option<Uring>,
}

impl FileTable {
    /// For a trace, if calls or requests that read or write are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let Some(files) = Files::new(catalogue) else {
            return Ok(None);
        };
        let places: HashMap<_, _> = files.events().zip(0..).collect();
        if !places.keys().any(|key| chosen.contains(key)) {
            return Ok(None);
        }
        let columns = THREAD.into_iter().chain(COLUMNS);
        let clock = catalogue.metadata().clock;
        let table = Made::new("files", columns, clock, folder, begin)?;
        Ok(table.map(|table| Self {
            table,
            files,
            places,
            uring: Uring::new(catalogue),
        }))
    }

    /// Takes an event.
    pub fn event(&mut self, event: &Event<'_>, now: &Now<'_>) {
        if let Some(switch) = &now.switch {
            self.files.switch(switch, &now.moment);
        }
        if let Some(which) = self.places.get(&key(event.layout)) {
            self.files.event(*which, event, &now.moment);
            return;
        }
        let files = &mut self.files;
        let Some(uring) = &mut self.uring else {
            return;
        };
        let Some(which) = uring.place(key(event.layout)) else {
            return;
        };
        let time = now.moment.time;
        let seen = uring.event(which, event, &now.moment, |owner, fd| {
            files.file(owner, fd, time)
        });
        if let Some(posted) = &seen.posted {
            files.posted(posted, time);
        }
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lose(&mut self, schedule: &Schedule) {
        self.files.lost(schedule);
        self.uring.as_mut().map(Uring::rest);
    }

    /// Ends the trace: adds all rows, in the order of their first call.
    pub fn end(self, folder: &mut Folder) -> tables::Result<()> {
        let mut uses = self.files.found(FileSort::Time).uses;
        uses.sort_by_key(|found| found.since);
        for found in uses {
            let mut row = self.table.row(folder, found.since)?;
            row.number(found.tid);
            row.number(found.pid);
            row.text(found.comm.as_ref().map(String::as_bytes));
            row.text(found.file.as_ref().map(String::as_bytes));
            row.number(found.fd.map(i64::from));
            for number in [
                found.reads,
                found.read_bytes,
                found.writes,
                found.written_bytes,
                found.errors,
                found.total_ns,
                found.max_ns,
            ] {
                row.integer(number);
            }
        }
        Ok(())
    }
}
