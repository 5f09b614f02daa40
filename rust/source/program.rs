// SPDX-License-Identifier: GPL-2.0

//! Events of programs: registered and recorded through the file `program`.
//!
//! The bytes of a record come from a program. They are recorded only if they have the shape of the event
//! ([`shape`]), so no program can make a trace that a reader cannot parse.

use super::attached::AttachedProbes;
use super::description::{DescribedType, Description, FullName};
use super::event_source::EventSource;
use super::probe_list::{NewProbe, ProbeList};
use super::rings::event::EventRings;
use super::rings::shared::SharedRings;
use super::rings::Rings;
use super::values::{self, wrong, Failed, Wrong};
use crate::abi::schema::{Field, FieldType, Integer};
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::input::pattern::OF_PROGRAMS;
use crate::input::program::{ElementType, EventDefinition, ProgramName, RegisteredType};
use crate::input::state::{self as input, Fields, StateValue};
use crate::probe::captured::{self, Bytes};
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::Probe;
use crate::program::shape::{self, ShapePart};
use crate::sys::debugfs::text::Text;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// Number of indexes of the events of an open file.
pub(crate) const MAX_INDEX: usize = 1024;

/// Maximum number of events of the same name that have different fields.
pub(crate) const MAX_VARIANTS: u32 = 16;

/// Maximum size in bytes of the fields of a record.
pub(crate) const LONGEST: usize = shape::LONGEST;

// So that each record can be filtered.
const _: () = assert!(LONGEST <= captured::LONGEST);

/// An event of programs.
#[pin_data]
pub(crate) struct ProgramEvent {
    description: Description,
    /// See [`variant`](Self::variant).
    number: u32,
    /// ProgramName of the event in files, if that is not the name of the description.
    variant: Option<CString>,
    shape: KVec<ShapePart>,
    /// The probes that record in the context of the thread, and those of triggers and maps.
    #[pin]
    probes: ListedProbes,
    #[pin]
    rings: EventRings,
    /// Number of open files that have registered the event. Changed by one task at a time.
    users: SharedWord,
}

impl ProgramEvent {
    /// Makes an event without users. Unless `number` is 1, its name in files has this number. May sleep.
    pub(crate) fn new(
        description: Description,
        number: u32,
        rings: &Arc<Rings>,
    ) -> Result<Arc<Self>> {
        let shape = shape_of(&description)?;
        let variant = match number {
            1 => None,
            _ => {
                let (_, name) = description.full_name();
                Some(CString::try_from_fmt(fmt!("{name}.{number}"))?)
            }
        };
        Arc::pin_init(
            pin_init!(Self {
                description,
                number,
                variant,
                shape,
                probes <- ListedProbes::new(),
                rings <- EventRings::new(rings),
                users: SharedWord::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Its names and fields.
    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// Whether the event has this name and these fields.
    pub(crate) fn is(&self, description: &Description) -> bool {
        self.description == *description
    }

    /// Whether programs know the event by this name.
    pub(crate) fn is_called(&self, name: ProgramName<'_>) -> bool {
        let (subsystem, event) = self.description.full_name();
        subsystem.strip_prefix(OF_PROGRAMS) == Some(name.provider) && event == name.event
    }

    /// Whether a variant is called as the event that has this description would be.
    pub(crate) fn is_namesake(&self, description: &Description) -> bool {
        self.description.full_name() == description.full_name()
    }

    /// The event's number among those of its name that have other fields.
    pub(crate) fn variant(&self) -> u32 {
        self.number
    }

    /// The number of users.
    pub(crate) fn users(&self) -> &SharedWord {
        &self.users
    }

    /// Whether somebody records the event.
    pub(crate) fn is_recorded(&self) -> bool {
        self.has_probes() || self.rings.is_any()
    }

    /// Whether a record must be made in the context of the thread, or is for a trigger or a map.
    fn has_probes(&self) -> bool {
        self.probes.is_any(&NoPreempt::new())
    }

    /// The part of the event that concerns rings.
    pub(crate) fn rings(&self) -> &EventRings {
        &self.rings
    }

    /// The parts of its fields.
    pub(crate) fn shape(&self) -> &[ShapePart] {
        &self.shape
    }

    /// Announces changes of the probes to a program from now on. May sleep.
    pub(crate) fn add_listener(&self, program: &Arc<SharedRings>, index: usize) -> Result {
        self.rings.add_listener(program, index, self.has_probes())
    }

    /// Records the event with these bytes as its fields, in the context of the calling thread. Errors: `EBADF` if no
    /// session records it and no trigger or map waits for it; `EINVAL` if the bytes are not fields of the event.
    ///
    /// Returns whether a channel takes the event from rings. Then the caller also calls
    /// [`record_now`](EventRings::record_now), without a guard.
    #[inline(always)]
    pub(crate) fn emit(&self, fields: &[u8], guard: &NoPreempt) -> Result<bool> {
        let has_rings = self.rings.is_any();
        if !has_rings && !self.probes.is_any(guard) {
            return Err(EBADF);
        }
        if !shape::fits(&self.shape, fields) {
            return Err(EINVAL);
        }
        self.probes.handle(&Bytes(fields), guard);
        Ok(has_rings)
    }

    /// Appends the fields of a record to `bytes`, from the values in a line.
    pub(crate) fn append(
        &self,
        given: &mut Fields<'_>,
        bytes: &mut KVVec<u8>,
    ) -> Result<(), Failed<'_>> {
        let declared = (0..).map_while(|place| self.description.field(place));
        values::append(declared, given, bytes)
    }
}

/// The parts of a record with these fields.
fn shape_of(description: &Description) -> Result<KVec<ShapePart>> {
    let mut parts = KVec::new();
    let mut fields = (0..).map_while(|place| description.field(place)).peekable();
    let mut fixed = 0;
    while let Some(field) = fields.next() {
        let is_length = |next: &Field<'_>| matches!(next.ty, FieldType::Sequence(..));
        let part = match field.ty {
            // The part of the sequence has its length.
            FieldType::Integer(_) if fields.peek().is_some_and(is_length) => continue,
            FieldType::Sequence(element, _) => ShapePart::Elements(element.bits / 8),
            FieldType::String => ShapePart::Text,
            ty => {
                fixed += u32::try_from(ty.size().ok_or(EINVAL)?)?;
                continue;
            }
        };
        push_fixed(&mut parts, &mut fixed)?;
        parts.push(part, GFP_KERNEL)?;
    }
    push_fixed(&mut parts, &mut fixed)?;
    Ok(parts)
}

/// Adds the bytes of fixed size that were counted since the last part.
fn push_fixed(parts: &mut KVec<ShapePart>, fixed: &mut u32) -> Result {
    if *fixed != 0 {
        parts.push(ShapePart::Fixed(core::mem::take(fixed)), GFP_KERNEL)?;
    }
    Ok(())
}

/// The description of an event that a program wants to register. `E2BIG`: no record of the event can be short enough.
/// May sleep.
pub(crate) fn describe(definition: &EventDefinition<'_>) -> Result<Description> {
    let ProgramName { provider, event } = definition.name;
    let mut description = Description::of_program(provider, event)?;
    for field in definition.fields() {
        let kind = match field.ty {
            RegisteredType::One(ElementType::Char) => DescribedType::Fixed(FieldType::text(1)),
            RegisteredType::One(element) => {
                DescribedType::Fixed(FieldType::Integer(integer(element)))
            }
            RegisteredType::Array(element, count) => {
                DescribedType::Fixed(FieldType::Array(integer(element), count.into()))
            }
            RegisteredType::Sequence(element) => DescribedType::Sequence(integer(element)),
            RegisteredType::String => DescribedType::String,
        };
        description.add_field(field.name.as_bytes(), kind)?;
    }
    if description.fixed() > LONGEST {
        return Err(E2BIG);
    }
    Ok(description)
}

fn integer(element: ElementType) -> Integer {
    match element {
        ElementType::Unsigned(bits) => Integer::unsigned(bits),
        ElementType::Signed(bits) => Integer::signed(bits),
        ElementType::Hex(bits) => Integer::hex(bits),
        ElementType::Char => Integer::TEXT,
    }
}

/// The text that registers an event whose records have the values of this line: numbers have a sign and 64 bits. May
/// sleep.
pub(crate) fn infer(
    name: ProgramName<'_>,
    mut fields: Fields<'_>,
) -> Result<Text, Failed<'static>> {
    let mut failed = None;
    let text = Text::new(|text| {
        write!(text, "{}:{}", name.provider, name.event)?;
        let mut separator = " ";
        loop {
            let at = fields.at();
            let given = match fields.take() {
                Ok(Some(given)) => given,
                Ok(None) => return Ok(()),
                Err(error) => {
                    failed = Some(Failed::from(error));
                    return Err(EINVAL);
                }
            };
            let ty = match given.value {
                StateValue::Text(_) => "string",
                StateValue::Word(word) if input::number(word, 64, true).is_some() => "s64",
                StateValue::Word(_) => {
                    failed = Some(wrong(at + given.name.len() + 1, Wrong::Value));
                    return Err(EINVAL);
                }
            };
            write!(text, "{separator}{ty} {}", given.name)?;
            separator = "; ";
        }
    });
    text.map_err(|_| failed.unwrap_or(Failed::Memory))
}

impl EventSource for Arc<ProgramEvent> {
    fn full_name(&self) -> FullName<'_> {
        let (subsystem, name) = self.description.full_name();
        let variant = self.variant.as_ref();
        (
            subsystem,
            variant.map_or(name, |name| name.to_str().unwrap_or("")),
        )
    }

    fn trace_name(&self) -> &str {
        self.description.program_name()
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.description.field(place)
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }

    fn has_rings(&self) -> bool {
        true
    }

    /// A pattern that names the event picks all its variants.
    fn aliases(&self) -> [Option<FullName<'_>>; 2] {
        let is_variant = self.variant.is_some();
        [is_variant.then(|| self.description.full_name()), None]
    }

    fn is_again(&self, old: &Self) -> bool {
        self.is(&old.description) && self.number == old.number
    }
}

impl ProbeList for ProgramEvent {
    fn attach(&self, new: NewProbe<'_>) -> Result {
        match new.channel {
            Some(channel) if channel.is_given() => {
                self.rings.attach(new.probe, channel, self.has_probes())
            }
            _ => {
                self.probes.attach(new.probe)?;
                self.rings.announce(true);
                Ok(())
            }
        }
    }

    fn follow_tasks(&self) -> Result {
        // A set of cgroups changes who can make the record.
        self.rings.announce(self.has_probes());
        Ok(())
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        self.probes.detach(probe, removed);
        self.rings.detach(probe, self.has_probes());
    }
}
