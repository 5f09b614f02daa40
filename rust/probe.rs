// SPDX-License-Identifier: GPL-2.0

//! What a probe has when its tracepoint fires: all it needs, behind one pointer.

use crate::abi::header::Layout;
use crate::channel::Channel;
use crate::channel::{Entered, Gates, Waiting};
use crate::record::header::Label;
use kernel::sync::Arc;

/// An event that is enabled in a trace; the data of its tracepoint's handler.
pub(crate) struct Probe {
    /// Those of `channel`, nearer.
    buffers: Gates,
    /// What goes into the header of its records.
    pub(crate) label: Label,
    channel: Arc<Channel>,
    event: u32,
}

impl Probe {
    /// Makes the probe of `event`, an id, which has this number in the trace.
    pub(crate) fn new(channel: Arc<Channel>, event: u32, number: u32) -> Self {
        Self {
            buffers: channel.buffers().clone(),
            label: Label::in_layout(number, channel.setup().layout),
            channel,
            event,
        }
    }

    /// Whether it records into `channel`.
    pub(crate) fn is_of(&self, channel: &Channel) -> bool {
        core::ptr::eq(&*self.channel, channel)
    }

    /// The event's id.
    pub(crate) fn event(&self) -> u32 {
        self.event
    }

    /// The event headers of its trace.
    #[inline(always)]
    pub(crate) fn layout(&self) -> Layout {
        self.channel.setup().layout
    }

    /// Goes to this CPU's buffer. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entered<'_>, Waiting<'_>> {
        self.buffers.enter()
    }

    /// See [`Channel::admit`].
    #[inline(always)]
    pub(crate) fn admit<'a>(&self, waiting: Waiting<'a>, least: u64) -> Option<Entered<'a>> {
        self.channel.admit(waiting, least)
    }
}
