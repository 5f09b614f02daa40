// SPDX-License-Identifier: GPL-2.0

//! Maps: sums by key, which probes update instead of recording their event.

mod durations;
mod program;
mod quick;
mod stacks;
mod tables;

pub(crate) use durations::{Durations, Kept, Matched};
pub(crate) use program::{KeptKeys, KeyPart, MapProgram, PartReason, WrongPart};
pub(crate) use quick::words_of;
pub(crate) use stacks::KeyStacks;
pub(crate) use tables::{MissedUpdate, Sums};

use super::captured::LONGEST;
use super::filter::{Filter, Now};
use crate::arch::preempt::NoPreempt;
use crate::channel::Ways;
use crate::context::user_stack::{UserStacks, UserStacksUse};
use crate::context::Moment;
use crate::input::map::MapDefinition;
use crate::map::table::MapShape;
use crate::record::memory::{tail_alone, Capture, Tail};
use crate::sys::cpu::NoHotplug;
use crate::sys::errno::enodata;
use crate::sys::hotplug;
use crate::sys::rcu::RcuArc;
use crate::sys::tracepoint::Rank;
use kernel::prelude::*;
use kernel::sync::Arc;
use quick::{Quick, Single};
use tables::{CpuTable, Tables};

/// A map of a session: the tables that its probes update.
pub(crate) struct Map {
    shape: MapShape,
    /// The call stacks that are keys.
    stacks: KeyStacks,
    /// Replaced when the map is cleared.
    tables: RcuArc<Tables>,
    /// The begins without an end so far, if the map measures durations.
    durations: Option<Durations>,
    /// The gates that stop each probe of the map.
    closed: Ways,
    /// If the user's call stack is a key.
    user_stacks: Option<UserStacksUse>,
}

impl Map {
    /// Makes an empty map for the CPUs that are online, which measures these durations. `stacks`: the call stacks that
    /// are keys; the user's are taken by `user_stacks`. A [watch](hotplug::HotplugWatch) gives tables to CPUs that come
    /// online. `ENOMEM`: there is not enough memory. May sleep.
    pub(crate) fn new(
        shape: MapShape,
        durations: Option<Durations>,
        stacks: KeyStacks,
        user_stacks: &Arc<UserStacks>,
    ) -> Result<Arc<Self>> {
        let user_stacks = match stacks.user {
            true => Some(user_stacks.begin_use()?),
            false => None,
        };
        let map = Self {
            shape,
            stacks,
            tables: RcuArc::new(),
            durations,
            closed: Ways::closed().ok_or(ENOMEM)?,
            user_stacks,
        };
        map.clear()?;
        Ok(Arc::new(map, GFP_KERNEL)?)
    }

    /// Number of bytes of the tables of such a map, for the CPUs that are online.
    pub(crate) fn bytes(shape: &MapShape, definition: &MapDefinition<'_>, kept: Kept) -> u64 {
        let cpus = NoHotplug::new().online().count();
        let tables = Tables::bytes(shape, kept.stacks, cpus);
        tables.saturating_add(Durations::bytes(definition, kept)) as u64
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

    /// Removes all entries, and their call stacks. An update at the same time is in the entries before or after that.
    /// `ENOMEM`: nothing has changed. May sleep.
    pub(crate) fn clear(&self) -> Result {
        // A CPU that comes online later gets a table by the watch.
        let cpus = NoHotplug::new();
        let tables = Tables::new(self.shape, self.stacks, &cpus)?;
        self.tables.replace(Some(tables));
        Ok(())
    }

    /// Adds up the tables of all CPUs. Errors: `ENOMEM`, `EINTR`. May sleep.
    pub(crate) fn sums(&self) -> Result<Sums> {
        let tables = self.tables.get_arc().ok_or_else(enodata)?;
        tables.sums(&self.shape)
    }
}

impl hotplug::PerCpuState for Map {
    fn prepare(&self, cpu: u32) {
        let tables = self.tables.get_arc();
        if !tables.is_some_and(|tables| tables.equip(cpu, &self.shape)) {
            pr_warn!("no memory for a map's table of CPU {cpu}: its events are counted as lacking; a smaller size helps\n");
        }
    }

    fn online(&self, cpu: u32) -> Result {
        // The CPU may have come online before the watch began. This is not the caller of `new`, so it is not charged.
        let tables = self.tables.get_arc();
        let _ = tables.is_some_and(|tables| tables.equip(cpu, &self.shape));
        Ok(())
    }

    fn offline(&self, _: u32) {}
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
    /// The event begins a duration, and keeps these keys for its end.
    Begin(Matched, KeptKeys),
}

impl MapAtEvent {
    /// Makes it for an event that has this role.
    pub(crate) fn new(map: Arc<Map>, role: Role, filter: Option<Arc<Filter>>) -> Self {
        // A call stack is taken with the record.
        let quick = match map.stacks.any() {
            true => None,
            false => Quick::of(&role),
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

    /// The gates that stop the probe.
    pub(super) fn closed(&self) -> &Ways {
        &self.map.closed
    }

    /// The filter for the event's records.
    pub(super) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref()
    }

    /// Whether both are of the same map, and have the same role.
    pub(super) fn shares_map(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.map, &other.map) && self.rank() == other.rank()
    }

    /// Position of the event's part in the map among the probes of the event.
    pub(super) fn rank(&self) -> Rank {
        match self.role {
            Role::Update { .. } => Rank::End,
            Role::Begin(..) => Rank::Begin,
        }
    }

    /// Updates the map by a wanted event with these fields, or notes the begin of a duration. Any context, NMI
    /// included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn update(&self, record: &[u8], now: Moment<'_>) {
        let Some(tables) = self.map.tables.get(now.guard) else {
            return;
        };
        let (table, stacks) = (tables.this_cpu(now.guard), tables.stacks());
        match &self.role {
            Role::Update { event, program } => {
                table.update(&self.map, stacks, *event, program, record, &Now(now));
            }
            Role::Begin(matched, keys) => {
                table.begin(&self.map, stacks, (matched, keys), record, &Now(now));
            }
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
