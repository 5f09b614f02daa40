// SPDX-License-Identifier: GPL-2.0

//! The program that reads the fields of a dynamic event when the event fires.

use super::{NoEvent, LONGEST};
use crate::abi::schema::{FieldType, Integer};
use crate::arch::registers::Register;
use crate::input::dynamic::{Argument, Base, ProbeLine, ProbeReason, Site, Type};
use crate::record::memory::TEXT_MAX;
use crate::source::description::{DescribedType, Description};
use crate::sys::args::{Registers, Task};
use crate::sys::nofault::{AddressSpace, Somewhere, TextParts};
use kernel::prelude::*;
use kernel::str::CString;

/// The text that is recorded for unreadable text, as ftrace's.
const FAULT: &[u8] = b"(fault)";

/// The instructions for all fields. The fields that are read when a function begins come first.
pub(super) struct FetchProgram {
    at_entry: KVec<Fetch>,
    at_return: KVec<Fetch>,
}

/// The instructions for one field.
struct Fetch {
    from: Source,
    /// The address space of the source.
    home: AddressSpace,
    steps: KVec<Step>,
    as_what: As,
    /// Bytes of the record to keep free: the minimum that the later fields need.
    keep: usize,
}

/// A step from a pointer to the memory that it points to, at an offset.
struct Step {
    offset: i64,
    space: AddressSpace,
}

/// The first operand of a value, before any [`Step`].
#[derive(Clone, Copy)]
enum Source {
    Register(Register),
    /// The sum of two registers, the second one times a number.
    Sum {
        base: Register,
        index: Register,
        scale: u8,
    },
    /// The word at this index on the stack.
    StackWord(u16),
    Constant(u64),
    /// The nanoseconds that the call took.
    Duration,
    /// The name of the current task.
    Comm,
}

/// The part of a value that is recorded.
#[derive(Clone, Copy)]
enum As {
    /// The value's lowest bytes.
    Number(usize),
    /// The value's lowest `size` bytes, extended to `to` bytes.
    Extended {
        size: usize,
        is_signed: bool,
        to: usize,
    },
    /// The value's lowest bytes, whose order is not the machine's.
    Swapped(usize),
    /// Some of the value's bits, in this number of bytes.
    Bits { shift: u8, mask: u64, size: usize },
    /// The text at this address.
    Text { is_user: bool },
    /// 16 bytes of text.
    Comm,
}

impl FetchProgram {
    /// The program for a place of `probe`.
    pub(super) fn new<'a>(probe: &ProbeLine<'a>, site: &Site<'a>) -> Result<Self, NoEvent<'a>> {
        let mut program = Self {
            at_entry: KVec::new(),
            at_return: KVec::new(),
        };
        // A handler of a uprobe may sleep, so it may fault.
        let home = if probe.place.is_in_file() {
            AddressSpace::UserFaults
        } else {
            AddressSpace::Kernel
        };
        let types = probe.recorded_types();
        for argument in site.arguments() {
            let argument = argument.map_err(NoEvent::Wrong)?;
            let fetch = Fetch::new(&argument, types.of(&argument), home)?;
            let fetches = match is_at_return(probe, &argument) {
                true => &mut program.at_return,
                false => &mut program.at_entry,
            };
            fetches.push(fetch, GFP_KERNEL)?;
        }
        let mut keep = 0;
        let fetches = Iterator::chain(program.at_entry.iter_mut(), &mut program.at_return);
        for fetch in fetches.rev() {
            fetch.keep = keep;
            keep += fetch.least();
        }
        Ok(program)
    }

    /// Adds the fields to the description of the event.
    pub(super) fn describe<'a>(
        &self,
        probe: &ProbeLine<'a>,
        site: &Site<'a>,
        description: &mut Description,
    ) -> Result<(), NoEvent<'a>> {
        let types = probe.recorded_types();
        for (at_return, fetches) in [(false, &self.at_entry), (true, &self.at_return)] {
            let arguments = site.arguments().filter_map(Result::ok);
            let here = arguments.filter(|argument| is_at_return(probe, argument) == at_return);
            for (argument, fetch) in here.zip(fetches) {
                add_field(description, &argument, types.of(&argument), fetch)?;
            }
        }
        Ok(())
    }

    /// Maximum number of bytes of the fields of the entry.
    pub(super) fn most_at_entry(&self) -> usize {
        let most = self.at_entry.iter().map(Fetch::most);
        most.sum::<usize>().min(LONGEST)
    }

    /// Returns the fields of the entry.
    pub(super) fn fetch(&self, registers: &Registers) -> TextParts<LONGEST> {
        let mut record = TextParts::new();
        self.fetch_at_entry(registers, &mut record);
        record
    }

    /// Reads the fields of the entry. Called when code is reached or a function begins.
    pub(super) fn fetch_at_entry(&self, registers: &Registers, to: &mut TextParts<LONGEST>) {
        for fetch in &self.at_entry {
            fetch.fetch(registers, 0, to);
        }
    }

    /// Reads the fields of the return. Called when a function returns, `took` nanoseconds after its call.
    pub(super) fn fetch_at_return(
        &self,
        registers: &Registers,
        took: u64,
        to: &mut TextParts<LONGEST>,
    ) {
        for fetch in &self.at_return {
            fetch.fetch(registers, took, to);
        }
    }
}

/// Whether the argument is read at the return. The function's own arguments may be lost by then.
fn is_at_return(probe: &ProbeLine<'_>, argument: &Argument<'_>) -> bool {
    probe.at_return && !matches!(argument.base, Base::Argument(_) | Base::Comm)
}

/// Adds a field that is recorded with the type `recorded`.
fn add_field(
    description: &mut Description,
    argument: &Argument<'_>,
    recorded: Option<Type>,
    fetch: &Fetch,
) -> Result {
    let name = match argument.name {
        Some(name) => CString::try_from_fmt(fmt!("{name}"))?,
        None => CString::try_from_fmt(fmt!("arg{}", argument.number))?,
    };
    let integer = |integer| DescribedType::Fixed(FieldType::Integer(integer));
    let kind = match (fetch.as_what, recorded) {
        (As::Comm, _) => DescribedType::Fixed(FieldType::text(16)),
        (As::Text { .. }, _) => DescribedType::String,
        (_, Some(Type::Unsigned(bits) | Type::BigEndian(bits))) => integer(Integer::unsigned(bits)),
        (_, Some(Type::Signed(bits))) => integer(Integer::signed(bits)),
        (_, Some(Type::Hex(bits))) => integer(Integer::hex(bits)),
        (_, Some(Type::BitField { size, .. })) => integer(Integer::unsigned(size)),
        _ if fetch.home.is_user() => integer(Integer::hex(64)),
        // The value may be a kernel address.
        _ => integer(Integer::address()),
    };
    description.add_field(name.to_bytes(), kind)
}

impl Fetch {
    fn new<'a>(
        argument: &Argument<'a>,
        recorded: Option<Type>,
        home: AddressSpace,
    ) -> Result<Self, NoEvent<'a>> {
        let refuse = |reason| {
            let at = argument.at;
            NoEvent::Wrong(crate::input::caret::Error { at, reason })
        };
        let register =
            |name| Register::by_name(name).ok_or_else(|| refuse(ProbeReason::NoRegister));
        let from = match argument.base {
            Base::Register(name) => Source::Register(register(name)?),
            Base::Sum { base, index, scale } => Source::Sum {
                base: register(base)?,
                index: register(index)?,
                scale,
            },
            Base::Argument(number) => {
                let place = usize::from(number).wrapping_sub(1);
                let register = Register::FUNCTION_ARGUMENTS.get(place).copied();
                Source::Register(register.ok_or_else(|| refuse(ProbeReason::NoArgument))?)
            }
            Base::Result => Source::Register(Register::RESULT),
            Base::Duration => Source::Duration,
            Base::Stack => Source::Register(Register::STACK),
            Base::StackWord(words) => Source::StackWord(words),
            Base::Memory(address) | Base::Constant(address) => Source::Constant(address),
            Base::Comm => Source::Comm,
        };
        let mut steps = KVec::new();
        if let Base::Memory(_) = argument.base {
            let step = Step {
                offset: 0,
                space: home,
            };
            steps.push(step, GFP_KERNEL)?;
        }
        for step in argument.steps() {
            let step = Step {
                offset: step.offset,
                space: home.or_user(step.is_user),
            };
            steps.push(step, GFP_KERNEL)?;
        }
        let bytes = |bits: u8| usize::from(bits / 8);
        let as_what = match argument.ty {
            _ if from.is_comm() => As::Comm,
            Some(ty @ (Type::Unsigned(bits) | Type::Signed(bits) | Type::Hex(bits))) => {
                let to = recorded.and_then(Type::number).map_or(bits, |(to, _)| to);
                match to == bits {
                    true => As::Number(bytes(bits)),
                    false => As::Extended {
                        size: bytes(bits),
                        is_signed: matches!(ty, Type::Signed(_)),
                        to: bytes(to),
                    },
                }
            }
            Some(Type::BigEndian(bits)) => As::Swapped(bytes(bits)),
            Some(Type::BitField { bits, shift, size }) => As::Bits {
                shift,
                mask: u64::MAX >> 64_u8.wrapping_sub(bits),
                size: bytes(size),
            },
            Some(Type::Text { is_user }) => As::Text { is_user },
            Some(Type::Symbol) | None => As::Number(8),
        };
        Ok(Self {
            from,
            home,
            steps,
            as_what,
            keep: 0,
        })
    }

    /// Minimum number of bytes of the field.
    fn least(&self) -> usize {
        match self.as_what {
            As::Number(size)
            | As::Swapped(size)
            | As::Bits { size, .. }
            | As::Extended { to: size, .. } => size,
            As::Text { .. } => FAULT.len() + 1,
            As::Comm => 16,
        }
    }

    /// Maximum number of bytes of the field.
    fn most(&self) -> usize {
        match self.as_what {
            As::Text { .. } => TEXT_MAX + 1,
            As::Number(_) | As::Extended { .. } | As::Swapped(_) | As::Bits { .. } | As::Comm => {
                self.least()
            }
        }
    }

    #[inline(always)]
    fn fetch(&self, registers: &Registers, took: u64, to: &mut TextParts<LONGEST>) {
        match (self.as_what, self.from) {
            (As::Number(size), Source::Duration) => to.put_number(took, size),
            // A fast path for the most frequent case.
            (As::Number(size), Source::Register(register)) if self.steps.is_empty() => {
                to.put_number(registers.get(register), size);
            }
            _ => self.fetch_any(registers, to),
        }
    }

    #[inline(never)]
    fn fetch_any(&self, registers: &Registers, to: &mut TextParts<LONGEST>) {
        match self.as_what {
            As::Comm => to.put(&Task::current().comm()),
            As::Number(size) => {
                let value = self.value(registers, size).unwrap_or(0);
                to.put_number(value, size);
            }
            As::Extended {
                size,
                is_signed,
                to: all,
            } => {
                let value = self.value(registers, size).unwrap_or(0);
                let unused = 8_u32.wrapping_mul(8_u32.wrapping_sub(size as u32));
                let value = value.wrapping_shl(unused);
                let value = match is_signed {
                    true => (value as i64).wrapping_shr(unused) as u64,
                    false => value.wrapping_shr(unused),
                };
                to.put_number(value, all);
            }
            As::Swapped(size) => {
                let value = self.value(registers, size).unwrap_or(0).swap_bytes();
                // The lowest bytes are the highest ones now.
                let unused = 8_u32.wrapping_mul(8_u32.wrapping_sub(size as u32));
                to.put_number(value.wrapping_shr(unused), size);
            }
            As::Bits { shift, mask, size } => {
                let value = self.value(registers, size).unwrap_or(0) >> shift & mask;
                to.put_number(value, size);
            }
            As::Text { is_user } => {
                let room = LONGEST
                    .saturating_sub(to.bytes().len())
                    .saturating_sub(self.keep)
                    .saturating_sub(1);
                let text = self.place(registers);
                let read = text.is_some_and(|mut text| {
                    text.space = text.space.or_user(is_user);
                    to.put_text(text, room.min(TEXT_MAX))
                });
                if !read {
                    to.put(FAULT);
                }
                to.put(&[0]);
            }
        }
    }

    /// Returns the value. If it is in memory, reads `size` bytes of it. [`None`]: they cannot be read.
    fn value(&self, registers: &Registers, size: usize) -> Option<u64> {
        let place = self.place(registers)?;
        if self.steps.is_empty() {
            return Some(place.address);
        }
        place.read(size)
    }

    /// The place of the value in memory; if the value is not in memory, `address` is the value itself.
    fn place(&self, registers: &Registers) -> Option<Somewhere> {
        let mut place = Somewhere {
            address: self.from.value(registers, self.home)?,
            space: self.home,
        };
        for (number, step) in self.steps.iter().enumerate() {
            if number > 0 {
                place.address = place.read(8)?;
            }
            place.address = place.address.wrapping_add(step.offset as u64);
            place.space = step.space;
        }
        Some(place)
    }
}

impl Source {
    fn is_comm(self) -> bool {
        matches!(self, Self::Comm)
    }

    fn value(self, registers: &Registers, home: AddressSpace) -> Option<u64> {
        match self {
            Self::Register(register) => Some(registers.get(register)),
            Self::Sum { base, index, scale } => {
                let index = registers.get(index).wrapping_mul(scale.into());
                Some(registers.get(base).wrapping_add(index))
            }
            Self::Constant(value) => Some(value),
            Self::StackWord(words) => {
                let stack = registers.get(Register::STACK);
                Somewhere {
                    address: stack.wrapping_add(u64::from(words).wrapping_mul(8)),
                    space: home,
                }
                .read(8)
            }
            Self::Duration | Self::Comm => None,
        }
    }
}
