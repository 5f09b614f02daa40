// SPDX-License-Identifier: GPL-2.0

//! Probes: the actions when an event fires. A handler finds all that it needs in one [`Probe`].

pub(crate) mod builtin;
pub(crate) mod captured;
pub(crate) mod filter;
pub(crate) mod given;
pub(crate) mod handlers;
pub(crate) mod listed;
pub(crate) mod map;
pub(crate) mod stopwatch;
pub(crate) mod tasks;
pub(crate) mod trigger;

use crate::abi::header::Layout;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::entrance::Entrance;
use crate::channel::{Begun, Buffer, Channel, Entry, Route, Stopped, Ways};
use crate::context::{ContextSet, ContextStart};
use crate::record::clock::AnyClock;
use crate::record::format::Format;
use crate::record::header::{Compact, EventHeader, Large, RecordLabel};
use crate::record::memory::{tail_alone, RecordWriter, Tail};
use crate::ring::lost::Lost;
use crate::sys::rcu::RcuArc;
use crate::sys::threads::ProcessMemory;
use crate::sys::tracepoint::Rank;
use filter::Filter;
use kernel::prelude::*;
use kernel::sync::Arc;
use map::MapAtEvent;
use tasks::Tasks;
use trigger::Trigger;

/// The data of an event's handler: hands the event to a trace in which it is enabled, or to a trigger.
pub(crate) struct Probe {
    /// To the channel's gates. While the probe must look first, it leads to gates that stay closed. The handler
    /// of a format follows it, and looks only if it is stopped there.
    route: Route,
    /// Label of its records: the part of the header that is the same in all of them.
    pub(crate) label: RecordLabel,
    /// Bits of [`Look`](captured::Look): what the probe looks at before it records.
    look: SharedWord,
    filter: RcuArc<Filter>,
    /// Contexts that each record of the event contains.
    contexts: Arc<ContextSet>,
    /// Their start.
    start: ContextStart,
    /// The tasks whose events are recorded.
    tasks: Arc<Tasks>,
    sink: Sink,
}

/// The receiver of the records that are wanted.
enum Sink {
    /// A trace in which the event is enabled.
    Recorder(Recorder),
    /// A trigger.
    Trigger(Arc<Trigger>),
    /// A map. In memory of its own, so that it makes no other probe larger.
    Map(KBox<MapAtEvent>),
}

/// The state of an event that is enabled in a trace.
pub(crate) struct Recorder {
    /// The entrance of the channel that contains its records. A call that sleeps may use the probe after the
    /// channel's end.
    pub(crate) entrance: Arc<Entrance>,
    /// The event's id.
    pub(crate) event: u32,
}

impl Probe {
    /// Makes the probe of an event that has this number in the trace; `recorder` gets what `filter`
    /// wants of these tasks, and these contexts.
    pub(crate) fn new(
        recorder: Recorder,
        number: u32,
        tasks: Arc<Tasks>,
        contexts: Arc<ContextSet>,
        filter: Option<Arc<Filter>>,
    ) -> Self {
        let entrance = &recorder.entrance;
        let (route, layout) = (entrance.route(), entrance.layout());
        let label = RecordLabel::in_layout(number, layout);
        let sink = Sink::Recorder(recorder);
        Self::with(route, label, tasks, contexts, filter, sink)
    }

    /// Makes the probe of a trigger. May sleep.
    pub(crate) fn of_trigger(trigger: Arc<Trigger>) -> Result<Self> {
        let tasks = Arc::new(Tasks::new(), GFP_KERNEL)?;
        let (filter, closed) = (trigger.filter().cloned(), trigger.closed().clone());
        Self::without_records(tasks, filter, closed, Sink::Trigger(trigger))
    }

    /// Makes the probe of a map, which events of these tasks update. May sleep.
    pub(crate) fn of_map(map: MapAtEvent, tasks: Arc<Tasks>) -> Result<Self> {
        let (filter, closed) = (map.filter().cloned(), map.closed().clone());
        let map = KBox::new(map, GFP_KERNEL)?;
        Self::without_records(tasks, filter, closed, Sink::Map(map))
    }

    /// Makes a probe that records nothing: `closed` leads to gates that stay closed.
    fn without_records(
        tasks: Arc<Tasks>,
        filter: Option<Arc<Filter>>,
        closed: Ways,
        sink: Sink,
    ) -> Result<Self> {
        let route = Route::new(closed.clone(), closed);
        let label = RecordLabel::in_layout(0, Layout::Compact);
        let contexts = Arc::new(ContextSet::NONE, GFP_KERNEL)?;
        Ok(Self::with(route, label, tasks, contexts, filter, sink))
    }

    fn with(
        route: Route,
        label: RecordLabel,
        tasks: Arc<Tasks>,
        contexts: Arc<ContextSet>,
        filter: Option<Arc<Filter>>,
        sink: Sink,
    ) -> Self {
        let probe = Self {
            route,
            label,
            look: SharedWord::new(0),
            filter: RcuArc::new(),
            start: contexts.start().unwrap_or(ContextStart::NONE),
            contexts,
            tasks,
            sink,
        };
        probe.filter.replace(filter);
        probe.look_again(0);
        probe
    }

    /// Whether both probes record into the same channel, or update the same map.
    pub(crate) fn shares_channel(&self, other: &Self) -> bool {
        match (&self.sink, &other.sink) {
            (Sink::Recorder(one), Sink::Recorder(other)) => {
                Arc::ptr_eq(&one.entrance, &other.entrance)
            }
            (Sink::Map(one), Sink::Map(other)) => one.shares_map(other),
            _ => false,
        }
    }

    /// Position of the probe among those of its event.
    pub(crate) fn rank(&self) -> Rank {
        match &self.sink {
            Sink::Recorder(_) => Rank::Record,
            Sink::Map(map) => map.rank(),
            Sink::Trigger(_) => Rank::Trigger,
        }
    }

    /// Whether events of a task with this memory can be wanted. Process context.
    pub(crate) fn may_want(&self, memory: &ProcessMemory<'_>, guard: &NoPreempt) -> bool {
        self.tasks.may_want(memory, guard)
    }

    /// Counts events that the probe wants and the kernel did not call it for. Any context.
    pub(crate) fn count_missed(&self, events: u64) {
        if let Sink::Recorder(recorder) = &self.sink {
            recorder.entrance.count_missed(events);
        }
    }

    /// Whether the probe updates a map.
    pub(crate) fn has_map(&self) -> bool {
        matches!(self.sink, Sink::Map(_))
    }

    /// The trigger of the probe, if it has one.
    pub(crate) fn trigger(&self) -> Option<&Arc<Trigger>> {
        match &self.sink {
            Sink::Recorder(_) | Sink::Map(_) => None,
            Sink::Trigger(trigger) => Some(trigger),
        }
    }

    /// The id of the event that the probe records into `channel`; [`None`] if it does not record there.
    pub(crate) fn event_of(&self, channel: &Channel) -> Option<u32> {
        match &self.sink {
            Sink::Recorder(Recorder {
                entrance, event, ..
            }) if Arc::ptr_eq(entrance, channel.entrance()) => Some(*event),
            _ => None,
        }
    }

    /// Enters this CPU's buffer, unless the probe has to look first. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entry<'_>, Stopped<'_>> {
        self.route.enter()
    }

    /// Whether a context was stopped because the probe has to look first, or because the gate is fenced: the handler
    /// that looks can pass it. If not, refuses and counts its record. Any context, NMI included.
    pub(crate) fn must_look(&self, stopped: Stopped<'_>) -> bool {
        let must_look = self.route.was_diverted(&stopped) || !stopped.is_closed();
        if !must_look {
            self.refuse(stopped);
        }
        must_look
    }

    /// Refuses a record whose gate is closed.
    fn refuse(&self, stopped: Stopped<'_>) {
        if let Sink::Recorder(recorder) = &self.sink {
            recorder.entrance.refuse(stopped);
        }
    }

    /// Destination of `recorder`'s records, for code that knows only their tail.
    #[inline(always)]
    fn destination<'a>(&'a self, recorder: &'a Recorder) -> Destination<'a> {
        Destination {
            buffers: self.route.direct(),
            entrance: &recorder.entrance,
            label: self.label,
        }
    }
}

/// Destination of an event's records, for code that knows only their tail.
pub(crate) struct Destination<'a> {
    /// The ways of `entrance`, cached here to save one load.
    pub(crate) buffers: &'a Ways,
    pub(crate) entrance: &'a Entrance,
    pub(crate) label: RecordLabel,
}

impl<'a> Destination<'a> {
    /// Reserves the space of a record of `len` bytes without the header, in each case and each format.
    /// [`None`]: the record is lost and counted. Any context, NMI included.
    fn begin_any(
        &self,
        entered: Result<Entry<'a>, Stopped<'a>>,
        len: u64,
    ) -> Option<(Begun<'a>, RecordWriter<'a>)> {
        match self.entrance.layout() {
            Layout::Compact => self.begin_as::<(Compact, AnyClock)>(entered, len),
            Layout::Large => self.begin_as::<(Large, AnyClock)>(entered, len),
        }
    }

    fn begin_as<F: Format>(
        &self,
        entered: Result<Entry<'a>, Stopped<'a>>,
        len: u64,
    ) -> Option<(Begun<'a>, RecordWriter<'a>)> {
        let entered = match entered {
            Ok(entered) => entered,
            Err(stopped) => self
                .entrance
                .admit(stopped, F::Header::SHORT.wrapping_add(len))?,
        };
        Buffer::begin_any::<F>(entered, &self.label, len)
    }

    /// Counts a record that is too large. Any context, NMI included.
    pub(crate) fn count_too_large(&self) {
        let entered = match self.buffers.enter() {
            Ok(entered) => Some(entered),
            Err(stopped) => stopped.pass_fence().ok(),
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

    /// Records the tail that `make` returns, of at least `least` bytes. `make` is called after the buffer was
    /// entered: an event that it fires itself is refused, and counted as nested. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn record_made<T: Tail>(&self, least: usize, make: impl FnOnce() -> T) {
        match self.entrance.layout() {
            Layout::Compact => self.record_made_as::<(Compact, AnyClock), T>(least, make),
            Layout::Large => self.record_made_as::<(Large, AnyClock), T>(least, make),
        }
    }

    #[inline(always)]
    fn record_made_as<F: Format, T: Tail>(&self, least: usize, make: impl FnOnce() -> T) {
        match self.buffers.enter() {
            // The entered context is the outermost on its CPU: the gate refuses only the contexts that nest in it.
            Ok(entered) => record_entered::<F, T>(entered, &self.label, &make()),
            Err(stopped) => self.admit_made::<F, T>(stopped, least, make),
        }
    }

    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn admit_made<F: Format, T: Tail>(
        &self,
        stopped: Stopped<'_>,
        least: usize,
        make: impl FnOnce() -> T,
    ) {
        let least = F::Header::SHORT.wrapping_add(least as u64);
        if let Some(entered) = self.entrance.admit(stopped, least) {
            let mut made = None;
            Buffer::record_any::<F, _>(entered, &self.label, || tail_alone(made.insert(make())));
        }
    }
}

#[inline(always)]
fn record_as<F: Format, T: Tail>(
    buffers: &Ways,
    entrance: &Entrance,
    label: &RecordLabel,
    tail: &T,
) {
    match buffers.enter() {
        Ok(entered) => record_entered::<F, T>(entered, label, tail),
        Err(stopped) => admit::<F, T>(stopped, entrance, label, tail),
    }
}

/// Records the tail of the outermost entry.
#[inline(always)]
fn record_entered<F: Format, T: Tail>(entered: Entry<'_>, label: &RecordLabel, tail: &T) {
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
fn admit<F: Format, T: Tail>(
    stopped: Stopped<'_>,
    entrance: &Entrance,
    label: &RecordLabel,
    tail: &T,
) {
    let least = F::Header::SHORT.wrapping_add(tail.len() as u64);
    if let Some(entered) = entrance.admit(stopped, least) {
        record_any::<F, T>(entered, label, tail);
    }
}

#[cold]
#[inline(never)]
fn record_any<F: Format, T: Tail>(entered: Entry<'_>, label: &RecordLabel, tail: &T) {
    Buffer::record_any::<F, _>(entered, label, || tail_alone(tail));
}
