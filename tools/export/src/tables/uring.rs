// SPDX-License-Identifier: GPL-2.0

//! `io_uring`: a row for each request of io_uring.
//!
//! If the result of a request is not known, the row has neither duration nor result. A result whose request is not known
//! has no row.

use super::made::{Made, CPU, THREAD};
use super::paths::Paths;
use crate::format::Now;
use analysis::schedule::Schedule;
use analysis::uring::{Posted, Request, RequestFile};
use analysis::{Catalogue, EventKey};
use ctf::Event;
use decode::error_name;
use std::collections::HashSet;
use tables::{ColumnKind, Folder};

/// Columns after the place and the thread.
const COLUMNS: [(&str, ColumnKind); 11] = [
    ("name", ColumnKind::Text),
    ("duration_ns", ColumnKind::LONG),
    ("ret", ColumnKind::LONG),
    ("error", ColumnKind::Text),
    ("path", ColumnKind::Text),
    ("fd", ColumnKind::INT),
    ("is_fixed", ColumnKind::Flag),
    ("user_data", USER_DATA),
    ("flags", ColumnKind::LONG),
    ("is_by_worker", ColumnKind::Flag),
    ("done_tid", ColumnKind::INT),
];

/// A number that a program chooses.
const USER_DATA: ColumnKind = ColumnKind::Integer {
    bits: 64,
    signed: false,
};

/// The table.
pub struct UringTable {
    table: Made,
    paths: Paths,
}

impl UringTable {
    /// For a trace, if it has requests and some of their events are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let paths = Paths::new(catalogue, chosen);
        if !paths.has_requests(chosen) {
            return Ok(None);
        }
        let columns = [CPU].into_iter().chain(THREAD).chain(COLUMNS);
        let clock = catalogue.metadata().clock;
        let table = Made::new("io_uring", columns, clock, folder, begin)?;
        Ok(table.map(|table| Self { table, paths }))
    }

    /// Takes an event, and adds a row if a request ends with it.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        now: &Now<'_>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let seen = self.paths.event(event, &now.moment);
        if let Some(request) = &seen.cut {
            self.add(request, None, folder)?;
        }
        let Some(posted) = &seen.posted else {
            return Ok(());
        };
        let Some(request) = &posted.request else {
            return Ok(());
        };
        let end = (posted, now.moment.time, now.moment.tid());
        self.add(request, Some(end), folder)
    }

    /// Adds a row. `end` is the result, its time, and the thread that put it into the ring.
    fn add(
        &self,
        request: &Request,
        end: Option<(&Posted, u64, Option<i64>)>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let mut row = self.table.row(folder, request.since)?;
        row.integer(request.cpu.into());
        row.number(request.tid);
        row.number(request.owner.pid());
        row.text(request.comm.as_deref());
        row.text(Some(request.operation.as_bytes()));
        match end {
            Some((_, time, _)) => {
                let ticks = time.saturating_sub(request.since);
                row.integer(self.table.nanoseconds(ticks));
            }
            None => row.null(),
        }
        let ret = end.map(|(posted, ..)| posted.res);
        row.number(ret);
        let error = ret.filter(|ret| *ret < 0);
        let error = error.map(|ret| error_name(-ret).unwrap_or_else(|| (-ret).to_string()));
        row.text(error.as_ref().map(String::as_bytes));
        let (fd, path) = match &request.file {
            RequestFile::Descriptor(fd, path) => (Some(i64::from(*fd)), path.as_ref()),
            RequestFile::None | RequestFile::Fixed => (None, None),
        };
        row.text(path.map(|path| path.as_bytes()));
        row.number(fd);
        row.integer((request.file == RequestFile::Fixed).into());
        row.integer(request.user_data);
        row.integer(request.flags & 0xff);
        row.integer(request.is_by_worker.into());
        row.number(end.and_then(|(.., tid)| tid));
        Ok(())
    }

    /// Takes the time from which events of a CPU may be missing.
    pub fn lose(&mut self, schedule: &Schedule, folder: &mut Folder) -> tables::Result<()> {
        let open = self.paths.lost(schedule);
        self.add_all(&open, folder)
    }

    /// Ends the trace: adds the rows of the requests without a result.
    pub fn end(mut self, folder: &mut Folder) -> tables::Result<()> {
        let open = self.paths.open_requests();
        self.add_all(&open, folder)
    }

    fn add_all(&self, open: &[Request], folder: &mut Folder) -> tables::Result<()> {
        let mut open = open.iter();
        open.try_for_each(|request| self.add(request, None, folder))
    }
}
