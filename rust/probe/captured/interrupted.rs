// SPDX-License-Identifier: GPL-2.0

//! Records of interrupted code: with the call stack of that code, and not of the code that records.

use super::{Probe, Sink};
use crate::arch::preempt::NoPreempt;
use crate::context::Moment;
use crate::filter::program::Decision;
use crate::record::memory::{tail_alone, Capture, Tail};
use crate::sys::args::Registers;
use crate::sys::stack::StackStart;

impl Probe {
    /// Whether the probe can use events of `cpu`.
    pub(crate) fn takes_cpu(&self, cpu: u32) -> bool {
        match &self.sink {
            Sink::Recorder(recorder) => recorder.entrance.cpus().has(cpu),
            Sink::Trigger(_) | Sink::Map(_) => true,
        }
    }

    /// Whether the kernel is called for more than the fields: for a call stack, counters, a trigger or a map.
    #[inline(always)]
    pub(crate) fn has_calls(&self) -> bool {
        match &self.sink {
            Sink::Recorder(_) => self.contexts.has_calls(),
            Sink::Trigger(_) | Sink::Map(_) => true,
        }
    }

    /// Hands over the event if it is wanted. Its fields have at most `LONGEST` bytes. The event belongs to the
    /// current task, whose code was interrupted with these registers. The caller must hold no guard but
    /// `guard`. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn handle_interrupted<const LONGEST: usize, T: Tail>(
        &self,
        fields: &T,
        registers: &Registers,
        guard: &NoPreempt,
    ) {
        let now = Moment::new(guard, 1).with_stack(StackStart::Interrupted(registers));
        let is_wanted = match self.wants_unread(self.look.load()) {
            Decision::Accepted => true,
            Decision::Refused => false,
            Decision::Undecided => {
                let (len, write) = tail_alone(fields);
                let mut room = Capture::<LONGEST>::new();
                let captured = room.fill(len, write);
                captured.is_some_and(|captured| self.wants_record(captured, now))
            }
        };
        if is_wanted {
            self.act(fields, now);
        }
    }
}
