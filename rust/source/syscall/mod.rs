// SPDX-License-Identifier: GPL-2.0

//! Events of system calls: each call has one at its entry and one at its exit.
//!
//! The kernel has one tracepoint for all entries and one for all exits. So there are two handlers ([`probe`]),
//! which find the probe of each call by its slot. A [plan](plan), made from the call's line in the [`table`],
//! says how to record it. Which calls there are, and their numbers, depends on the processor.
//!
//! A call's slot is its number. Behind the numbers are two more slots, one for calls that the table does not
//! know, and one for the calls of 32-bit programs, which have other numbers.
//!
//! The kernel forgets the number of rt_sigreturn(2), and of a call that a tracer or a filter prevented: the
//! exits of these are unknown, with -1 for the number.

mod compat;
mod data;
mod describe;
pub(super) mod event;
mod exec;
mod kinds;
mod numbers;
mod plan;
mod pointed;
pub(super) mod probe;
mod table;

use crate::abi::schema::{FieldType, LabelPlace};
use crate::arch::calls::NATIVE;
use describe::{ArgumentKind, Call, SyscallArgument, NUMBER, RESULT};
use table::DESCRIBED;

/// The count of calls of this processor.
const COUNT: usize = numbers::count(NATIVE);
/// Their numbers, and the places of their names in the list.
const LISTED: [LabelPlace; COUNT] = numbers::places(NATIVE);
/// Numbers that the list could know are below this one.
const NUMBERS: u32 = LISTED[COUNT - 1].first as u32 + 1;
/// The slot of a call that the table does not know.
const UNKNOWN: u32 = NUMBERS;
/// The slot of all calls of 32-bit programs.
const COMPAT: u32 = NUMBERS + 1;
/// All slots are below this one. Not every slot below has a call.
const SLOTS: u32 = NUMBERS + 2;

/// Entry into the kernel, or exit from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `syscall_entry_...`
    Entry,
    /// `syscall_exit_...`
    Exit,
}

impl Direction {
    /// Both directions.
    const ALL: [Self; 2] = [Self::Entry, Self::Exit];

    /// The kernel's tracepoint.
    fn tracepoint(self) -> &'static str {
        match self {
            Self::Entry => "sys_enter",
            Self::Exit => "sys_exit",
        }
    }
}

/// The arguments of a call that the table does not know.
const fn six(ty: FieldType<'static>) -> [SyscallArgument; 6] {
    let kind = ArgumentKind::Number(ty);
    [
        SyscallArgument { name: "arg0", kind },
        SyscallArgument { name: "arg1", kind },
        SyscallArgument { name: "arg2", kind },
        SyscallArgument { name: "arg3", kind },
        SyscallArgument { name: "arg4", kind },
        SyscallArgument { name: "arg5", kind },
    ]
}

const UNKNOWN_CALL: &Call = &Call {
    slot: UNKNOWN,
    data_name: "",
    entry_name: "syscall_entry_unknown",
    exit_name: "syscall_exit_unknown",
    kernel_entry_name: None,
    kernel_exit_name: None,
    before_arguments: &[NUMBER],
    at_exit: &[NUMBER, RESULT],
    arguments: &six(FieldType::hex(64)),
};

const COMPAT_CALL: &Call = &Call {
    slot: COMPAT,
    data_name: "",
    entry_name: "compat_syscall_entry_unknown",
    exit_name: "compat_syscall_exit_unknown",
    kernel_entry_name: None,
    kernel_exit_name: None,
    before_arguments: &[compat::NUMBER],
    at_exit: &[compat::NUMBER, compat::RESULT],
    arguments: &six(FieldType::hex(32)),
};

/// The calls by slot.
static CALLS: [Option<&Call>; SLOTS as usize] = {
    let mut calls = [None; SLOTS as usize];
    let mut at = 0;
    while at < COUNT {
        let slot = LISTED[at].first as usize;
        assert!(calls[slot].is_none(), "a number stands twice in the list");
        calls[slot] = Some(&KNOWN[at]);
        at += 1;
    }
    calls[UNKNOWN as usize] = Some(UNKNOWN_CALL);
    calls[COMPAT as usize] = Some(COMPAT_CALL);
    calls
};

/// The calls of this processor, in the order of the list.
static KNOWN: [Call; COUNT] = {
    let mut known = [DESCRIBED[0]; COUNT];
    let (mut at, mut next) = (0, 0);
    while at < COUNT {
        // The list and the table often have the same order.
        let mut searched = 0;
        while !numbers::is_named(NATIVE, LISTED[at].name, DESCRIBED[next].call_name()) {
            searched += 1;
            assert!(
                searched < DESCRIBED.len(),
                "the table lacks a call of the list"
            );
            next = (next + 1) % DESCRIBED.len();
        }
        known[at] = Call {
            slot: LISTED[at].first as u32,
            ..DESCRIBED[next]
        };
        at += 1;
    }
    known
};

/// All calls, by slot.
fn calls() -> impl Iterator<Item = &'static Call> {
    CALLS.iter().filter_map(|call| *call)
}

/// The call in this slot.
fn call(slot: u32) -> Option<&'static Call> {
    *CALLS.get(slot as usize)?
}
