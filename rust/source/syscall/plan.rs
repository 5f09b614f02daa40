// SPDX-License-Identifier: GPL-2.0

//! The plan by which a probe records a system call, computed when the module is compiled.

use super::describe::Call;
use super::pointed::{Pointed, ARGUMENTS_BYTES, LEAST_MAX};
use super::{Direction, COMPAT, COMPAT_CALL, KNOWN, SLOTS, UNKNOWN, UNKNOWN_CALL};
use crate::abi::schema::Field;
use crate::arch::registers::Register;
use crate::record::memory::{RecordWriter, Space, Tail};
use crate::sys::args::Registers;
use crate::sys::user_data::{UserData, PIECE_MAX};

/// The maximum count of numbers in a record: the call's number, and six arguments.
const MAX_NUMBERS: usize = 7;
/// The maximum count of arguments whose data is recorded.
pub(super) const MAX_PIECES: usize = 4;

/// The number of low bytes of a register that are recorded.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Width {
    U16 = 2,
    U32 = 4,
    U64 = 8,
}

/// A register that is recorded.
#[derive(Clone, Copy)]
struct Number {
    register: Register,
    width: Width,
}

/// An argument whose data is recorded.
#[derive(Clone, Copy)]
struct Piece {
    pointed: Pointed,
    address: Register,
    /// The register of the argument that says how much data there is.
    extent: Register,
}

/// The pieces of a call. They are kept apart from the plan, which must be small.
#[derive(Clone, Copy)]
struct Pointers {
    count: u8,
    pieces: [Piece; MAX_PIECES],
}

/// The data that was copied from user space for a record.
pub(super) type Pieces = UserData<MAX_PIECES>;

/// The plan for recording the entry or the exit of a call. It is small, so that all plans fit the cache.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Total bytes of all numbers.
    bytes: u8,
    count: u8,
    numbers: [Number; MAX_NUMBERS],
    /// The count of pieces from user space that follow the numbers.
    pub(super) pieces: u8,
    /// Minimum total bytes of all pieces.
    least: u8,
}

impl Plan {
    /// The plan for a record with `least` bytes of pieces, and without numbers.
    pub(super) const fn of_pieces(least: u8) -> Self {
        Self {
            pieces: 1,
            least,
            ..Self::new()
        }
    }

    const fn new() -> Self {
        Self {
            bytes: 0,
            count: 0,
            numbers: [Number {
                register: Register::RESULT,
                width: Width::U64,
            }; MAX_NUMBERS],
            pieces: 0,
            least: 0,
        }
    }

    const fn with(mut self, register: Register, size: Option<usize>) -> Self {
        let width = match size {
            Some(2) => Width::U16,
            Some(4) => Width::U32,
            Some(8) => Width::U64,
            _ => panic!("not the size of a number"),
        };
        self.numbers[self.count as usize] = Number { register, width };
        self.count += 1;
        self.bytes += width as u8;
        self
    }

    /// Adds the fields that come before all arguments: the call's number, its result.
    const fn with_fixed(mut self, fields: &[Field<'static>]) -> Self {
        let mut at = 0;
        while at < fields.len() {
            let register = match fields[at].name.as_bytes() {
                b"ret" => Register::RESULT,
                _ => Register::NUMBER,
            };
            self = self.with(register, fields[at].ty.size());
            at += 1;
        }
        self
    }

    const fn of(call: &Call, direction: Direction) -> Self {
        let mut plan = Self::new().with_fixed(call.before(direction));
        let mut at = 0;
        while at < call.arguments.len() {
            let kind = call.arguments[at].kind;
            if let Some(ty) = kind.number(direction) {
                plan = plan.with(register(call, at), ty.size());
            }
            if let Some(pointed) = kind.pointed(direction) {
                assert!(pointed.least() as usize <= LEAST_MAX);
                plan.pieces += 1;
                plan.least += pointed.least();
            }
            at += 1;
        }
        plan
    }

    /// Bytes of the smallest record, without the header.
    #[inline(always)]
    pub(super) fn least(&self) -> u64 {
        u64::from(self.bytes).wrapping_add(u64::from(self.least))
    }
}

impl Pointers {
    const fn of(call: &Call, direction: Direction) -> Self {
        let mut pointers = Self {
            count: 0,
            pieces: [Piece {
                pointed: Pointed::Text,
                address: Register::ARGUMENTS[0],
                extent: Register::ARGUMENTS[0],
            }; MAX_PIECES],
        };
        let mut at = 0;
        let mut most = 0;
        while at < call.arguments.len() {
            if let Some(pointed) = call.arguments[at].kind.pointed(direction) {
                most += match pointed {
                    Pointed::Arguments => ARGUMENTS_BYTES,
                    _ => PIECE_MAX,
                };
                assert!(most <= MAX_PIECES * PIECE_MAX);
                let is_last = at + 1 == call.arguments.len();
                pointers.pieces[pointers.count as usize] = Piece {
                    pointed,
                    address: register(call, at),
                    extent: match pointed {
                        Pointed::EpollEvents | Pointed::FilledText => Register::RESULT,
                        Pointed::DescriptorSet => register(call, 0),
                        _ if is_last => register(call, at),
                        _ => register(call, at + 1),
                    },
                };
                pointers.count += 1;
            }
            at += 1;
        }
        pointers
    }
}

pub(super) const fn register(call: &Call, argument: usize) -> Register {
    if call.slot == COMPAT {
        Register::COMPAT_ARGUMENTS[argument]
    } else {
        Register::ARGUMENTS[argument]
    }
}

/// The plans for the entries, or for the exits, of all calls, by slot.
pub(super) struct Plans {
    plans: [Plan; SLOTS as usize],
    pointers: [Pointers; SLOTS as usize],
    direction: Direction,
}

impl Plans {
    const fn of(direction: Direction) -> Self {
        let mut made = Self {
            plans: [Plan::of(UNKNOWN_CALL, direction); SLOTS as usize],
            pointers: [Pointers::of(UNKNOWN_CALL, direction); SLOTS as usize],
            direction,
        };
        let mut at = 0;
        while at <= KNOWN.len() {
            let call = if at < KNOWN.len() {
                &KNOWN[at]
            } else {
                COMPAT_CALL
            };
            made.plans[call.slot as usize] = Plan::of(call, direction);
            made.pointers[call.slot as usize] = Pointers::of(call, direction);
            at += 1;
        }
        made
    }

    /// The plan of the call in `slot`.
    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<&Plan> {
        self.plans.get(slot as usize)
    }

    /// Copies the data that the arguments of the call in `slot` point to. May fault and sleep.
    #[inline(always)]
    pub(super) fn copy(&self, slot: u32, registers: &Registers, to: &mut Pieces) {
        let result = registers.get(Register::RESULT) as i64;
        let is_filled = matches!(self.direction, Direction::Entry) || result >= 0;
        let Some(pointers) = self.pointers.get(slot as usize) else {
            return;
        };
        for piece in pointers.pieces.iter().take(pointers.count.into()) {
            let (address, extent) = (registers.get(piece.address), registers.get(piece.extent));
            // No data can be read at address 0.
            let address = if is_filled { address } else { 0 };
            piece.pointed.copy(address, extent, to);
        }
    }
}

/// The plans for the entries.
pub(super) static ENTRY: Plans = Plans::of(Direction::Entry);
/// The plans for the exits.
pub(super) static EXIT: Plans = Plans::of(Direction::Exit);

/// The slot of call `number`; the slot of unknown calls if the table does not reach so far.
#[inline(always)]
pub(super) fn slot(number: i32, compat: bool) -> u32 {
    if compat {
        COMPAT
    } else {
        // A negative number becomes a large one here, so it is unknown, too.
        (number as u32).min(UNKNOWN)
    }
}

/// A call's record, without the header.
pub(super) struct SyscallRecord<'a> {
    pub(super) plan: &'a Plan,
    pub(super) registers: &'a Registers,
    pub(super) pieces: &'a [u8],
}

impl<'a> SyscallRecord<'a> {
    /// Its size, and a function that writes it.
    #[inline(always)]
    pub(super) fn payload(self) -> (u64, impl FnOnce(RecordWriter<'_>) + 'a) {
        (
            self.len() as u64,
            #[inline(always)]
            move |to| to.put_tail(&self),
        )
    }
}

impl Tail for SyscallRecord<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        usize::from(self.plan.bytes).wrapping_add(self.pieces.len())
    }

    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        let plan = self.plan;
        for number in plan.numbers.iter().take(plan.count as usize) {
            let value = self.registers.get(number.register);
            match number.width {
                Width::U64 => space.put(value),
                Width::U32 => space.put(value as u32),
                Width::U16 => space.put(value as u16),
            }
        }
        space.put_bytes(self.pieces);
    }
}
