// SPDX-License-Identifier: GPL-2.0

//! Who used the CPUs: time between the sched_switch events of a CPU.

use serde::Serialize;
use std::collections::HashMap;
use trace::ctf::{Clock, Event, EventLayout, Metadata, Value};

/// A task and its CPU time.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Thread id.
    pub tid: i64,
    /// Its name while it ran.
    pub comm: String,
    /// On all CPUs.
    pub cpu_time_ns: u64,
}

/// A CPU's time, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In the idle task.
    pub idle: u64,
    /// In any other.
    pub busy: u64,
}

/// Gathers CPU time over all streams, which come one after the other. Where several channels have
/// the event, the first one's is taken: time is not counted twice.
#[derive(Debug)]
pub struct BusyTasks {
    /// The event and its fields, if the trace knows it.
    switch: Option<Switch>,
    clock: Clock,
    /// Ticks by thread id and name.
    ticks: HashMap<(i64, Vec<u8>), u64>,
    /// The present stream: since when the present task runs; none where that is unknown.
    since: Option<u64>,
    /// The task that runs, once a switch has told.
    running: Option<(i64, Vec<u8>)>,
    times: Times,
}

/// Where sched_switch has what.
#[derive(Clone, Copy, Debug)]
struct Switch {
    stream_id: u32,
    id: u32,
    prev: (usize, usize),
    next: (usize, usize),
}

impl BusyTasks {
    /// For a trace with this description.
    pub fn new(metadata: &Metadata) -> Self {
        let mut events = metadata
            .streams
            .iter()
            .flat_map(|class| class.events.values());
        let switch = events.find(|event| event.name == "sched_switch");
        Self {
            switch: switch.and_then(|event| {
                Some(Switch {
                    stream_id: event.stream_id,
                    id: event.id,
                    prev: (event.field("prev_tid")?, event.field("prev_comm")?),
                    next: (event.field("next_tid")?, event.field("next_comm")?),
                })
            }),
            clock: metadata.clock,
            ticks: HashMap::new(),
            since: None,
            running: None,
            times: Times::default(),
        }
    }

    /// A stream begins.
    pub fn begin(&mut self, at: u64) {
        self.since = Some(at);
        self.running = None;
    }

    /// Something is missing before `at`: a switch may be among it.
    pub fn gap(&mut self, at: u64) {
        self.begin(at);
    }

    /// The next event of the stream.
    pub fn event(&mut self, event: &Event<'_>) {
        let EventLayout { stream_id, id, .. } = event.layout;
        let is_switch = |switch: &Switch| (&switch.stream_id, &switch.id) == (stream_id, id);
        let Some(switch) = self.switch.filter(is_switch) else {
            return;
        };
        let (Some(prev), Some(next)) = (task(event, switch.prev), task(event, switch.next)) else {
            return;
        };
        // Another task than the one switched to: a switch was lost.
        let known = self
            .running
            .as_ref()
            .is_none_or(|running| running.0 == prev.0);
        if let Some(since) = self.since.filter(|_| known) {
            self.charge(
                (prev.0, prev.1.to_vec()),
                event.timestamp.saturating_sub(since),
            );
        }
        self.since = Some(event.timestamp);
        self.running = Some((next.0, next.1.to_vec()));
    }

    /// The stream ends.
    pub fn end(&mut self, at: u64) -> Times {
        if let (Some(since), Some(running)) = (self.since.take(), self.running.take()) {
            self.charge(running, at.saturating_sub(since));
        }
        std::mem::take(&mut self.times)
    }

    /// Every task but the idle ones, the busiest first.
    pub fn sorted(&self) -> Vec<Task> {
        let mut tasks: Vec<_> = self
            .ticks
            .iter()
            .map(|((tid, comm), &ticks)| Task {
                tid: *tid,
                comm: String::from_utf8_lossy(comm).into_owned(),
                cpu_time_ns: self.clock.nanoseconds(ticks),
            })
            .collect();
        tasks.sort_by(|a, b| {
            b.cpu_time_ns
                .cmp(&a.cpu_time_ns)
                .then_with(|| (a.tid, &a.comm).cmp(&(b.tid, &b.comm)))
        });
        tasks
    }

    fn charge(&mut self, task: (i64, Vec<u8>), ticks: u64) {
        if task.0 == 0 {
            self.times.idle = self.times.idle.saturating_add(ticks);
        } else {
            self.times.busy = self.times.busy.saturating_add(ticks);
            let sum = self.ticks.entry(task).or_default();
            *sum = sum.saturating_add(ticks);
        }
    }
}

/// A task in an event: its thread id and its name.
fn task<'a>(event: &Event<'a>, (tid, comm): (usize, usize)) -> Option<(i64, &'a [u8])> {
    let tid = match event.value(tid)? {
        Value::Signed(tid) => tid,
        Value::Unsigned(tid) => i64::try_from(tid).ok()?,
        Value::Text(_) | Value::Integers(_) => return None,
    };
    match event.value(comm)? {
        Value::Text(comm) => Some((tid, comm)),
        _ => None,
    }
}
