// SPDX-License-Identifier: GPL-2.0

//! Converts a line of the table to the description of a system call.
//!
//! The kinds of arguments, by their names in the table:
//!
//! | kind | recorded |
//! | --- | --- |
//! | `int`, `uint`, `long`, `ulong` | as in C |
//! | `fd`, `pid`, `uid`, `mode`, `size`, `off` | a number of that meaning, as wide as its C type |
//! | `flags`, `bits` | 32 and 64 bits, in hexadecimal |
//! | `ptr` | an address in user space |
//! | `out` | an address that the call only writes to: in the record of the exit, as in LTTng |
//! | `given_data`, `filled_data` | as `ptr` and `out`; [another event](super::data) has the bytes there |
//! | `string` | the text of a path or a name |
//! | `peer`, `own` | an address in user space, and the socket address there: the peer's, or the socket's own |
//! | `timespec`, `timeval`, `itimerspec`, `filetimes` | an address in user space, and the times there |
//! | `sigset`, `sigaction`, `rlimit`, `clone_args`, `open_how` | an address in user space, and the structure there |
//! | `argv` | an address in user space, and the texts of a program's arguments |
//! | `envp` | an address in user space, and the number of environment variables there |
//! | `epoll` | an address in user space, and the events and the data there |
//! | `pollset` | a user-space address, and the first descriptors with requested events; at exit the returned events |
//! | `readset`, `writeset`, `exceptset` | a user-space address, the set's first descriptors; at exit the ready ones |
//! | `iovec` | an address in user space, and the lengths of the first buffers |
//! | `given_iovec`, `filled_iovec` | as `iovec`; [another event](super::data) has the bytes of the buffers |
//! | `message` | an address in user space, and the socket address and the lengths of the first buffers there |
//! | `received` | an address in user space; at the exit the same data as for `message` |
//! | `connected` | an address in user space; at the exit the socket address there |
//! | `sender`, `name` | as `out`, and the socket address there: another socket's, or the socket's own |
//! | `epolled` | as `out`, and the reports for the first descriptors |
//! | `filled_timespec`, `filled_sigset`, `filled_sigaction`, `filled_rlimit` | as `out`, and the structure there |
//! | `filled_pair`, `status` | as `out`, and the two integers there, or the one |
//! | `filled_text` | as `out`, and the text there, whose length is the call's result |
//! | `stat`, `statx` | as `out`, and some attributes of the file |
//!
//! Data from user space follows all numbers. Data that cannot be read, or that was not written because the call
//! failed, is 0 or empty.

use super::data::{DataPlace, Moved};
use super::pointed::Pointed;
use super::Direction;
use crate::abi::schema::{Field, FieldType};

/// A system call, or a substitute for unknown calls.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// The call's place among the system calls: its number, if it has one.
    pub(crate) slot: u32,
    /// The name of the event with the bytes that the call moves, if it moves any.
    pub(crate) data_name: &'static str,
    pub(crate) entry_name: &'static str,
    pub(crate) exit_name: &'static str,
    /// The entry's name in ftrace and perf, below `syscalls`, if they know the call.
    pub(crate) kernel_entry_name: Option<&'static str>,
    /// The exit's name in ftrace and perf.
    pub(crate) kernel_exit_name: Option<&'static str>,
    /// The fields before the arguments, in the record of the entry.
    pub(crate) before_arguments: &'static [Field<'static>],
    /// The fields before the addresses that the call wrote to, in the record of the exit.
    pub(crate) at_exit: &'static [Field<'static>],
    /// The arguments, in the order of the registers.
    pub(crate) arguments: &'static [SyscallArgument],
}

/// An argument of a system call.
#[derive(Clone, Copy)]
pub(crate) struct SyscallArgument {
    pub(crate) name: &'static str,
    pub(crate) kind: ArgumentKind,
}

/// The way in which an argument is recorded.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentKind {
    /// A number, recorded at the entry.
    Number(FieldType<'static>),
    /// The address of a text. The text is recorded at the entry, after all numbers.
    Text,
    /// Another address.
    Address {
        /// The record that contains the address.
        at: Direction,
        /// The data at the address that is recorded at the entry, after all numbers.
        given: Option<PointedFields>,
        /// The data at the address that is recorded at the exit, after all numbers.
        filled: Option<PointedFields>,
        /// The bytes of any form that the call moves. They have an event of their own.
        moved: Option<Moved>,
    },
}

/// The data at an address, and its fields. A text has no fields here: its only field has the argument's name.
#[derive(Clone, Copy)]
pub(crate) struct PointedFields {
    pub(super) pointed: Pointed,
    pub(crate) fields: &'static [Field<'static>],
}

impl ArgumentKind {
    /// The type of an address.
    const ADDRESS: FieldType<'static> = FieldType::hex(64);

    /// The type of the argument's number in the record of this direction; [`None`]: that record has no such number.
    pub(crate) const fn number(self, direction: Direction) -> Option<FieldType<'static>> {
        match (self, direction) {
            (Self::Number(ty), Direction::Entry) => Some(ty),
            (Self::Address { at, .. }, _) if at as u8 == direction as u8 => Some(Self::ADDRESS),
            _ => None,
        }
    }

    /// The data at the address that is recorded in this direction.
    const fn target(self, direction: Direction) -> Option<PointedFields> {
        match (self, direction) {
            (Self::Text, Direction::Entry) => Some(PointedFields {
                pointed: Pointed::Text,
                fields: &[],
            }),
            (Self::Address { given, .. }, Direction::Entry) => given,
            (Self::Address { filled, .. }, Direction::Exit) => filled,
            _ => None,
        }
    }

    /// Where the bytes are that move in this direction.
    pub(super) const fn bytes(self, direction: Direction) -> Option<DataPlace> {
        match self {
            Self::Address {
                moved: Some(moved), ..
            } if moved.direction as u8 == direction as u8 => Some(moved.bytes),
            _ => None,
        }
    }

    /// The kind of data that is copied from the address.
    pub(super) const fn pointed(self, direction: Direction) -> Option<Pointed> {
        match self.target(direction) {
            Some(target) => Some(target.pointed),
            None => None,
        }
    }
}

impl Call {
    /// The name of the call.
    pub(super) const fn call_name(&self) -> &'static [u8] {
        let (_, name) = self.entry_name.as_bytes().split_at("syscall_entry_".len());
        name
    }

    /// The name of the call's entry or exit.
    pub(crate) fn name(&self, direction: Direction) -> &'static str {
        match direction {
            Direction::Entry => self.entry_name,
            Direction::Exit => self.exit_name,
        }
    }

    /// The name of the call's entry or exit in ftrace and perf, below `syscalls`, if they know the call.
    pub(crate) fn kernel_name(&self, direction: Direction) -> Option<&'static str> {
        match direction {
            Direction::Entry => self.kernel_entry_name,
            Direction::Exit => self.kernel_exit_name,
        }
    }

    /// The place of the argument whose bytes move in this direction, if the call has one.
    pub(super) const fn data(&self, direction: Direction) -> Option<(usize, DataPlace)> {
        let mut at = 0;
        while at < self.arguments.len() {
            if let Some(bytes) = self.arguments[at].kind.bytes(direction) {
                return Some((at, bytes));
            }
            at += 1;
        }
        None
    }

    /// The call's place among the system calls.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// The fields before the arguments in the call's record.
    pub(crate) const fn before(&self, direction: Direction) -> &'static [Field<'static>] {
        match direction {
            Direction::Entry => self.before_arguments,
            Direction::Exit => self.at_exit,
        }
    }

    /// The fields of the call's record.
    pub(crate) fn fields(
        &'static self,
        direction: Direction,
    ) -> impl Iterator<Item = Field<'static>> {
        let numbers = self.arguments.iter().filter_map(move |argument| {
            let ty = argument.kind.number(direction)?;
            Some(Field::new(argument.name, ty))
        });
        let pieces = self.arguments.iter().flat_map(move |argument| {
            let target = argument.kind.target(direction);
            let is_text = target.is_some_and(|target| matches!(target.pointed, Pointed::Text));
            let text = is_text.then(|| Field::new(argument.name, FieldType::String));
            let fields = target.map_or(&[][..], |target| target.fields);
            text.into_iter().chain(fields.iter().copied())
        });
        let before = self.before(direction).iter().copied();
        before.chain(numbers).chain(pieces)
    }
}

/// The result, in the record of every exit.
pub(crate) const RESULT: Field<'static> = Field::new("ret", FieldType::signed(64));

/// The call's number, for events whose name does not say it.
pub(crate) const NUMBER: Field<'static> = Field::new("id", FieldType::signed(32));

/// The table's syntax: each entry is `name(argument: kind, ...);`.
macro_rules! syscalls {
    ($($name:ident($($arg:ident: $kind:ident),*);)*) => {
        /// All known calls. Their slots are unknown.
        pub(crate) const DESCRIBED: &[$crate::source::syscall::describe::Call] = &[$(
            $crate::source::syscall::describe::Call {
                slot: u32::MAX,
                data_name: concat!("syscall_data_", stringify!($name)),
                entry_name: concat!("syscall_entry_", stringify!($name)),
                exit_name: concat!("syscall_exit_", stringify!($name)),
                kernel_entry_name: Some(concat!("sys_enter_", stringify!($name))),
                kernel_exit_name: Some(concat!("sys_exit_", stringify!($name))),
                before_arguments: &[],
                at_exit: &[$crate::source::syscall::describe::RESULT],
                arguments: &[$($crate::source::syscall::describe::SyscallArgument {
                    name: stringify!($arg),
                    kind: $crate::source::syscall::describe::kind!($arg $kind),
                }),*],
            }
        ),*];
    };
}
pub(crate) use syscalls;

macro_rules! kind {
    ($arg:ident out) => {
        $crate::source::syscall::kinds::OUT
    };
    ($arg:ident given_data) => {
        $crate::source::syscall::kinds::GIVEN_DATA
    };
    ($arg:ident filled_data) => {
        $crate::source::syscall::kinds::FILLED_DATA
    };
    ($arg:ident string) => {
        $crate::source::syscall::describe::ArgumentKind::Text
    };
    ($arg:ident peer) => {
        $crate::source::syscall::kinds::PEER
    };
    ($arg:ident own) => {
        $crate::source::syscall::kinds::OWN
    };
    ($arg:ident connected) => {
        $crate::source::syscall::kinds::CONNECTED
    };
    ($arg:ident sender) => {
        $crate::source::syscall::kinds::SENDER
    };
    ($arg:ident name) => {
        $crate::source::syscall::kinds::NAME
    };
    ($arg:ident epolled) => {
        $crate::source::syscall::kinds::EPOLLED
    };
    ($arg:ident argv) => {
        $crate::source::syscall::kinds::ARGUMENTS
    };
    ($arg:ident envp) => {
        $crate::source::syscall::kinds::ENVIRONMENT
    };
    ($arg:ident status) => {
        $crate::source::syscall::kinds::STATUS
    };
    ($arg:ident stat) => {
        $crate::source::syscall::kinds::STAT
    };
    ($arg:ident statx) => {
        $crate::source::syscall::kinds::STATX
    };
    ($arg:ident timespec) => {
        $crate::source::syscall::describe::structure!(given 16, $arg, "_sec": signed 64,
            "_nsec": signed 64)
    };
    ($arg:ident filled_timespec) => {
        $crate::source::syscall::describe::structure!(filled_out 16, $arg, "_sec": signed 64,
            "_nsec": signed 64)
    };
    ($arg:ident timeval) => {
        $crate::source::syscall::describe::structure!(given 16, $arg, "_sec": signed 64,
            "_usec": signed 64)
    };
    ($arg:ident itimerspec) => {
        $crate::source::syscall::describe::structure!(given 32, $arg, "_interval_sec": signed 64,
            "_interval_nsec": signed 64,
            "_value_sec": signed 64,
            "_value_nsec": signed 64)
    };
    ($arg:ident filetimes) => {
        $crate::source::syscall::describe::structure!(given 32, $arg, "_access_sec": signed 64,
            "_access_nsec": signed 64,
            "_modify_sec": signed 64,
            "_modify_nsec": signed 64)
    };
    ($arg:ident sigset) => {
        $crate::source::syscall::describe::structure!(given 8, $arg, "_set": hex 64)
    };
    ($arg:ident filled_sigset) => {
        $crate::source::syscall::describe::structure!(filled_out 8, $arg, "_set": hex 64)
    };
    ($arg:ident sigaction) => {
        $crate::source::syscall::describe::structure!(given 32, $arg, "_handler": hex 64,
            "_flags": hex 64,
            "_restorer": hex 64,
            "_mask": hex 64)
    };
    ($arg:ident filled_sigaction) => {
        $crate::source::syscall::describe::structure!(filled_out 32, $arg, "_handler": hex 64,
            "_flags": hex 64,
            "_restorer": hex 64,
            "_mask": hex 64)
    };
    ($arg:ident rlimit) => {
        $crate::source::syscall::describe::structure!(given 16, $arg, "_cur": unsigned 64,
            "_max": unsigned 64)
    };
    ($arg:ident filled_rlimit) => {
        $crate::source::syscall::describe::structure!(filled_out 16, $arg, "_cur": unsigned 64,
            "_max": unsigned 64)
    };
    ($arg:ident filled_pair) => {
        $crate::source::syscall::describe::structure!(filled_out 8, $arg, "_0": signed 32,
            "_1": signed 32)
    };
    ($arg:ident clone_args) => {
        $crate::source::syscall::describe::structure!(given 64, $arg, "_flags": hex 64,
            "_pidfd": hex 64,
            "_child_tid": hex 64,
            "_parent_tid": hex 64,
            "_exit_signal": hex 64,
            "_stack": hex 64,
            "_stack_size": hex 64,
            "_tls": hex 64)
    };
    ($arg:ident open_how) => {
        $crate::source::syscall::describe::structure!(given 24, $arg, "_flags": hex 64,
            "_mode": hex 64,
            "_resolve": hex 64)
    };
    ($arg:ident filled_text) => {
        $crate::source::syscall::kinds::filled_out(
            $crate::source::syscall::pointed::Pointed::FilledText,
            &[$crate::abi::schema::Field::new(
                concat!(stringify!($arg), "_text"),
                $crate::abi::schema::FieldType::String,
            )],
        )
    };
    ($arg:ident epoll) => {
        $crate::source::syscall::kinds::EPOLL
    };
    ($arg:ident pollset) => {
        $crate::source::syscall::kinds::POLL_SET
    };
    ($arg:ident readset) => {
        $crate::source::syscall::kinds::READ_SET
    };
    ($arg:ident writeset) => {
        $crate::source::syscall::kinds::WRITE_SET
    };
    ($arg:ident exceptset) => {
        $crate::source::syscall::kinds::EXCEPT_SET
    };
    ($arg:ident iovec) => {
        $crate::source::syscall::kinds::VECTOR
    };
    ($arg:ident given_iovec) => {
        $crate::source::syscall::kinds::GIVEN_VECTOR
    };
    ($arg:ident filled_iovec) => {
        $crate::source::syscall::kinds::FILLED_VECTOR
    };
    ($arg:ident message) => {
        $crate::source::syscall::kinds::MESSAGE
    };
    ($arg:ident received) => {
        $crate::source::syscall::kinds::RECEIVED
    };
    ($arg:ident $number:ident) => {
        $crate::source::syscall::describe::ArgumentKind::Number(
            $crate::source::syscall::describe::number!($number),
        )
    };
}
pub(crate) use kind;

/// A structure of this size. Its fields are named after the argument.
macro_rules! structure {
    ($side:ident $size:literal, $arg:ident, $($name:literal: $ty:ident $bits:literal),*) => {
        $crate::source::syscall::kinds::$side(
            $crate::source::syscall::pointed::Pointed::Bytes($size),
            &[$($crate::abi::schema::Field::new(
                concat!(stringify!($arg), $name),
                $crate::abi::schema::FieldType::$ty($bits),
            )),*],
        )
    };
}
pub(crate) use structure;

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
pub(crate) use number;
