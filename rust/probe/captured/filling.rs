// SPDX-License-Identifier: GPL-2.0

//! Records that another module writes: directly into the buffer, or first into memory for a check.

use super::{Look, MapAtEvent, Probe, Sink, LONGEST};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::opaque;
use crate::channel::{Begun, BegunOpen, Buffer, Entry, Stopped};
use crate::context::Moment;
use crate::filter::program::Decision;
use crate::record::format::{CompactTsc, Format};
use crate::record::header::EventHeader;
use crate::record::memory::{Capture, Captured};
use crate::sys::foreign::{ForeignRoom, Usually};
use crate::sys::stack::StackStart;
use core::ptr::NonNull;

/// Size of the header of a record in the common case.
const HEADER: u64 = <CompactTsc as Format>::Header::SHORT;

/// A record that another module writes, not in the common case.
pub(crate) struct Filling<'a> {
    state: State<'a>,
    /// Memory for a record that is checked first.
    room: Capture<LONGEST>,
}

/// Place of the record.
enum State<'a> {
    /// In the buffer.
    Begun(Begun<'a>),
    /// In the room.
    Captured(&'a Probe),
    /// The record has ended.
    Ended,
}

/// Room for the state of a record, between its begin and its [end].
pub(crate) type Room<'a, 'r> = ForeignRoom<'r, Usually<BegunOpen<'a>, Filling<'a>>>;

impl Probe {
    /// Reserves the space of a record of `len` bytes that another module writes. The caller must [end](end) it.
    /// [`None`]: the record is not wanted, or it is lost and counted. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn begin<'a>(&'a self, room: Room<'a, '_>, len: u64) -> Option<NonNull<u8>> {
        if self.look.load() != 0 {
            // A filter alone is the most frequent condition. Loaded again, so that the usual case only compares.
            return match self.look.load() & (Look::EARLY | Look::FIELDS) {
                Look::FIELDS => self.begin_captured(room, len),
                _ => self.begin_looking(room, len),
            };
        }
        let entered = match self.route.direct().enter() {
            Ok(entered) => entered,
            Err(stopped) => return self.begin_stopped(stopped, room, len),
        };
        // Hides from the compiler that this is a sum; otherwise it would keep the sum and both parts.
        let whole = opaque(HEADER.wrapping_add(len));
        match Buffer::begin_open::<CompactTsc>(entered, &self.label, whole) {
            Ok((begun, to)) => {
                room.fill_usual(begun);
                Some(to.address())
            }
            Err(entered) => self.begin_entered(entered, room, whole.wrapping_sub(HEADER)),
        }
    }

    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_stopped<'a>(
        &'a self,
        stopped: Stopped<'a>,
        room: Room<'a, '_>,
        len: u64,
    ) -> Option<NonNull<u8>> {
        let entered = match stopped.pass() {
            Ok(entered) => entered,
            Err(stopped) => return self.begin_fenced(stopped, room, len),
        };
        let entered = Buffer::admit(entered, HEADER.wrapping_add(len))?;
        self.begin_entered(entered, room, len)
    }

    /// The same for a gate that is not open.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_fenced<'a>(
        &'a self,
        stopped: Stopped<'a>,
        room: Room<'a, '_>,
        len: u64,
    ) -> Option<NonNull<u8>> {
        match stopped.pass_fence() {
            Ok(entered) => self.begin_entered(entered, room, len),
            Err(stopped) => {
                self.refuse(stopped);
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_entered<'a>(
        &'a self,
        entered: Entry<'a>,
        room: Room<'a, '_>,
        len: u64,
    ) -> Option<NonNull<u8>> {
        self.begin_any(Ok(entered), room, len)
    }

    #[inline(always)]
    fn begin_any<'a>(
        &'a self,
        entered: Result<Entry<'a>, Stopped<'a>>,
        room: Room<'a, '_>,
        len: u64,
    ) -> Option<NonNull<u8>> {
        let Sink::Recorder(recorder) = &self.sink else {
            return None;
        };
        let (begun, to) = self.destination(recorder).begin_any(entered, len)?;
        Filling::new(room, State::Begun(begun));
        Some(to.address())
    }

    /// As [`begin`](Self::begin), for all cases in which the probe looks first.
    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_looking<'a>(&'a self, room: Room<'a, '_>, len: u64) -> Option<NonNull<u8>> {
        match (self.wants_unread(self.look.load()), &self.sink) {
            (Decision::Refused, _) => None,
            (Decision::Accepted, Sink::Trigger(trigger)) => {
                let guard = NoPreempt::new();
                trigger.fire(Moment::new(&guard, 1).with_stack(StackStart::in_handler()));
                None
            }
            (Decision::Accepted, Sink::Map(map)) => self.begin_for_map(map, room, len),
            (Decision::Accepted, Sink::Recorder(_)) if self.contexts.is_empty() => {
                self.begin_any(self.route.direct().enter(), room, len)
            }
            _ => self.begin_captured(room, len),
        }
    }

    /// Updates the map, or begins the record that the update needs. A function of its own, so that events that
    /// are recorded do not save registers for it.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn begin_for_map<'a>(
        &'a self,
        map: &MapAtEvent,
        room: Room<'a, '_>,
        len: u64,
    ) -> Option<NonNull<u8>> {
        match map.update_at_once(|_| None) {
            true => None,
            false => self.begin_captured(room, len),
        }
    }

    /// Begins a record on the stack.
    #[inline(always)]
    fn begin_captured<'a>(&'a self, room: Room<'a, '_>, len: u64) -> Option<NonNull<u8>> {
        if len > LONGEST as u64 {
            self.count_too_large();
            return None;
        }
        let filling = Filling::new(room, State::Captured(self));
        Some(filling.room.begin(len)?.address())
    }

    /// Ends a record on the stack that is not refused. A function of its own, so that refused events do not save
    /// registers for it.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end_captured(&self, fields: Captured<'_>, decided: Decision) {
        if !self.record_captured(0, fields, decided) {
            self.end_captured_any(fields, decided);
        }
    }

    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end_captured_any(&self, fields: Captured<'_>, decided: Decision) {
        let guard = NoPreempt::new();
        let now = Moment::new(&guard, 1).with_stack(StackStart::in_handler());
        self.handle_decided(fields, decided, now);
    }
}

/// Ends a record that was written.
#[inline(always)]
pub(crate) fn end(room: Room<'_, '_>) {
    match room.taken() {
        Ok(begun) => begun.end(),
        Err(filling) => filling.end(),
    }
}

impl<'a> Filling<'a> {
    fn new<'r>(room: Room<'a, 'r>, state: State<'a>) -> &'r mut Self {
        room.fill_rest(Self {
            state,
            room: Capture::new(),
        })
    }

    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end(&mut self) {
        let State::Captured(probe) = self.state else {
            return self.end_begun();
        };
        let fields = self.room.end();
        match probe.wants_captured(fields) {
            Decision::Refused => {}
            decided => probe.end_captured(fields, decided),
        }
    }

    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn end_begun(&mut self) {
        if let State::Begun(begun) = core::mem::replace(&mut self.state, State::Ended) {
            begun.end();
        }
    }
}
