// SPDX-License-Identifier: GPL-2.0

//! What a probe has when its tracepoint fires: all it needs, behind one pointer.

use crate::abi::header::Layout;
use crate::channel::buffer::Entered;
use crate::channel::header::Label;
use crate::channel::Channel;
use kernel::sync::Arc;

/// An event that is enabled in a trace; the data of its tracepoint's handler.
pub(crate) struct Probe {
    channel: Arc<Channel>,
    /// What goes into the header of its records.
    pub(crate) label: Label,
}

impl Probe {
    /// Makes the probe of event `id`.
    pub(crate) fn new(channel: Arc<Channel>, id: u32) -> Self {
        let label = Label::in_layout(id, channel.setup().layout);
        Self { channel, label }
    }

    /// The event.
    pub(crate) fn id(&self) -> u32 {
        self.label.id
    }

    /// The event headers of its trace.
    #[inline(always)]
    pub(crate) fn layout(&self) -> Layout {
        self.channel.setup().layout
    }

    /// Goes to this CPU's buffer, see [`Channel::enter`].
    #[inline(always)]
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        self.channel.enter()
    }
}
