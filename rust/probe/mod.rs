// SPDX-License-Identifier: GPL-2.0

//! What a probe has when its tracepoint fires: all it needs, behind one pointer.

pub(crate) mod builtin;
pub(crate) mod captured;
pub(crate) mod filter;
pub(crate) mod handlers;
pub(crate) mod recorders;
pub(crate) mod tasks;
pub(crate) mod trigger;

use crate::abi::header::Layout;
use crate::channel::clock::ClockKind;
use crate::channel::entrance::Entrance;
use crate::channel::{Begun, BegunOpen, Buffer, Channel, Entered, Waiting, Ways};
use crate::record::clock::AnyClock;
use crate::record::format::Format;
use crate::record::header::{Compact, EventHeader, Label, Large};
use crate::record::memory::{tail_alone, RecordWriter, Tail};
use crate::ring::lost::Lost;
use kernel::sync::Arc;

/// An event that is enabled in a trace; the data of its tracepoint's handler.
pub(crate) struct Probe {
    /// Those of `channel`, nearer.
    buffers: Ways,
    /// What goes into the header of its records.
    pub(crate) label: Label,
    channel: Arc<Channel>,
    event: u32,
}

impl Probe {
    /// Makes the probe of `event`, an id, which has this number in the trace.
    pub(crate) fn new(channel: Arc<Channel>, event: u32, number: u32) -> Self {
        Self {
            buffers: channel.entrance().ways().clone(),
            label: Label::in_layout(number, channel.setup().layout),
            channel,
            event,
        }
    }

    /// Where it records.
    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Whether it records into `channel`.
    pub(crate) fn is_of(&self, channel: &Channel) -> bool {
        core::ptr::eq(&*self.channel, channel)
    }

    /// Whether it records events of `cpu`.
    pub(crate) fn records_cpu(&self, cpu: u32) -> bool {
        self.channel.setup().cpus.has(cpu)
    }

    /// Whether its records are in the default format.
    pub(crate) fn is_usual(&self) -> bool {
        let setup = self.channel.setup();
        matches!(
            (setup.layout, setup.clock),
            (Layout::Compact, ClockKind::Tsc { .. })
        )
    }

    /// The event's id.
    pub(crate) fn event(&self) -> u32 {
        self.event
    }

    /// Goes to this CPU's buffer. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entered<'_>, Waiting<'_>> {
        self.buffers.enter()
    }

    /// Where records of the event go of which nothing is known but their tail.
    #[inline(always)]
    pub(crate) fn destination(&self) -> Destination<'_> {
        Destination {
            buffers: &self.buffers,
            entrance: self.channel.entrance(),
            label: self.label,
        }
    }

    /// Gets the space of a record of `len` bytes, those of the header among them, if that is done at once; as
    /// [`Buffer::begin_open`].
    #[inline(always)]
    pub(crate) fn begin<'a, F: Format>(
        &self,
        entered: Entered<'a>,
        len: u64,
    ) -> Result<(BegunOpen<'a>, RecordWriter<'a>), Entered<'a>> {
        Buffer::begin_open::<F>(entered, &self.label, len)
    }

    /// The same in every case and every format. [`None`]: it is lost, and counted. Any context, NMI
    /// included.
    pub(crate) fn begin_any<'a>(
        &'a self,
        entered: Result<Entered<'a>, Waiting<'a>>,
        len: u64,
    ) -> Option<(Begun<'a>, RecordWriter<'a>)> {
        match self.channel.setup().layout {
            Layout::Compact => self.begin_as::<(Compact, AnyClock)>(entered, len),
            Layout::Large => self.begin_as::<(Large, AnyClock)>(entered, len),
        }
    }

    fn begin_as<'a, F: Format>(
        &'a self,
        entered: Result<Entered<'a>, Waiting<'a>>,
        len: u64,
    ) -> Option<(Begun<'a>, RecordWriter<'a>)> {
        let entered = match entered {
            Ok(entered) => entered,
            Err(waiting) => self
                .channel
                .entrance()
                .admit(waiting, F::Header::SHORT.wrapping_add(len))?,
        };
        Buffer::begin_any::<F>(entered, &self.label, len)
    }

    /// A record was too large to be looked at.
    pub(crate) fn count_too_large(&self) {
        self.destination().count_too_large();
    }

    /// See [`Entrance::admit`].
    #[inline(always)]
    pub(crate) fn admit<'a>(&self, waiting: Waiting<'a>, least: u64) -> Option<Entered<'a>> {
        self.channel.entrance().admit(waiting, least)
    }
}

/// Where an event's records go of which nothing is known but their tail.
pub(crate) struct Destination<'a> {
    /// The ways of `entrance`, cached here to save one load.
    pub(crate) buffers: &'a Ways,
    pub(crate) entrance: &'a Entrance,
    pub(crate) label: Label,
}

impl Destination<'_> {
    /// Counts a record that is too large. Any context, NMI included.
    pub(crate) fn count_too_large(&self) {
        let entered = match self.buffers.enter() {
            Ok(entered) => Some(entered),
            Err(waiting) => waiting.pass().ok(),
        };
        if let Some(entered) = entered {
            entered.target().ring().lost().count(Lost::TooLarge);
        }
    }

    /// Records `tail`. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn record<T: Tail>(&self, tail: &T) {
        let Self {
            buffers,
            entrance,
            label,
        } = self;
        match entrance.layout() {
            Layout::Compact => record_as::<(Compact, AnyClock), T>(buffers, entrance, label, tail),
            Layout::Large => record_as::<(Large, AnyClock), T>(buffers, entrance, label, tail),
        }
    }

    /// Records what `make` gives, a tail of `least` bytes or more. It is called once the way to the
    /// buffer is found: an event that it fires itself is refused, and counted as nested. Any
    /// context, NMI included.
    #[inline(always)]
    pub(crate) fn record_made<T: Tail>(&self, least: usize, make: impl FnOnce() -> T) {
        match self.entrance.layout() {
            Layout::Compact => self.record_made_as::<(Compact, AnyClock), T>(least, make),
            Layout::Large => self.record_made_as::<(Large, AnyClock), T>(least, make),
        }
    }

    #[inline(always)]
    fn record_made_as<F: Format, T: Tail>(&self, least: usize, make: impl FnOnce() -> T) {
        let least = F::Header::SHORT.wrapping_add(least as u64);
        let entered = match self.buffers.enter() {
            Ok(entered) => entered,
            Err(waiting) => match self.entrance.admit(waiting, least) {
                Some(entered) => entered,
                None => return,
            },
        };
        let mut made = None;
        Buffer::record_any::<F, _>(entered, &self.label, || tail_alone(made.insert(make())));
    }
}

#[inline(always)]
fn record_as<F: Format, T: Tail>(buffers: &Ways, entrance: &Entrance, label: &Label, tail: &T) {
    let entered = match buffers.enter() {
        Ok(entered) => entered,
        Err(waiting) => return admit::<F, T>(waiting, entrance, label, tail),
    };
    let recorded = Buffer::record_open::<F, _>(
        entered,
        label,
        #[inline(always)]
        || tail_alone(tail),
    );
    if let Err(entered) = recorded {
        record_any::<F, T>(entered, label, tail);
    }
}

#[cold]
#[inline(never)]
#[link_section = ".kprobes.text"]
fn admit<F: Format, T: Tail>(waiting: Waiting<'_>, entrance: &Entrance, label: &Label, tail: &T) {
    let least = F::Header::SHORT.wrapping_add(tail.len() as u64);
    if let Some(entered) = entrance.admit(waiting, least) {
        record_any::<F, T>(entered, label, tail);
    }
}

#[cold]
#[inline(never)]
fn record_any<F: Format, T: Tail>(entered: Entered<'_>, label: &Label, tail: &T) {
    Buffer::record_any::<F, _>(entered, label, || tail_alone(tail));
}
