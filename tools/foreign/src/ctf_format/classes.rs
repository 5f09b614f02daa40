// SPDX-License-Identifier: GPL-2.0

//! Makes rtrace's stream classes of a trace's, with the steps that translate their packets.

use super::header::Header;
use super::model::*;
use super::plan::{Plan, Step};
use crate::content::IDS;
use ctf::{Clock, EventLayout, EventLayouts};
use rtrace_abi::header::Layout;
use std::collections::HashMap;
use uuid::Uuid;

/// The magic number of a packet.
pub const MAGIC: u32 = 0xC1FC_1FC1;

/// The translation of a trace.
#[derive(Debug)]
pub struct TracePlan {
    /// The trace's id, which each packet has.
    pub uuid: Option<Uuid>,
    /// The magic number as bytes, if packets begin with it.
    pub magic: Option<[u8; 4]>,
    /// Reads the header of a packet.
    pub packet_header: Vec<Step>,
    /// The number of kept values.
    pub places: u16,
    /// The stream classes.
    pub classes: Vec<ClassPlan>,
}

/// The translation of a stream class.
#[derive(Debug)]
pub struct ClassPlan {
    /// Its number in the trace.
    pub id: u64,
    /// Its number in rtrace's description.
    pub own: u32,
    /// Reads the context of a packet, and writes the fields that have no meaning for the reader.
    pub packet_context: Vec<Step>,
    /// Reads the header of an event.
    pub header: Header,
    /// Translates the context of an event.
    pub context: Vec<Step>,
    /// The events.
    pub events: Vec<EventPlan>,
    /// Index of an event by its id, for small ids; [`NONE`] if there is no such event.
    pub small: Vec<u32>,
    /// Index of an event by its id, for other ids.
    pub large: HashMap<u64, u32>,
    /// The clock, and that of the whole trace, if they differ.
    pub clocks: Option<(Clock, Clock)>,
}

/// The translation of an event.
#[derive(Debug)]
pub struct EventPlan {
    /// Translates its own context and its fields.
    pub steps: Vec<Step>,
}

/// No index.
const NONE: u32 = u32::MAX;

/// Ids below this number have a place in a table, for any number of events.
const SMALL: u64 = 64;

impl ClassPlan {
    /// A value of the class's clock as one of the trace's.
    #[inline]
    pub fn time(&self, value: u64) -> u64 {
        match &self.clocks {
            None => value,
            Some((from, to)) => to.value(from.since_epoch(value)),
        }
    }

    /// The index of the event with this id.
    #[inline]
    pub fn event(&self, id: u64) -> Option<u32> {
        let small = usize::try_from(id).ok().and_then(|id| self.small.get(id));
        match small {
            Some(&place) if place != NONE => Some(place),
            _ if self.large.is_empty() => None,
            _ => self.large.get(&id).copied(),
        }
    }
}

/// Makes the plan of a trace whose first class gets the number `first`, and its stream classes. `clock` is the clock of
/// the whole trace.
pub fn plan(
    description: &Description,
    places: u16,
    first: u32,
    clock: &ClockClass,
) -> Result<(TracePlan, Vec<ctf::StreamClass>), String> {
    let mut classes = Vec::new();
    let mut own = Vec::new();
    for (number, class) in (first..).zip(&description.streams) {
        if class.events.len() >= IDS as usize {
            let count = class.events.len();
            return Err(format!(
                "stream {} has {count} events, more than rtrace reads",
                class.id
            ));
        }
        let has_underscores = description.has_underscores;
        let packet_context = Plan::of_header(class.packet_context.as_ref(), has_underscores);
        let mut context = Plan::new(has_underscores);
        context.add(class.context.as_ref());
        let mut contexts = packet_context.fields;
        let before = contexts.len();
        // Lengths in the context of a packet are before those in the context of an event.
        contexts.extend(context.fields.into_iter().map(|field| shift(field, before)));
        let (mut layouts, mut events) = (EventLayouts::default(), Vec::new());
        let (mut small, mut large) = (Vec::new(), HashMap::new());
        for (id, event) in (0..).zip(&class.events) {
            let mut plan = Plan::new(has_underscores);
            plan.add(event.context.as_ref());
            plan.add(event.payload.as_ref());
            layouts.insert(EventLayout::new(
                number,
                id,
                event.name.clone(),
                plan.fields,
            ));
            events.push(EventPlan { steps: plan.steps });
            // The size of the table is at most a multiple of the number of events.
            if event.id < SMALL + 4 * class.events.len() as u64 {
                let place = event.id as usize;
                small.resize(small.len().max(place + 1), NONE);
                small[place] = id;
            } else {
                large.insert(event.id, id);
            }
        }
        let own_clock = clock_of(description, class);
        classes.push(ClassPlan {
            id: class.id,
            own: number,
            packet_context: packet_context.steps,
            header: Header::of(class.header.as_ref()),
            context: context.steps,
            events,
            small,
            large,
            clocks: own_clock
                .filter(|own| !is_same(own, clock))
                .map(|own| (to_clock(own), to_clock(clock))),
        });
        own.push(ctf::StreamClass::new(Layout::Large, contexts, layouts));
    }
    let header = description.packet_header.as_ref();
    let plan = TracePlan {
        uuid: description.uuid,
        magic: header.and_then(|ty| magic(ty.fields().first()?)),
        packet_header: Plan::of_event_header(header),
        places,
        classes,
    };
    Ok((plan, own))
}

/// The bytes of the magic number, if the first field of a packet is that.
fn magic(first: &Field) -> Option<[u8; 4]> {
    match (&first.ty, first.role) {
        (Type::Integer(integer), Some(Role::Magic)) => Some(match integer.order {
            Order::Little => MAGIC.to_le_bytes(),
            Order::Big => MAGIC.to_be_bytes(),
        }),
        _ => None,
    }
}

/// A field that follows `before` other fields.
fn shift(mut field: ctf::FieldLayout, before: usize) -> ctf::FieldLayout {
    if let ctf::Type::Sequence(_, length) = &mut field.ty {
        *length += before;
    }
    field
}

/// The clock of a stream class.
pub fn clock_of<'a>(description: &'a Description, class: &StreamClass) -> Option<&'a ClockClass> {
    let types = [&class.header, &class.packet_context];
    let named = class.clock.clone();
    let named = named.or_else(|| types.into_iter().flatten().find_map(clock_in));
    match named {
        Some(name) => description.clocks.iter().find(|clock| clock.name == name),
        None => description.clocks.first(),
    }
}

/// The name of the first clock in a type.
fn clock_in(ty: &Type) -> Option<String> {
    match ty {
        Type::Integer(integer) | Type::Enumeration(integer, _) => integer.clock.clone(),
        Type::Structure(fields, _) => fields.iter().find_map(|field| clock_in(&field.ty)),
        Type::Variant(_, choices) => choices.iter().find_map(|choice| clock_in(&choice.ty)),
        _ => None,
    }
}

/// Whether two clocks show the same values. The offset of one clock is measured anew for each trace.
fn is_same(a: &ClockClass, b: &ClockClass) -> bool {
    let is_one = a.identity.is_some() && a.identity == b.identity;
    a.frequency == b.frequency && (is_one || (a.offset_s, a.offset) == (b.offset_s, b.offset))
}

/// The clock in rtrace's form.
pub fn to_clock(clock: &ClockClass) -> Clock {
    Clock {
        frequency: clock.frequency,
        offset_s: clock.offset_s,
        offset: clock.offset,
    }
}
