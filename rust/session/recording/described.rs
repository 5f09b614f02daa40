// SPDX-License-Identifier: GPL-2.0

//! The structure of the records of a trace's channel, as its metadata describes it.

use crate::abi::header::Layout;
use crate::abi::records::Records;
use crate::abi::schema::Field;
use crate::probe::builtin::Builtin;
use crate::session::{EventNumbers, TraceChannel};

/// The description of a channel's records.
pub(in crate::session) struct Described<'a> {
    pub(in crate::session) channel: &'a TraceChannel,
    /// Read after the packet was taken: an event gets its number before it is recorded.
    pub(in crate::session) numbers: &'a EventNumbers,
}

impl Described<'_> {
    /// The name of the event that has this number in the stream.
    pub(in crate::session) fn name(&self, number: u32) -> Option<&str> {
        match builtin(number) {
            Some(builtin) => Some(builtin.name()),
            None => Some(self.numbers.event(number)?.trace_name()),
        }
    }
}

impl Records for Described<'_> {
    fn layout(&self) -> Layout {
        self.channel.layout
    }

    // Not inlined, because it needs much stack.
    #[inline(never)]
    fn context(&self, place: usize) -> Option<Field<'static>> {
        self.channel.contexts.fields().nth(place)
    }

    fn has(&self, number: u32) -> bool {
        self.name(number).is_some()
    }

    #[inline(never)]
    fn field(&self, number: u32, place: usize) -> Option<Field<'_>> {
        match builtin(number) {
            Some(builtin) => builtin.fields().get(place).copied(),
            None => self.numbers.event(number)?.field(place),
        }
    }
}

fn builtin(number: u32) -> Option<Builtin> {
    Builtin::ALL.into_iter().find(|known| known.id() == number)
}
