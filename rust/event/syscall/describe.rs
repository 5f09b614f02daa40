// SPDX-License-Identifier: GPL-2.0

//! From a line of the table to a description of a system call.
//!
//! The kinds of arguments, by the names that the table has for them:
//!
//! | kind | in the record |
//! | --- | --- |
//! | `int`, `uint`, `long`, `ulong` | as in C |
//! | `fd`, `pid`, `uid`, `mode`, `size`, `off` | what it says, as wide as its C type |
//! | `flags`, `bits` | 32 and 64 bits, in hexadecimal |
//! | `ptr` | an address in user space |
//! | `out` | an address that the call only writes to: in the record of the exit, as LTTng has it |
//! | `string` | a path or a name; the text itself |

use super::Direction;
use crate::abi::schema::{Field, FieldType};

/// A system call, or what stands for those that are not known.
pub(crate) struct Call {
    /// Its place among the system calls: the number, if it has one.
    pub(super) slot: u32,
    pub(super) entry_name: &'static str,
    pub(super) exit_name: &'static str,
    /// What ftrace and perf call its entry, below `syscalls`, if they know it.
    pub(super) kernel_entry_name: Option<&'static str>,
    /// The same for the exit.
    pub(super) kernel_exit_name: Option<&'static str>,
    /// What the entry's record has in front of the arguments.
    pub(super) before_arguments: &'static [Field<'static>],
    /// What the exit's record has in front of addresses that were written to.
    pub(super) at_exit: &'static [Field<'static>],
    /// In the order of the registers.
    pub(super) arguments: &'static [Argument],
}

/// An argument of a system call.
#[derive(Clone, Copy)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What becomes of an argument.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Recorded at the entry as it is.
    Number(FieldType<'static>),
    /// An address, recorded at the exit.
    Out,
    /// The address of a text, which is recorded at the entry, behind all numbers.
    Text,
}

impl Kind {
    /// How an address is recorded.
    pub(super) const ADDRESS: FieldType<'static> = FieldType::hex(64);
}

impl Call {
    /// The name of its entry or of its exit.
    pub(crate) fn name(&self, direction: Direction) -> &'static str {
        match direction {
            Direction::Entry => self.entry_name,
            Direction::Exit => self.exit_name,
        }
    }

    /// What ftrace and perf call it, below `syscalls`, if they know it.
    pub(crate) fn kernel_name(&self, direction: Direction) -> Option<&'static str> {
        match direction {
            Direction::Entry => self.kernel_entry_name,
            Direction::Exit => self.kernel_exit_name,
        }
    }

    /// Its place among the system calls.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// The fields of its entry's record.
    pub(crate) fn entry(&'static self) -> impl Iterator<Item = Field<'static>> {
        let numbers = self.arguments.iter().filter_map(|a| match a.kind {
            Kind::Number(ty) => Some(Field { name: a.name, ty }),
            _ => None,
        });
        let texts = self.arguments.iter().filter_map(|a| match a.kind {
            Kind::Text => Some(Field {
                name: a.name,
                ty: FieldType::String,
            }),
            _ => None,
        });
        let before = self.before_arguments.iter().copied();
        before.chain(numbers).chain(texts)
    }

    /// The fields of its exit's record.
    pub(crate) fn exit(&'static self) -> impl Iterator<Item = Field<'static>> {
        let written = self.arguments.iter().filter_map(|a| match a.kind {
            Kind::Out => Some(Field {
                name: a.name,
                ty: Kind::ADDRESS,
            }),
            _ => None,
        });
        self.at_exit.iter().copied().chain(written)
    }
}

/// The result, in the record of every exit.
pub(super) const RESULT: Field<'static> = Field {
    name: "ret",
    ty: FieldType::signed(64),
};

/// Which call it was, where the event's name does not say so.
pub(super) const NUMBER: Field<'static> = Field {
    name: "id",
    ty: FieldType::signed(32),
};

/// The table's syntax: `NUMBER name(argument: kind, ...);` each.
macro_rules! syscalls {
    ($($number:literal $name:ident($($arg:ident: $kind:ident),*);)*) => {
        /// All calls that are known, by number.
        pub(super) const LISTED: &[$crate::event::syscall::describe::Call] = &[$(
            $crate::event::syscall::describe::Call {
                slot: $number,
                entry_name: concat!("syscall_entry_", stringify!($name)),
                exit_name: concat!("syscall_exit_", stringify!($name)),
                kernel_entry_name: Some(concat!("sys_enter_", stringify!($name))),
                kernel_exit_name: Some(concat!("sys_exit_", stringify!($name))),
                before_arguments: &[],
                at_exit: &[$crate::event::syscall::describe::RESULT],
                arguments: &[$($crate::event::syscall::describe::Argument {
                    name: stringify!($arg),
                    kind: $crate::event::syscall::describe::kind!($kind),
                }),*],
            }
        ),*];
    };
}
pub(super) use syscalls;

macro_rules! kind {
    (out) => {
        $crate::event::syscall::describe::Kind::Out
    };
    (string) => {
        $crate::event::syscall::describe::Kind::Text
    };
    ($number:ident) => {
        $crate::event::syscall::describe::Kind::Number($crate::event::syscall::describe::number!(
            $number
        ))
    };
}
pub(super) use kind;

macro_rules! number {
    (int) => {
        $crate::abi::schema::FieldType::signed(32)
    };
    (fd) => {
        $crate::abi::schema::FieldType::signed(32)
    };
    (pid) => {
        $crate::abi::schema::FieldType::signed(32)
    };
    (uint) => {
        $crate::abi::schema::FieldType::unsigned(32)
    };
    (uid) => {
        $crate::abi::schema::FieldType::unsigned(32)
    };
    (flags) => {
        $crate::abi::schema::FieldType::hex(32)
    };
    (mode) => {
        $crate::abi::schema::FieldType::unsigned(16)
    };
    (long) => {
        $crate::abi::schema::FieldType::signed(64)
    };
    (off) => {
        $crate::abi::schema::FieldType::signed(64)
    };
    (ulong) => {
        $crate::abi::schema::FieldType::unsigned(64)
    };
    (size) => {
        $crate::abi::schema::FieldType::unsigned(64)
    };
    (bits) => {
        $crate::abi::schema::FieldType::hex(64)
    };
    (ptr) => {
        $crate::abi::schema::FieldType::hex(64)
    };
}
pub(super) use number;
