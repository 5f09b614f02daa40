// SPDX-License-Identifier: GPL-2.0

//! Addresses of the kernel, hidden from readers who may not see them.

use super::{Numbers, TraceChannel};
use crate::abi::addresses::{blank, Records};
use crate::abi::header::Layout;
use crate::abi::schema::Field;
use crate::channel::reader::Censor;
use crate::event::builtin::Builtin;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Blanks them in the packets of a trace's channel.
pub(crate) struct HiddenAddresses(pub(crate) Arc<TraceChannel>);

impl Censor for HiddenAddresses {
    fn censor(&self, content: &mut [u8]) -> Result {
        let HiddenAddresses(channel) = self;
        // After the packet was taken: an event has its number before it is recorded.
        let numbers = channel.numbers();
        let records = Described { channel, numbers };
        blank(content, &records).ok_or(EIO)
    }
}

/// What the metadata describes.
struct Described<'a> {
    channel: &'a TraceChannel,
    numbers: Arc<Numbers>,
}

impl Records for Described<'_> {
    fn layout(&self) -> Layout {
        self.channel.layout
    }

    fn contexts(&self) -> impl Iterator<Item = Field<'static>> + Clone + '_ {
        self.channel.contexts.fields()
    }

    fn event(&self, number: u32) -> Option<impl Iterator<Item = Field<'_>> + Clone + '_> {
        let builtin = Builtin::ALL.into_iter().find(|known| known.id() == number);
        let event = match builtin {
            Some(_) => None,
            None => Some(self.numbers.event(number)?),
        };
        let builtin = builtin.into_iter().flat_map(Builtin::fields);
        let builtin = builtin.map(|field| Field { ..*field });
        let event = event.into_iter().flat_map(|event| event.fields());
        Some(Iterator::chain(builtin, event))
    }
}
