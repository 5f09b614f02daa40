// SPDX-License-Identifier: GPL-2.0

//! The bytes that calls such as read(2) and write(2) move: the first ones, in an event of their own.
//!
//! Few users want these bytes, and these calls are the most used ones. So the events of the calls do not have them.

use super::describe::Call;
use super::plan::{register, Plan};
use super::{Direction, KNOWN, SLOTS};
use crate::abi::schema::{Field, FieldType, Integer};
use crate::arch::registers::Register;
use crate::sys::args::Registers;
use crate::sys::user_data::{UserBytes, UserData, PIECE_MAX};

/// The fields before the bytes: the size of all, and the number of recorded ones.
const FIELDS: [Field<'static>; 3] = [
    Field::new("size", FieldType::unsigned(64)),
    Field::new("_data_length", FieldType::unsigned(32)),
    Field::new("data", FieldType::Sequence(Integer::hex(8), "_data_length")),
];
/// Bytes of these fields without the bytes themselves.
const LEAST: usize = 8 + 4;
/// Maximum number of recorded bytes.
const DATA_MAX: usize = PIECE_MAX - LEAST;

/// The plan for all these events.
pub(super) static PLAN: Plan = Plan::of_pieces(LEAST as u8);

/// The data of a record.
pub(super) type MovedBytes = UserData<1>;

/// The registers that say where bytes are.
#[derive(Clone, Copy)]
struct Place {
    address: Register,
    size: Register,
}

/// The places of the bytes that calls move in one direction, by slot.
pub(super) struct MovedPlaces([Option<Place>; SLOTS as usize]);

impl MovedPlaces {
    const fn of(direction: Direction) -> Self {
        let mut places = [None; SLOTS as usize];
        let mut at = 0;
        while at < KNOWN.len() {
            let call = &KNOWN[at];
            if let Some(argument) = call.data(direction) {
                places[call.slot as usize] = Some(Place {
                    address: register(call, argument),
                    size: match direction {
                        Direction::Entry => register(call, argument + 1),
                        Direction::Exit => Register::RESULT,
                    },
                });
            }
            at += 1;
        }
        Self(places)
    }

    /// Copies the first bytes that the call in `slot` moves. [`None`]: it moves none, or it failed. May fault and sleep.
    #[inline(never)]
    pub(super) fn copy(&self, slot: u32, registers: &Registers, to: &mut MovedBytes) -> Option<()> {
        let place = (*self.0.get(slot as usize)?)?;
        // A negative result is an error.
        let size = u64::try_from(registers.get(place.size) as i64).ok()?;
        let mut bytes = UserBytes::<DATA_MAX>::new();
        let len = if size < DATA_MAX as u64 {
            size as usize
        } else {
            DATA_MAX
        };
        // Bytes that cannot be read are recorded as none.
        let bytes = bytes.read(registers.get(place.address), len).unwrap_or(&[]);
        to.put(&size.to_ne_bytes());
        to.put(&(bytes.len() as u32).to_ne_bytes());
        to.put(bytes);
        Some(())
    }
}

/// The places of bytes that calls read.
pub(super) static GIVEN: MovedPlaces = MovedPlaces::of(Direction::Entry);
/// The places of bytes that calls write.
pub(super) static FILLED: MovedPlaces = MovedPlaces::of(Direction::Exit);

impl Call {
    /// A field of the event with the bytes.
    pub(super) fn data_field(place: usize) -> Option<Field<'static>> {
        FIELDS.get(place).copied()
    }
}
