// SPDX-License-Identifier: GPL-2.0

//! Maps: sums by key, which probes update instead of recording their event.

mod durations;
mod program;
mod quick;
mod stacks;
mod tables;

pub(crate) use durations::{Durations, Matched};
pub(crate) use program::{KeyPart, MapProgram, PartReason, WrongPart};
pub(crate) use quick::words_of;
pub(crate) use tables::{MissedUpdate, Sums};

use super::captured::LONGEST;
use super::filter::{Filter, Now};
use crate::arch::preempt::NoPreempt;
use crate::context::Moment;
use crate::map::table::MapShape;
use crate::record::memory::{tail_alone, Capture, Tail};
use crate::sys::errno::enodata;
use crate::sys::rcu::RcuArc;
use crate::sys::tracepoint::Rank;
use kernel::prelude::*;
use kernel::sync::Arc;
use quick::{Quick, Single};
use stacks::MapStacks;
use tables::{CpuTable, Tables};

/// A map of a session: the tables that its probes update.
pub(crate) struct Map {
    shape: MapShape,
    /// Replaced when the map is cleared.
    tables: RcuArc<Tables>,
    /// The begins without an end so far, if the map measures durations.
    durations: Option<Durations>,
    /// The call stacks that are keys.
    stacks: Option<MapStacks>,
}

impl Map {
    /// Makes an empty map, which measures these durations. `has_stack`: a key is a call stack. May sleep.
    pub(crate) fn new(
        shape: MapShape,
        durations: Option<Durations>,
        has_stack: bool,
    ) -> Result<Arc<Self>> {
        let stacks = match has_stack {
            true => Some(MapStacks::new(shape.slots())?),
            false => None,
        };
        let tables = RcuArc::new();
        tables.replace(Some(Tables::new(shape)?));
        let map = Self {
            shape,
            tables,
            durations,
            stacks,
        };
        Ok(Arc::new(map, GFP_KERNEL)?)
    }

    /// The table of the current CPU.
    #[inline(always)]
    fn table<'a>(&'a self, guard: &'a NoPreempt) -> Option<&'a CpuTable> {
        Some(self.tables.get(guard)?.this_cpu(guard))
    }

    /// The form of its tables.
    pub(crate) fn shape(&self) -> &MapShape {
        &self.shape
    }

    /// The addresses of the call stack with a name, the innermost first.
    pub(crate) fn stack(&self, name: u64) -> impl Iterator<Item = u64> + use<'_> {
        let found = self.stacks.as_ref().and_then(|stacks| stacks.find(name));
        found.into_iter().flatten()
    }

    /// Removes all entries. An update at the same time is in the entries before or after that. May sleep.
    pub(crate) fn clear(&self) -> Result {
        self.tables.replace(Some(Tables::new(self.shape)?));
        Ok(())
    }

    /// Adds up the tables of all CPUs. May sleep.
    pub(crate) fn sums(&self) -> Result<Sums> {
        let tables = self.tables.get_arc().ok_or_else(enodata)?;
        tables.sums(&self.shape)
    }
}

/// A map at one of its events: the data of a probe.
pub(crate) struct MapAtEvent {
    map: Arc<Map>,
    role: Role,
    filter: Option<Arc<Filter>>,
    /// The update without a record, if the role needs none.
    quick: Option<Quick>,
    /// The same, if it needs one value only.
    single: Single,
}

/// The part of an event in a map.
pub(crate) enum Role {
    /// The event updates the map.
    Update {
        /// Place of the event among the map's events.
        event: u64,
        program: Arc<MapProgram>,
    },
    /// The event begins a duration.
    Begin(Matched),
}

impl MapAtEvent {
    /// Makes it for an event that has this role.
    pub(crate) fn new(map: Arc<Map>, role: Role, filter: Option<Arc<Filter>>) -> Self {
        // A call stack is taken with the record.
        let quick = match map.stacks {
            Some(_) => None,
            None => Quick::of(&role),
        };
        let single = Single::of(quick.as_ref());
        Self {
            map,
            role,
            filter,
            quick,
            single,
        }
    }

    /// The filter for the event's records.
    pub(super) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref()
    }

    /// Whether both are of the same map, and have the same role.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.map, &other.map) && self.rank() == other.rank()
    }

    /// Position of the event's part in the map among the probes of the event.
    pub(super) fn rank(&self) -> Rank {
        match self.role {
            Role::Update { .. } => Rank::End,
            Role::Begin(_) => Rank::Begin,
        }
    }

    /// Updates the map by a wanted event with these fields, or notes the begin of a duration. Any context, NMI
    /// included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn update(&self, record: &[u8], now: Moment<'_>) {
        let Some(table) = self.map.table(now.guard) else {
            return;
        };
        match &self.role {
            Role::Update { event, program } => {
                table.update(&self.map, *event, program, record, &Now(now));
            }
            Role::Begin(matched) => table.begin(&self.map, matched, record, &Now(now)),
        }
    }

    /// As [`update`](Self::update), for fields that are not captured.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn update_tail<T: Tail>(&self, fields: &T, now: Moment<'_>) {
        if self.update_at_once(|_| None) {
            return;
        }
        let (len, write) = tail_alone(fields);
        match Capture::<LONGEST>::new().fill(len, write) {
            Some(fields) => self.update(fields.fields(), now),
            None => self.count_lacking(now.guard),
        }
    }

    /// Counts a record that is too long to look at. Any context, NMI included, of the current CPU.
    pub(super) fn count_lacking(&self, guard: &NoPreempt) {
        if let Some(table) = self.map.table(guard) {
            table.count(MissedUpdate::Lacking);
        }
    }
}
