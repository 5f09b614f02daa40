// SPDX-License-Identifier: GPL-2.0

//! Captured records: laid out on the stack first, where a filter looks at them, then recorded with
//! the channel's contexts in front.
//!
//! An event has one handler for this, whatever the event header and the clock. It is attached
//! where a filter or a context was asked for, or a trigger, and nowhere else.

use super::filter::Filter;
use super::tasks::Tasks;
use super::trigger::Trigger;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::Channel;
use crate::context::ContextSet;
use crate::probe::Probe;
use crate::record::memory::{tail_alone, Capture, Space, Tail};
use crate::sys::args::Task;
use crate::sys::rcu::{RcuArc, Retired};
use kernel::sync::Arc;

/// The longest record that is captured where its size is known only when it is recorded.
pub(super) const LONGEST: usize = 1024;

/// An event whose records are captured; the data of its tracepoint's handler.
pub(crate) struct CapturedProbe {
    taker: Taker,
    filter: RcuArc<Filter>,
    /// 0 while another probe records the event.
    live: SharedWord,
}

/// Who gets the records that are wanted.
pub(crate) enum Taker {
    /// A trace in which the event is enabled.
    Recorder(Recorder),
    /// A trigger.
    Trigger(Arc<Trigger>),
}

/// An event that is enabled in a trace, and captured.
pub(crate) struct Recorder {
    /// Records it.
    pub(crate) probe: Probe,
    /// Whose events are recorded.
    pub(crate) tasks: Arc<Tasks>,
    /// Where in a record the id of the task is that it is about, if it is about one.
    pub(crate) about: Option<usize>,
    /// What is recorded beside it.
    pub(crate) contexts: Arc<ContextSet>,
}

impl CapturedProbe {
    /// Has `taker` get what `filter` wants, once it is [live](Self::set_live).
    pub(crate) fn new(taker: Taker, filter: Option<Arc<Filter>>) -> Self {
        let captured = Self {
            taker,
            filter: RcuArc::new(),
            live: SharedWord::new(0),
        };
        captured.filter.replace(filter);
        captured
    }

    /// Records from now on.
    pub(crate) fn set_live(&self) {
        self.live.store(1);
    }

    /// Has another filter from now on, or none. May sleep.
    pub(crate) fn set_filter(&self, filter: Option<&Arc<Filter>>, retired: &mut Retired<Filter>) {
        self.filter.replace_later(filter.cloned(), retired);
    }

    /// The id of the event that it records into `channel`; [`None`] if it does not.
    pub(crate) fn event_of(&self, channel: &Channel) -> Option<u32> {
        match &self.taker {
            Taker::Recorder(Recorder { probe, .. }) if probe.is_of(channel) => Some(probe.event()),
            _ => None,
        }
    }

    /// The trigger that it is for, if it is for one.
    pub(crate) fn trigger(&self) -> Option<&Arc<Trigger>> {
        match &self.taker {
            Taker::Recorder(_) => None,
            Taker::Trigger(trigger) => Some(trigger),
        }
    }

    /// Hands over these fields if they are wanted. Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(super) fn record(&self, fields: &[u8]) {
        let guard = NoPreempt::new();
        let mut filter = self.filter.get(&guard).into_iter();
        if self.live.load() != 0
            && self.taker.is_of_wanted_task(fields, &guard)
            && filter.all(|filter| filter.wants(fields, &guard))
        {
            self.taker.take(&Bytes(fields), &guard);
        }
    }

    /// The same for fields that are not captured yet, of [`LONGEST`] bytes at most if there is a
    /// filter.
    #[inline(always)]
    pub(super) fn record_tail<T: Tail>(&self, fields: &T, guard: &NoPreempt) {
        if self.filter.get(guard).is_some() {
            let (len, write) = tail_alone(fields);
            if let Some(fields) = Capture::<LONGEST>::new().fill(len, write) {
                self.record(fields);
            }
        } else if self.live.load() != 0 && self.taker.is_of_wanted_task(&[], guard) {
            self.taker.take(fields, guard);
        }
    }
}

impl Taker {
    /// As ftrace: an event is of the task that runs, and of the one that it is about. For a trigger
    /// it does not matter.
    #[inline(always)]
    fn is_of_wanted_task(&self, fields: &[u8], guard: &NoPreempt) -> bool {
        let Self::Recorder(Recorder { tasks, about, .. }) = self else {
            return true;
        };
        let about = || {
            let tid = fields.get((*about)?..)?.first_chunk()?;
            Some(i32::from_le_bytes(*tid))
        };
        tasks.wants(Task::current().tid(), guard)
            || about().is_some_and(|tid| tasks.wants(tid, guard))
    }

    #[inline(always)]
    fn take<T: Tail>(&self, fields: &T, guard: &NoPreempt) {
        match self {
            Self::Recorder(recorder) => recorder.probe.record(&WithContexts {
                contexts: &recorder.contexts,
                guard,
                fields,
            }),
            Self::Trigger(trigger) => trigger.fire(guard),
        }
    }
}

/// A channel's contexts, and then an event's fields.
pub(super) struct WithContexts<'a, T> {
    pub(super) contexts: &'a ContextSet,
    pub(super) guard: &'a NoPreempt,
    pub(super) fields: &'a T,
}

impl<T: Tail> Tail for WithContexts<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.contexts.len().wrapping_add(self.fields.len())
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        self.contexts.write(&mut space, self.guard);
        self.fields.write(space);
    }
}

/// Fields that were captured.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Tail for Bytes<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(self.0);
    }
}
