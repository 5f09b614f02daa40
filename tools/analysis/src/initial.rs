// SPDX-License-Identifier: GPL-2.0

//! The thread that runs on each CPU when the trace begins.
//!
//! The first switch of a CPU names the thread that it ran until then. So the first packets of each stream are read before
//! the trace is read.

use super::schedule_events::SwitchFields;
use super::{key, Catalogue};
use ctf::{Item, Merge, Wanted};
use std::collections::HashMap;
use std::path::PathBuf;
use store::Trace;

/// Maximum number of packets of a stream that are read.
const PACKETS: usize = 64;

/// A thread that runs on a CPU until its first switch.
#[derive(Clone, Debug)]
pub struct InitialThread {
    /// The thread; 0 is the idle task.
    pub tid: i64,
    /// Its name.
    pub comm: Vec<u8>,
    /// The time of the switch.
    pub until: u64,
}

/// These threads, by the numbers of the CPUs.
#[derive(Debug, Default)]
pub struct InitialThreads(HashMap<u32, InitialThread>);

impl InitialThreads {
    /// Reads the first packets of a trace. A stream that cannot be read has none.
    pub fn of(trace: &Trace) -> Self {
        let catalogue = Catalogue::new(&trace.metadata);
        let streams = trace.streams_by_name();
        Self(
            streams
                .filter_map(|files| first(trace, &catalogue, files))
                .collect(),
        )
    }

    /// Returns the thread of a CPU, once, if its switch is not before `time`.
    pub fn take(&mut self, cpu: u32, time: u64) -> Option<InitialThread> {
        self.0.remove(&cpu).filter(|thread| thread.until >= time)
    }
}

/// Finds the first switch of a stream after its last loss. Returns `None` if another loss precedes the switch.
fn first(
    trace: &Trace,
    catalogue: &Catalogue<'_>,
    files: &[PathBuf],
) -> Option<(u32, InitialThread)> {
    let switch = catalogue.event("sched_switch")?;
    let fields = SwitchFields::of(switch)?;
    let merge = Merge::new(&trace.metadata, [files]).ok()?;
    let mut merge = merge.only(|layout| match key(layout) == key(switch) {
        true => Wanted::Each,
        false => Wanted::Never,
    });
    let (mut packets, mut cpu, mut end, mut is_whole) = (0, 0, 0, false);
    loop {
        let (_, item) = merge.next_item().ok()??;
        match item {
            Item::Packet(packet) => {
                packets += 1;
                let is_lossy =
                    packet.packets_lost > 0 || packet.events_lost > 0 || packet.after_damage;
                if packet.at.header.stream_id != switch.stream_id
                    || packets > PACKETS
                    || packets > 1 && is_lossy
                {
                    return None;
                }
                cpu = packet.at.header.cpu_id;
                end = packet.at.header.timestamp_end;
                is_whole |= !is_lossy;
            }
            Item::Whole { .. } => is_whole = true,
            Item::Event(event) if is_whole => {
                // A damaged packet may have events after its end.
                let until = Some(event.timestamp).filter(|time| *time <= end)?;
                let read = fields.read(&event)?;
                let (tid, comm) = (read.prev_tid, read.prev_comm.to_vec());
                return Some((cpu, InitialThread { tid, comm, until }));
            }
            Item::Event(_) => {}
            Item::Damaged { .. } | Item::End { .. } => return None,
        }
    }
}
