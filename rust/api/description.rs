// SPDX-License-Identifier: GPL-2.0

//! Descriptions of events in C code of other modules: the structures of `rtrace.h`.

use crate::abi::schema::{FieldType, Integer};
use crate::event::awaited::ModuleProbes;
use crate::probe::Probe;
use crate::source::aux::AuxSource;
use crate::source::description::{DescribedType, Description};
use crate::source::FullName;
use crate::sys::foreign::{ForeignFunction, ForeignLoan, ForeignModule, ForeignSlice, ForeignStr};
use crate::sys::modules::Module;
use crate::sys::tracepoint::Handler;
use kernel::prelude::*;
use kernel::sync::Arc;

/// `struct rtrace_field`.
#[repr(C)]
struct FieldDescription<'a> {
    name: ForeignStr<'a>,
    ty: u8,
    size: u8,
    count: u16,
    value_names: ForeignSlice<'a, ValueName<'a>>,
}

/// `struct rtrace_value_name`.
#[repr(C)]
struct ValueName<'a> {
    value: u64,
    name: ForeignStr<'a>,
}

/// `struct rtrace_event_desc`.
#[repr(C)]
pub(super) struct EventDescription<'a> {
    subsystem: ForeignStr<'a>,
    name: ForeignStr<'a>,
    fields: ForeignSlice<'a, FieldDescription<'a>>,
}

impl EventDescription<'_> {
    /// Parses the description. `EINVAL`: it is not a valid event.
    pub(super) fn read(&self) -> Result<Description> {
        self.read_fields(|_| true)
    }

    /// As [`read`](Self::read), with the fields of fixed size before all others. The description may have them
    /// in any order.
    fn read_fixed_first(&self) -> Result<Description> {
        self.read_fields(|kind| matches!(kind, DescribedType::Fixed(_)))
    }

    /// Parses the fields for which `first` is true, then the others.
    fn read_fields(&self, first: impl Fn(DescribedType) -> bool) -> Result<Description> {
        let mut description = Description::new(self.subsystem.bytes(), self.name.bytes())?;
        for is_first in [true, false] {
            for field in self.fields.items() {
                let kind = field.kind()?;
                if first(kind) == is_first {
                    description.add_field(field.name.bytes(), kind)?;
                    for known in field.value_names.items() {
                        description.add_label(known.value, known.name.bytes())?;
                    }
                }
            }
        }
        Ok(description)
    }
}

/// `struct rtrace_aux_desc`.
#[repr(C)]
pub(super) struct AuxDescription<'a> {
    subsystem: ForeignStr<'a>,
    name: ForeignStr<'a>,
}

impl AuxDescription<'_> {
    /// Parses the description. `EINVAL`: it is not a valid event.
    pub(super) fn read(&self) -> Result<Arc<AuxSource>> {
        AuxSource::new(self.subsystem.bytes(), self.name.bytes())
    }
}

impl FieldDescription<'_> {
    /// Each record has its own number of elements.
    const VARIES: u16 = 0xffff;

    /// Converts the `enum rtrace_field_type` with its size and count.
    fn kind(&self) -> Result<DescribedType> {
        let bits = || match self.size {
            1 | 2 | 4 | 8 => Ok(self.size * 8),
            _ => Err(EINVAL),
        };
        let element = match (self.ty, self.size, self.count) {
            (0, ..) => Integer::unsigned(bits()?),
            (1, ..) => Integer::signed(bits()?),
            (2, ..) => Integer::hex(bits()?),
            (3, 1.., 0) => return Ok(DescribedType::Fixed(FieldType::text(self.size.into()))),
            (3, 1, _) => Integer::TEXT,
            (4, 0, 0) => return Ok(DescribedType::String),
            (5, 8, _) => Integer::address(),
            _ => return Err(EINVAL),
        };
        Ok(match self.count {
            0 => DescribedType::Fixed(FieldType::Integer(element)),
            Self::VARIES => DescribedType::Sequence(element),
            count => DescribedType::Fixed(FieldType::Array(element, count.into())),
        })
    }
}

/// `struct rtrace_tracepoint`.
#[repr(C)]
pub(super) struct TracepointDescription<'a> {
    event: EventDescription<'a>,
    owner: ForeignModule,
    probe: ForeignFunction,
    module: ForeignStr<'a>,
}

impl TracepointDescription<'_> {
    /// The tracepoint's name.
    pub(super) fn name(&self) -> &[u8] {
        self.event.name.bytes()
    }

    /// The module that has the probe.
    pub(super) fn owner(&self) -> ForeignModule {
        self.owner
    }

    /// Whether the tracepoint may be that of a module.
    pub(super) fn may_be_of_module(&self) -> bool {
        self.module.get().is_some()
    }

    /// Parses the event and its probe. Errors as for [`EventDescription::read`].
    pub(super) fn read(&self) -> Result<(Description, Handler<Probe>)> {
        let description = self.event.read_fixed_first()?;
        Ok((description, Handler::foreign(self.probe, self.owner)))
    }
}

/// The probes for tracepoints of modules, among those that a module has lent.
pub(super) struct LentProbes {
    lent: ForeignLoan<TracepointDescription<'static>>,
    /// Their indices in `lent`.
    places: KVVec<u32>,
}

impl LentProbes {
    /// The probes at `places`.
    pub(super) fn new(
        lent: ForeignLoan<TracepointDescription<'static>>,
        places: KVVec<u32>,
    ) -> Self {
        Self { lent, places }
    }

    fn get(&self, place: usize) -> Option<&TracepointDescription<'static>> {
        let at = self.places.get(place)?;
        self.lent.items().get(*at as usize)
    }
}

impl ModuleProbes for LentProbes {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn name(&self, place: usize) -> FullName<'_> {
        let text = |text: &ForeignStr<'static>| core::str::from_utf8(text.bytes()).unwrap_or("");
        self.get(place).map_or(("", ""), |tracepoint| {
            (
                text(&tracepoint.event.subsystem),
                text(&tracepoint.event.name),
            )
        })
    }

    fn is_for(&self, place: usize, module: &Module<'_>) -> bool {
        match self
            .get(place)
            .and_then(|tracepoint| tracepoint.module.get())
        {
            None => false,
            Some([]) => module.is_of_kernel(),
            Some(name) => name == module.name().as_bytes(),
        }
    }

    fn read(&self, place: usize) -> Result<(Description, Handler<Probe>)> {
        self.get(place).ok_or(EINVAL)?.read()
    }
}
