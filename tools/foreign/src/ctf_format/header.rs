// SPDX-License-Identifier: GPL-2.0

//! The header of an event: its id and its time. LTTng's two headers have a path of their own, because most traces have
//! them.

use super::bits::{Bits, Read};
use super::machine::Machine;
use super::model::*;
use super::plan::{Plan, Step};

/// The way to read the header of an event.
#[derive(Debug)]
pub enum Header {
    /// LTTng's, with an id and a time of these numbers of bits. The highest id announces a longer form.
    Lttng { id: u8, time: u8 },
    /// Any other.
    Steps(Vec<Step>),
}

impl Header {
    /// The header of a stream class.
    pub fn of(ty: Option<&Type>) -> Self {
        for (id, time) in [(5, 27), (16, 32)] {
            if ty.is_some_and(|ty| is_lttngs(ty, id, time)) {
                return Self::Lttng { id, time };
            }
        }
        Self::Steps(Plan::of_event_header(ty))
    }

    /// Reads a header. The machine has its id and its time.
    #[inline]
    pub fn read(&self, machine: &mut Machine, bits: &mut Bits<'_>, out: &mut Vec<u8>) -> Read<()> {
        let (id_bits, time_bits) = match self {
            Self::Lttng { id, time } => (*id, *time),
            Self::Steps(steps) => return machine.run(steps, bits, out),
        };
        bits.align(8);
        let escape = (1 << id_bits) - 1;
        let (id, low) = if id_bits == 5 {
            match bits.peek() & escape {
                id if id == escape => {
                    bits.bytes(1)?;
                    (id, 0)
                }
                id => (id, bits.little::<4>()? >> id_bits),
            }
        } else {
            match bits.little::<2>()? {
                id if id == escape => (id, 0),
                id => (id, bits.little::<4>()?),
            }
        };
        if id == escape {
            machine.found.id = Some(bits.little::<4>()?);
            let time = bits.little::<8>()?;
            machine.tick(time, 64);
        } else {
            machine.found.id = Some(id);
            machine.tick(low, time_bits);
        }
        Ok(())
    }
}

/// Whether a header is one of LTTng's, little endian and without padding.
fn is_lttngs(ty: &Type, id_bits: u8, time_bits: u8) -> bool {
    let escape = (1_u64 << id_bits) - 1;
    let is = |field: &Field, bits: u8, align: u32, role: Role| match &field.ty {
        Type::Integer(integer) | Type::Enumeration(integer, _) => {
            integer.bits == bits
                && integer.align == align
                && integer.order == Order::Little
                && !integer.is_signed
                && field.role == Some(role)
        }
        _ => false,
    };
    // A part of a word begins at any bit.
    let align = if id_bits % 8 == 0 { 8 } else { 1 };
    let [id, v] = ty.fields() else { return false };
    let Type::Variant(_, choices) = &v.ty else {
        return false;
    };
    let [short, long] = choices.as_slice() else {
        return false;
    };
    ty.align() == 8
        && is(id, id_bits, align, Role::EventId)
        && short.values == [(0, escape - 1)]
        && long.values == [(escape, escape)]
        && short.ty.align() == align
        && long.ty.align() == 8
        && matches!(short.ty.fields(), [time] if is(time, time_bits, align, Role::Time))
        && matches!(long.ty.fields(), [id, time]
            if is(id, 32, 8, Role::EventId) && is(time, 64, 8, Role::Time))
}
