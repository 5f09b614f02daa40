// SPDX-License-Identifier: GPL-2.0

//! Hides addresses of the kernel from readers who may not see them.

use super::described::Described;
use crate::abi::addresses::blank;
use crate::channel::reader::Censor;
use crate::session::TraceChannel;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Blanks the addresses in the packets of a trace's channel.
pub(crate) struct HiddenAddresses(pub(crate) Arc<TraceChannel>);

impl Censor for HiddenAddresses {
    fn censor(&self, content: &mut [u8]) -> Result {
        let HiddenAddresses(channel) = self;
        // Read after the packet was taken: an event gets its number before it is recorded.
        let numbers = channel.numbers();
        let records = Described {
            channel,
            numbers: &numbers,
        };
        blank(content, &records).map_err(|_| EIO)
    }
}
