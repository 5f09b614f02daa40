// SPDX-License-Identifier: GPL-2.0

//! Records that belong to no CPU. If the current CPU is not recorded, they go into the stream of another CPU.

use super::{Bytes, Probe, Recorder, Sink, WithContexts, LONGEST};
use crate::arch::preempt::NoPreempt;
use crate::context::Moment;
use crate::probe::Destination;
use crate::record::memory::{tail_alone, Capture, Captured, Tail};
use crate::sys::cpu;

/// Maximum size of a record, contexts included, for the stream of another CPU.
const ROOM: usize = 2560;

impl Probe {
    /// As [`handle_tail`](Self::handle_tail), on another CPU if the current one is not recorded. Context:
    /// process, interrupts on.
    pub(crate) fn handle_anywhere<T: Tail>(&self, fields: &T, guard: &NoPreempt) {
        match &self.sink {
            Sink::Recorder(recorder) if !recorder.entrance.records_this_cpu(guard) => {
                self.handle_elsewhere(recorder, fields, guard);
            }
            _ => self.handle_tail(fields, guard),
        }
    }

    #[inline(never)]
    fn handle_elsewhere<T: Tail>(&self, recorder: &Recorder, fields: &T, guard: &NoPreempt) {
        if !self.wants_current_task() {
            return;
        }
        let (to, now) = (self.destination(recorder), Moment::new(guard, 1));
        let mut room = Capture::<LONGEST>::new();
        let (len, write) = tail_alone(fields);
        let is_taken = match room.fill(len, write) {
            Some(fields) => {
                if !self.wants_record(fields, now) {
                    return;
                }
                let record = WithContexts {
                    contexts: &self.contexts,
                    now,
                    fields: &Bytes(fields.fields()),
                };
                record.record_elsewhere(&to)
            }
            None => write_elsewhere(&to, None),
        };
        if !is_taken {
            to.entrance.count_no_buffer(guard);
        }
    }
}

impl<T: Tail> WithContexts<'_, T> {
    /// Records the fields in the stream of a CPU that is recorded, or counts them there. The contexts are those
    /// of the current CPU. Returns whether there is an online CPU that is recorded. Context: process,
    /// interrupts on.
    #[inline(never)]
    pub(crate) fn record_elsewhere(&self, to: &Destination<'_>) -> bool {
        let mut room = Capture::<ROOM>::new();
        write_elsewhere(to, self.capture(&mut room))
    }
}

/// Records the fields in the stream of a CPU that is recorded. [`None`] is a record that is too large, and is
/// counted there. Returns whether there is an online CPU that is recorded. Context: process, interrupts on.
fn write_elsewhere(to: &Destination<'_>, record: Option<Captured<'_>>) -> bool {
    let cpus = to.entrance.cpus();
    // An isolated CPU is interrupted only if no other one is recorded.
    let recorded = |isolated| {
        cpu::possible().filter(move |&cpu| cpus.has(cpu) && cpu::is_isolated(cpu) == isolated)
    };
    recorded(false).chain(recorded(true)).any(|cpu| {
        let there = cpu::run_on(cpu, &mut (to, record), |(to, record)| match record {
            Some(record) => to.record(&Bytes(record.fields())),
            None => to.count_too_large(),
        });
        // An error means that the CPU is offline.
        there.is_ok()
    })
}
