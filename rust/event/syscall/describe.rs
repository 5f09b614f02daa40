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
//! | `peer`, `own` | the address of a socket, of the other side or its own: that in user space, and what is there |
//! | `timespec`, `itimerspec`, `filetimes` | an address in user space, and the times that are there |
//! | `epoll` | an address in user space, and the events and the data that are there |
//! | `pollset` | an address in user space, and the first descriptors and what is asked of each |
//!
//! What is in user space stands behind all numbers. What cannot be read is 0, or empty; the call says by its
//! result whether it could.

use super::pointed::{Pointed, FAMILY};
use super::Direction;
use crate::abi::schema::{Field, FieldType, Integer};

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
    /// An address, recorded at the entry; and behind all numbers what is there, as these fields.
    Pointer(Pointed, &'static [Field<'static>]),
}

impl Kind {
    /// How an address is recorded.
    pub(super) const ADDRESS: FieldType<'static> = FieldType::hex(64);

    /// What is copied from where it points to.
    pub(super) const fn pointed(self) -> Option<Pointed> {
        match self {
            Self::Text => Some(Pointed::Text),
            Self::Pointer(pointed, _) => Some(pointed),
            Self::Number(_) | Self::Out => None,
        }
    }
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
            Kind::Pointer(..) => Some(Field {
                name: a.name,
                ty: Kind::ADDRESS,
            }),
            Kind::Text | Kind::Out => None,
        });
        let pieces = self.arguments.iter().flat_map(|a| {
            let (text, fields) = match a.kind {
                Kind::Text => (Some(a.name), &[][..]),
                Kind::Pointer(_, fields) => (None, fields),
                Kind::Number(_) | Kind::Out => (None, &[][..]),
            };
            let text = text.map(|name| Field {
                name,
                ty: FieldType::String,
            });
            text.into_iter().chain(fields.iter().copied())
        });
        let before = self.before_arguments.iter().copied();
        before.chain(numbers).chain(pieces)
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

pub(super) const fn field(name: &'static str, ty: FieldType<'static>) -> Field<'static> {
    Field { name, ty }
}

/// Where a socket is connected to, by LTTng's names.
pub(super) const PEER: Kind = Kind::Pointer(
    Pointed::SocketAddress,
    &[
        field("family", FAMILY),
        field("dport", FieldType::unsigned(16)),
        V4_LEN,
        V4,
        V6_LEN,
        V6,
        PATH,
    ],
);

/// The address of a socket itself.
pub(super) const OWN: Kind = Kind::Pointer(
    Pointed::SocketAddress,
    &[
        field("family", FAMILY),
        field("port", FieldType::unsigned(16)),
        V4_LEN,
        V4,
        V6_LEN,
        V6,
        PATH,
    ],
);

const V4_LEN: Field<'static> = field("_v4addr_length", FieldType::unsigned(32));
const V4: Field<'static> = field("v4addr", sequence(Integer::unsigned(8), "_v4addr_length"));
const V6_LEN: Field<'static> = field("_v6addr_length", FieldType::unsigned(32));
const V6: Field<'static> = field("v6addr", sequence(Integer::hex(8), "_v6addr_length"));
const PATH: Field<'static> = field("sun_path", FieldType::String);

/// What an epoll instance shall tell of a descriptor, and by what.
pub(super) const EPOLL: Kind = Kind::Pointer(
    Pointed::EpollEvent,
    &[
        field("events", FieldType::hex(32)),
        field("data", FieldType::hex(64)),
    ],
);

/// Descriptors that are waited for, and for what.
pub(super) const POLL_SET: Kind = Kind::Pointer(
    Pointed::PollSet,
    &[
        field("_fds_length", FieldType::unsigned(32)),
        field("fds", sequence(Integer::signed(32), "_fds_length")),
        field("_events_length", FieldType::unsigned(32)),
        field("events", sequence(Integer::hex(16), "_events_length")),
    ],
);

const fn sequence(of: Integer, length: &'static str) -> FieldType<'static> {
    FieldType::Sequence(of, length)
}

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
                    kind: $crate::event::syscall::describe::kind!($arg $kind),
                }),*],
            }
        ),*];
    };
}
pub(super) use syscalls;

macro_rules! kind {
    ($arg:ident out) => {
        $crate::event::syscall::describe::Kind::Out
    };
    ($arg:ident string) => {
        $crate::event::syscall::describe::Kind::Text
    };
    ($arg:ident peer) => {
        $crate::event::syscall::describe::PEER
    };
    ($arg:ident own) => {
        $crate::event::syscall::describe::OWN
    };
    ($arg:ident timespec) => {
        $crate::event::syscall::describe::words!(2, $arg, "_sec", "_nsec")
    };
    ($arg:ident itimerspec) => {
        $crate::event::syscall::describe::words!(
            4,
            $arg,
            "_interval_sec",
            "_interval_nsec",
            "_value_sec",
            "_value_nsec"
        )
    };
    ($arg:ident filetimes) => {
        $crate::event::syscall::describe::words!(
            4,
            $arg,
            "_access_sec",
            "_access_nsec",
            "_modify_sec",
            "_modify_nsec"
        )
    };
    ($arg:ident epoll) => {
        $crate::event::syscall::describe::EPOLL
    };
    ($arg:ident pollset) => {
        $crate::event::syscall::describe::POLL_SET
    };
    ($arg:ident $number:ident) => {
        $crate::event::syscall::describe::Kind::Number($crate::event::syscall::describe::number!(
            $number
        ))
    };
}
pub(super) use kind;

macro_rules! words {
    ($count:literal, $arg:ident, $($name:literal),*) => {
        $crate::event::syscall::describe::Kind::Pointer(
            $crate::event::syscall::pointed::Pointed::Words($count),
            &[$($crate::event::syscall::describe::field(
                concat!(stringify!($arg), $name),
                $crate::abi::schema::FieldType::signed(64),
            )),*],
        )
    };
}
pub(super) use words;

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
