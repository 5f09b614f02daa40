// SPDX-License-Identifier: GPL-2.0

//! Events that other modules provide.

use super::captured::{self, CapturedProbe};
use super::FullName;
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::record::memory::{Space, Tail};
use crate::sys::args::TEXT_MAX;
use crate::sys::rcu::RcuArc;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The most fields that one may have.
const MAX_FIELDS: usize = 16;

/// A C identifier, stored in place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Name<N> {
    const EMPTY: Self = Self {
        bytes: [0; N],
        len: 0,
    };

    fn new(text: &[u8]) -> Result<Self> {
        let is_identifier = text
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.first().is_some_and(|first| !first.is_ascii_digit());
        // As the C side says: room for a NUL.
        if !is_identifier || text.len() >= N {
            return Err(EINVAL);
        }
        let mut name = Self::EMPTY;
        for (to, &from) in name.bytes.iter_mut().zip(text) {
            *to = from;
        }
        name.len = text.len();
        Ok(name)
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(self.bytes.get(..self.len).unwrap_or(&[])).unwrap_or("")
    }
}

/// An event of another module.
#[pin_data]
pub(crate) struct Provided {
    description: Description,
    /// Who records it.
    recorders: RcuArc<Recorder>,
    /// Held to change the list of recorders.
    #[pin]
    changing: Mutex<()>,
}

/// A channel that records the event, or a trigger, in a list of them.
struct Recorder {
    probe: Arc<CapturedProbe>,
    next: RcuArc<Recorder>,
}

/// What another module says of its event.
#[derive(PartialEq, Eq)]
pub(crate) struct Description {
    subsystem: Name<32>,
    name: Name<64>,
    fields: [(Name<32>, FieldType<'static>); MAX_FIELDS],
    field_count: usize,
    /// Bytes of all fields but a string.
    fixed: usize,
    has_string: bool,
}

impl Description {
    /// That of an event without fields. `EINVAL`: a name is no C identifier, or too long.
    pub(crate) fn new(subsystem: &[u8], name: &[u8]) -> Result<Self> {
        Ok(Self {
            subsystem: Name::new(subsystem)?,
            name: Name::new(name)?,
            fields: [(Name::EMPTY, FieldType::String); MAX_FIELDS],
            field_count: 0,
            fixed: 0,
            has_string: false,
        })
    }

    /// Subsystem and name.
    pub(super) fn full_name(&self) -> FullName<'_> {
        (self.subsystem.as_str(), self.name.as_str())
    }

    /// Adds a field behind the others. `EINVAL`: as for [`new`](Self::new), there is a string
    /// before it, or there are too many.
    pub(crate) fn add_field(&mut self, name: &[u8], ty: FieldType<'static>) -> Result {
        if self.has_string {
            return Err(EINVAL);
        }
        *self.fields.get_mut(self.field_count).ok_or(EINVAL)? = (Name::new(name)?, ty);
        self.field_count += 1;
        match ty.size() {
            Some(size) => self.fixed += size,
            None => self.has_string = true,
        }
        Ok(())
    }
}

impl Provided {
    /// An event that nobody records. May sleep.
    pub(super) fn new(description: Description) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                description,
                recorders: RcuArc::new(),
                changing <- new_mutex!(()),
            }),
            GFP_KERNEL,
        )
    }

    /// Subsystem and name.
    pub(super) fn full_name(&self) -> FullName<'_> {
        self.description.full_name()
    }

    /// Whether it is what `description` says.
    pub(super) fn is_described_by(&self, description: &Description) -> bool {
        self.description == *description
    }

    /// Whether a filter can look at its records: they are not too long.
    pub(super) fn can_be_captured(&self) -> bool {
        self.description.fixed + TEXT_MAX < captured::LONGEST
    }

    /// Fields, in the order of the record.
    pub(super) fn fields(&self) -> impl Iterator<Item = Field<'_>> + Clone {
        let fields = &self.description.fields;
        fields
            .iter()
            .take(self.description.field_count)
            .map(|(name, ty)| Field {
                name: name.as_str(),
                ty: *ty,
            })
    }

    /// Has it recorded by `probe`, too, from now on; triggers come after all others. May sleep.
    pub(crate) fn attach(&self, probe: Arc<CapturedProbe>) -> Result {
        let _changing = self.changing.lock();
        let next = RcuArc::new();
        if probe.trigger().is_some() {
            let recorder = Arc::new(Recorder { probe, next }, GFP_KERNEL)?;
            let Some(mut last) = self.recorders.get_arc() else {
                self.recorders.replace(Some(recorder));
                return Ok(());
            };
            while let Some(next) = last.next.get_arc() {
                last = next;
            }
            last.next.replace(Some(recorder));
            return Ok(());
        }
        next.replace(self.recorders.get_arc());
        let recorder = Arc::new(Recorder { probe, next }, GFP_KERNEL)?;
        self.recorders.replace(Some(recorder));
        Ok(())
    }

    /// Has it not recorded by `probe` any more, and waits until that does not run. May sleep.
    pub(crate) fn detach(&self, probe: &CapturedProbe) {
        let _changing = self.changing.lock();
        let mut before: Option<Arc<Recorder>> = None;
        loop {
            let place = before
                .as_ref()
                .map_or(&self.recorders, |before| &before.next);
            let Some(recorder) = place.get_arc() else {
                return;
            };
            if core::ptr::eq(&*recorder.probe, probe) {
                return place.replace(recorder.next.get_arc());
            }
            before = Some(recorder);
        }
    }

    /// Whether somebody records it. Any context, NMI included.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorders.get(&NoPreempt::new()).is_some()
    }

    /// Records it if it is enabled. `EINVAL` if `data` is not of its size. Any context, NMI
    /// included.
    #[inline(always)]
    pub(crate) fn emit(&self, data: &[u8], text: &[u8]) -> Result {
        let guard = NoPreempt::new();
        let mut next = self.recorders.get(&guard);
        if next.is_some() && data.len() != self.description.fixed {
            return Err(EINVAL);
        }
        let record = Record {
            data,
            text,
            has_string: self.description.has_string,
        };
        while let Some(Recorder { probe, next: after }) = next {
            probe.record_tail(&record, &guard);
            next = after.get(&guard);
        }
        Ok(())
    }
}

/// A provided event's fields as a record's tail.
struct Record<'a> {
    data: &'a [u8],
    text: &'a [u8],
    has_string: bool,
}

impl Tail for Record<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        let string = if self.has_string {
            self.text.len().wrapping_add(1)
        } else {
            0
        };
        self.data.len().wrapping_add(string)
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(self.data);
        if self.has_string {
            space.put_bytes(self.text);
            space.put(0u8);
        }
    }
}
