// SPDX-License-Identifier: GPL-2.0

//! What the records of a trace's channel consist of, as its metadata describes them.

use super::{EventNumbers, TraceChannel};
use crate::abi::header::Layout;
use crate::abi::records::Records;
use crate::abi::schema::Field;
use crate::probe::builtin::Builtin;

/// What the metadata describes.
pub(super) struct Described<'a> {
    pub(super) channel: &'a TraceChannel,
    /// As they were when the packet had been taken, or later: an event has its number before it is
    /// recorded.
    pub(super) numbers: &'a EventNumbers,
}

impl Described<'_> {
    /// The name of the event that has this number in the stream.
    pub(super) fn name(&self, number: u32) -> Option<&str> {
        match builtin(number) {
            Some(builtin) => Some(builtin.name()),
            None => Some(self.numbers.event(number)?.name()),
        }
    }
}

impl Records for Described<'_> {
    fn layout(&self) -> Layout {
        self.channel.layout
    }

    // Not part of whoever walks: it needs much stack.
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
