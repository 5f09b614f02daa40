// SPDX-License-Identifier: GPL-2.0

//! Counters of perf as contexts: counts of the processor or of the kernel on this CPU.

use crate::abi::schema::{Field, FieldType};
use crate::sys::perf::CounterConfig;
use kernel::prelude::*;

/// Maximum number of counters of a channel.
pub(crate) const MAX_COUNTERS: usize = 8;

/// A counter, by its index in [`ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterKind(u8);

struct Description {
    /// The name for users.
    name: &'static str,
    /// The name in a trace.
    field_name: &'static str,
    config: CounterConfig,
}

/// `enum perf_type_id` of linux/perf_event.h.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const HW_CACHE: u32 = 3;

/// `enum perf_hw_cache_id`, `_op_id` and `_op_result_id` of the same header, as parts of a config.
const L1D: u64 = 0;
const L1I: u64 = 1;
const LL: u64 = 2;
const DTLB: u64 = 3;
const ITLB: u64 = 4;
const LOADS: u64 = 0;
const STORES: u64 = 1 << 8;
const ACCESSES: u64 = 0;
const MISSES: u64 = 1 << 16;

macro_rules! counters {
    ($($name:literal $field_name:literal = $ty:ident $config:expr;)*) => {
        /// LTTng's and perf's names; the numbers are those of linux/perf_event.h.
        static ALL: &[Description] = &[$(Description {
            name: concat!("perf:cpu:", $name),
            field_name: concat!("perf_cpu_", $field_name),
            config: CounterConfig { ty: $ty, config: $config },
        }),*];
    };
}

counters! {
    "cycles" "cycles" = HARDWARE 0;
    "instructions" "instructions" = HARDWARE 1;
    "cache-references" "cache_references" = HARDWARE 2;
    "cache-misses" "cache_misses" = HARDWARE 3;
    "branches" "branches" = HARDWARE 4;
    "branch-misses" "branch_misses" = HARDWARE 5;
    "bus-cycles" "bus_cycles" = HARDWARE 6;
    "stalled-cycles-frontend" "stalled_cycles_frontend" = HARDWARE 7;
    "stalled-cycles-backend" "stalled_cycles_backend" = HARDWARE 8;
    "ref-cycles" "ref_cycles" = HARDWARE 9;
    "L1-dcache-loads" "L1_dcache_loads" = HW_CACHE L1D | LOADS | ACCESSES;
    "L1-dcache-load-misses" "L1_dcache_load_misses" = HW_CACHE L1D | LOADS | MISSES;
    "L1-dcache-stores" "L1_dcache_stores" = HW_CACHE L1D | STORES | ACCESSES;
    "L1-icache-load-misses" "L1_icache_load_misses" = HW_CACHE L1I | LOADS | MISSES;
    "LLC-loads" "LLC_loads" = HW_CACHE LL | LOADS | ACCESSES;
    "LLC-load-misses" "LLC_load_misses" = HW_CACHE LL | LOADS | MISSES;
    "LLC-stores" "LLC_stores" = HW_CACHE LL | STORES | ACCESSES;
    "LLC-store-misses" "LLC_store_misses" = HW_CACHE LL | STORES | MISSES;
    "dTLB-loads" "dTLB_loads" = HW_CACHE DTLB | LOADS | ACCESSES;
    "dTLB-load-misses" "dTLB_load_misses" = HW_CACHE DTLB | LOADS | MISSES;
    "dTLB-stores" "dTLB_stores" = HW_CACHE DTLB | STORES | ACCESSES;
    "dTLB-store-misses" "dTLB_store_misses" = HW_CACHE DTLB | STORES | MISSES;
    "iTLB-loads" "iTLB_loads" = HW_CACHE ITLB | LOADS | ACCESSES;
    "iTLB-load-misses" "iTLB_load_misses" = HW_CACHE ITLB | LOADS | MISSES;
    "cpu-clock" "cpu_clock" = SOFTWARE 0;
    "task-clock" "task_clock" = SOFTWARE 1;
    "page-faults" "page_faults" = SOFTWARE 2;
    "context-switches" "context_switches" = SOFTWARE 3;
    "cpu-migrations" "cpu_migrations" = SOFTWARE 4;
    "minor-faults" "minor_faults" = SOFTWARE 5;
    "major-faults" "major_faults" = SOFTWARE 6;
    "alignment-faults" "alignment_faults" = SOFTWARE 7;
    "emulation-faults" "emulation_faults" = SOFTWARE 8;
}

impl CounterKind {
    /// All counters, even if the machine lacks them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..ALL.len() as u8).map(Self)
    }

    /// The counter with this name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let is_called = |counter: &Description| counter.name == name || counter.field_name == name;
        let place = ALL.iter().position(is_called)?;
        Some(Self(place as u8))
    }

    fn description(self) -> Option<&'static Description> {
        ALL.get(usize::from(self.0))
    }

    /// The name for users.
    pub(super) fn name(self) -> &'static str {
        self.description().map_or("", |counter| counter.name)
    }

    /// The counter's field.
    pub(super) fn field(self) -> Option<Field<'static>> {
        Some(Field::new(
            self.description()?.field_name,
            FieldType::unsigned(64),
        ))
    }

    /// The configuration for perf.
    pub(crate) fn config(self) -> Result<CounterConfig> {
        Ok(self.description().ok_or(EINVAL)?.config)
    }
}
