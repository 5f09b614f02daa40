// SPDX-License-Identifier: GPL-2.0

//! The bytes that calls such as read(2) and write(2) move: the first ones, in an event of their own.
//!
//! Few users want these bytes, and these calls are the most used ones. So the events of the calls do not have them.

use super::describe::Call;
use super::plan::{register, Plan};
use super::pointed;
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

/// The bytes that a call moves in one direction.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    pub(super) direction: Direction,
    pub(super) bytes: DataPlace,
}

/// The place of the bytes that a call moves.
#[derive(Clone, Copy)]
pub(super) enum DataPlace {
    /// The bytes are at the argument; the next argument is their number.
    Argument,
    /// The bytes are in buffers. Structs `iovec` are at the argument; the next argument is their number.
    Vector,
    /// The bytes are in the buffers of the `struct msghdr` at the argument.
    Message,
}

/// The bytes of a call, and the registers that say where they are.
#[derive(Clone, Copy)]
struct Place {
    bytes: DataPlace,
    address: Register,
    extent: Register,
}

/// The places of the bytes that calls move in one direction, by slot.
pub(super) struct MovedPlaces {
    places: [Option<Place>; SLOTS as usize],
    direction: Direction,
}

impl MovedPlaces {
    const fn of(direction: Direction) -> Self {
        let mut places = [None; SLOTS as usize];
        let mut at = 0;
        while at < KNOWN.len() {
            let call = &KNOWN[at];
            if let Some((argument, bytes)) = call.data(direction) {
                places[call.slot as usize] = Some(Place {
                    bytes,
                    address: register(call, argument),
                    extent: register(call, argument + 1),
                });
            }
            at += 1;
        }
        Self { places, direction }
    }

    /// Copies the first bytes that the call in `slot` moves. [`None`]: it moves none, or it failed. May fault and sleep.
    #[inline(never)]
    pub(super) fn copy(&self, slot: u32, registers: &Registers, to: &mut MovedBytes) -> Option<()> {
        let place = (*self.places.get(slot as usize)?)?;
        let (address, extent) = (registers.get(place.address), registers.get(place.extent));
        // A negative result is an error.
        let size = |number: u64| u64::try_from(number as i64).ok();
        let returned = match self.direction {
            Direction::Entry => None,
            Direction::Exit => Some(size(registers.get(Register::RESULT))?),
        };
        match (place.bytes, returned) {
            (DataPlace::Argument, Some(returned)) => copy_bytes(address, returned, to),
            (DataPlace::Argument, None) => copy_bytes(address, size(extent)?, to),
            (DataPlace::Vector, returned) => copy_buffers(address, extent, returned, to),
            (DataPlace::Message, returned) => {
                let (vector, count) = pointed::vector_of_message(address);
                copy_buffers(vector, count, returned, to);
            }
        }
        Some(())
    }
}

/// Copies the first of `size` bytes at `address`. Bytes that cannot be read are recorded as none.
fn copy_bytes(address: u64, size: u64, to: &mut MovedBytes) {
    let mut bytes = UserBytes::<DATA_MAX>::new();
    let bytes = bytes.read(address, first_of(size)).unwrap_or(&[]);
    put(size, bytes, to);
}

/// Copies the first of `size` bytes in buffers, one buffer after the other; without a size, of all bytes in them.
fn copy_buffers(vector: u64, count: u64, size: Option<u64>, to: &mut MovedBytes) {
    let mut structs = UserBytes::new();
    let buffers = pointed::buffers(&mut structs, vector, count);
    let lengths = buffers.clone().map(|(_, len)| len);
    let size = size.unwrap_or_else(|| lengths.fold(0, u64::saturating_add));
    let mut left = first_of(size);
    let mut all = MovedBytes::new();
    for (address, len) in buffers {
        let len = first_of(len).min(left);
        let mut bytes = UserBytes::<DATA_MAX>::new();
        // Without these bytes, the place of the bytes in the next buffers would be unknown.
        let Some(bytes) = bytes.read(address, len) else {
            break;
        };
        all.put(bytes);
        left = left.wrapping_sub(len);
    }
    put(size, all.bytes(), to);
}

/// The number of recorded bytes of `size`.
fn first_of(size: u64) -> usize {
    if size < DATA_MAX as u64 {
        size as usize
    } else {
        DATA_MAX
    }
}

fn put(size: u64, bytes: &[u8], to: &mut MovedBytes) {
    to.put(&size.to_ne_bytes());
    to.put(&(bytes.len() as u32).to_ne_bytes());
    to.put(bytes);
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
