// SPDX-License-Identifier: GPL-2.0

//! Activities of threads: `slices` on CPUs, `wakeups` until a thread ran, `offcpu` with the kind of wait.

use super::made::{Made, CPU, THREAD};
use analysis::schedule::{Schedule, Span};
use analysis::schedule_events::Activity;
use analysis::schedule_events::Left;
use analysis::{key, Catalogue, EventKey};
use std::collections::HashSet;
use tables::{ColumnKind, Folder};

/// Duration: the last common column of the three tables.
const DURATION: (&str, ColumnKind) = ("duration_ns", ColumnKind::LONG);

/// The tables.
pub struct Threads {
    slices: Option<Made>,
    wakeups: Option<Made>,
    offcpu: Option<Made>,
}

impl Threads {
    /// For a trace, if the events of these tables are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let has = |name| {
            let layout = catalogue.event(name);
            layout.is_some_and(|layout| chosen.contains(&key(layout)))
        };
        if !has("sched_switch") {
            return Ok(None);
        }
        let clock = catalogue.metadata().clock;
        let mut table = |name, last: Option<(&str, ColumnKind)>| {
            let columns = [CPU].into_iter().chain(THREAD);
            let columns = columns.chain([DURATION]).chain(last);
            Made::new(name, columns, clock, folder, begin)
        };
        let is_woken = has("sched_waking") || has("sched_wakeup");
        Ok(Some(Self {
            slices: table("slices", Some(("is_complete", ColumnKind::Flag)))?,
            wakeups: match is_woken {
                true => table("wakeups", None)?,
                false => None,
            },
            offcpu: table("offcpu", Some(("state", ColumnKind::Text)))?,
        }))
    }

    /// Takes an activity of a thread. Only slices may be incomplete: a row has their length as far as the trace
    /// has them.
    pub fn span(
        &self,
        span: &Span,
        schedule: &Schedule,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let (table, state) = match span.state {
            Activity::Running if span.tid != 0 => (&self.slices, None),
            _ if !span.is_complete => return Ok(()),
            Activity::Running => return Ok(()),
            Activity::Runnable { woken: true } if span.cpu.is_none() => return Ok(()),
            Activity::Runnable { woken: true } => (&self.wakeups, None),
            Activity::Runnable { woken: false } => (&self.offcpu, Some("preempted")),
            Activity::Blocked(left) => (&self.offcpu, Some(Left::NAMES[left.way()].0)),
        };
        let Some(table) = table else {
            return Ok(());
        };
        let mut row = table.row(folder, span.from)?;
        row.number(span.cpu.map(|cpu| schedule.number(cpu).into()));
        row.integer(span.tid as u64);
        row.number(schedule.process(span.tid));
        row.text(schedule.comm(span.tid));
        row.integer(table.nanoseconds(span.ticks()));
        match state {
            Some(state) => row.text(Some(state.as_bytes())),
            None => row.integer(span.is_complete.into()),
        }
        Ok(())
    }
}
