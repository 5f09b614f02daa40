// SPDX-License-Identifier: GPL-2.0

//! Events that other modules provide.
//!
//! They have places of their own in the table of events. A place, once taken, keeps its event
//! for as long as rtrace is loaded, for traces may have records of it; a module that comes
//! again finds the place again.

use super::Event;
use crate::abi::header::Layout;
use crate::abi::schema::{Field, FieldType};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::{Buffer, Entered, Waiting};
use crate::probe::Probe;
use crate::record::clock::AnyClock;
use crate::record::format::Format;
use crate::record::header::{Compact, EventHeader, Large};
use crate::record::memory::{tail_alone, Space, Tail};
use crate::sys::rcu::RcuArc;
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};

/// The most fields that one may have.
const MAX_FIELDS: usize = 16;

/// Places for provided events.
pub(super) const PLACES: u32 = 64;

static PROVIDED: [SetOnce<Provided>; PLACES as usize] = [const { SetOnce::new() }; PLACES as usize];

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
pub(crate) struct Provided {
    description: Description,
    /// Not 0 while its module may emit it.
    registered: SharedWord,
    /// The probe of the trace that records it.
    probe: RcuArc<Probe>,
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

/// The event in `place`.
pub(super) fn get(place: u32) -> Option<&'static Provided> {
    PROVIDED.get(place as usize)?.as_ref()
}

/// Registers an event.
pub(crate) fn register(description: Description) -> Result<(Event, &'static Provided)> {
    let mut new = Some(Provided {
        description,
        registered: SharedWord::new(1),
        probe: RcuArc::new(),
    });
    for (place, slot) in (0..).zip(&PROVIDED) {
        let found = match (slot.as_ref(), &new) {
            (None, Some(event)) if !is_taken(event) => {
                // Somebody else may be faster; then it is looked at like any other.
                if let Some(event) = new.take() {
                    if slot.populate(event) {
                        let provided = slot.as_ref().ok_or(EINVAL)?;
                        return Ok((Event::provided(place, provided), provided));
                    }
                    return Err(EAGAIN);
                }
                continue;
            }
            (Some(found), Some(event)) => {
                if found.description.name != event.description.name
                    || found.description.subsystem != event.description.subsystem
                {
                    continue;
                }
                if found.description != event.description {
                    return Err(EEXIST);
                }
                found
            }
            _ => return Err(EEXIST),
        };
        if !found.registered.compare_exchange(0, 1) {
            return Err(EEXIST);
        }
        return Ok((Event::provided(place, found), found));
    }
    Err(ENOSPC)
}

/// Whether an event of rtrace's own has the name.
fn is_taken(event: &Provided) -> bool {
    super::all().any(|known| {
        known.subsystem() == event.description.subsystem.as_str()
            && known.name() == event.description.name.as_str()
    })
}

impl Provided {
    /// Subsystem.
    pub(crate) fn subsystem(&'static self) -> &'static str {
        self.description.subsystem.as_str()
    }

    /// Name.
    pub(crate) fn name(&'static self) -> &'static str {
        self.description.name.as_str()
    }

    /// Fields, in the order of the record.
    pub(super) fn fields(&'static self) -> impl Iterator<Item = Field<'static>> + Clone {
        let fields = &self.description.fields;
        fields
            .iter()
            .take(self.description.field_count)
            .map(|(name, ty)| Field {
                name: name.as_str(),
                ty: *ty,
            })
    }

    /// It, among all events.
    pub(crate) fn event(&'static self) -> Option<Event> {
        (0..)
            .zip(&PROVIDED)
            .find(|(_, place)| {
                place
                    .as_ref()
                    .is_some_and(|other| core::ptr::eq(other, self))
            })
            .map(|(place, _)| Event::provided(place, self))
    }

    /// Whether its module is there.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered.load() != 0
    }

    /// Its module will not emit it any more.
    pub(crate) fn unregister(&self) {
        self.registered.store(0);
    }

    /// Has it recorded by `probe` from now on, or not any more. Waits for emitters that use the
    /// one before. May sleep.
    pub(crate) fn attach(&self, probe: Option<Arc<Probe>>) {
        self.probe.replace(probe);
    }

    /// The probe that records it. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn probe<'a>(&'a self, guard: &'a NoPreempt) -> Option<&'a Probe> {
        self.probe.get(guard)
    }

    /// Records it if it is enabled. `EINVAL` if `data` is not of its size. Any context, NMI
    /// included.
    #[inline(always)]
    pub(crate) fn emit(&self, data: &[u8], text: &[u8]) -> Result {
        let guard = NoPreempt::new();
        let Some(probe) = self.probe(&guard) else {
            return Ok(());
        };
        if data.len() != self.description.fixed {
            return Err(EINVAL);
        }
        let record = Record {
            data,
            text,
            has_string: self.description.has_string,
        };
        match probe.layout() {
            Layout::Compact => record.emit::<(Compact, AnyClock)>(probe),
            Layout::Large => record.emit::<(Large, AnyClock)>(probe),
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

impl Record<'_> {
    #[inline(always)]
    fn emit<F: Format>(&self, probe: &Probe) {
        let entered = match probe.enter() {
            Ok(entered) => entered,
            Err(waiting) => return self.admit::<F>(waiting, probe),
        };
        let recorded = Buffer::record_open::<F, _>(
            entered,
            &probe.label,
            #[inline(always)]
            || tail_alone(self),
        );
        if let Err(entered) = recorded {
            self.emit_any::<F>(entered, probe);
        }
    }

    #[cold]
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn admit<F: Format>(&self, waiting: Waiting<'_>, probe: &Probe) {
        let least = F::Header::SHORT.wrapping_add(self.len() as u64);
        if let Some(entered) = probe.admit(waiting, least) {
            self.emit_any::<F>(entered, probe);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_any<F: Format>(&self, entered: Entered<'_>, probe: &Probe) {
        Buffer::record_any::<F, _>(entered, &probe.label, || tail_alone(self));
    }
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
