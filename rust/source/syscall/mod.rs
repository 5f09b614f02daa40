// SPDX-License-Identifier: GPL-2.0

//! Events of system calls: for each call one at its entry and one at its exit.
//!
//! The kernel has one tracepoint for all entries and one for all exits. So there are two
//! handlers ([`probe`]), which find the probe of each call by its slot. What is recorded of a call
//! is said by a [plan](plan) that is made from the call's line in the [`table`].
//!
//! A call has a slot, which is its number; behind the numbers are two more, for calls that the
//! table does not know and for those of 32-bit programs, which number them differently.
//!
//! The kernel forgets the number of rt_sigreturn(2), and of a call that a tracer or a filter
//! kept from happening: their exits are unknown, with -1 for the number.

mod compat;
mod describe;
mod kinds;
mod plan;
mod pointed;
mod probe;
mod table;

pub(crate) use probe::CallProbes;

use super::attached::{AttachedProbes, NewProbe};
use super::{EventSource, FoundSources, FullName};
use crate::abi::schema::{Field, FieldType};
use crate::sys::tracepoint::Tracepoint;
use describe::{ArgumentKind, Call, SyscallArgument, NUMBER, RESULT};
use kernel::error::Result;
use kernel::sync::Arc;
use probe::handlers;
use table::LISTED;

/// The events' subsystem.
const SUBSYSTEM: &str = "syscalls";

/// Numbers that the table could know are below this one.
const NUMBERS: u32 = LISTED[LISTED.len() - 1].slot + 1;
/// The slot of a call that the table does not know.
const UNKNOWN: u32 = NUMBERS;
/// The slot of all calls of 32-bit programs.
const COMPAT: u32 = NUMBERS + 1;
/// All slots are below this one. Not every slot below has a call.
const SLOTS: u32 = NUMBERS + 2;

/// The way into the kernel or out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `syscall_entry_...`
    Entry,
    /// `syscall_exit_...`
    Exit,
}

impl Direction {
    /// Both.
    const ALL: [Self; 2] = [Self::Entry, Self::Exit];

    /// The kernel's tracepoint.
    fn tracepoint(self) -> &'static str {
        match self {
            Self::Entry => "sys_enter",
            Self::Exit => "sys_exit",
        }
    }
}

/// Arguments of a call that the table does not know.
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
    entry_name: "compat_syscall_entry_unknown",
    exit_name: "compat_syscall_exit_unknown",
    kernel_entry_name: None,
    kernel_exit_name: None,
    before_arguments: &[compat::NUMBER],
    at_exit: &[compat::NUMBER, RESULT],
    arguments: &six(FieldType::hex(32)),
};

/// The calls by slot.
static CALLS: [Option<&Call>; SLOTS as usize] = {
    let mut calls = [None; SLOTS as usize];
    let mut at = 0;
    while at < LISTED.len() {
        let slot = LISTED[at].slot as usize;
        assert!(calls[slot].is_none(), "a number stands twice in the table");
        calls[slot] = Some(&LISTED[at]);
        at += 1;
    }
    calls[UNKNOWN as usize] = Some(UNKNOWN_CALL);
    calls[COMPAT as usize] = Some(COMPAT_CALL);
    calls
};

/// All calls, by slot.
fn calls() -> impl Iterator<Item = &'static Call> {
    CALLS.iter().filter_map(|call| *call)
}

/// The call at this place.
fn call(slot: u32) -> Option<&'static Call> {
    *CALLS.get(slot as usize)?
}

/// The entry or the exit of a system call.
struct CallEvent {
    call: &'static Call,
    direction: Direction,
    /// The tracepoint of all system calls.
    tracepoint: Tracepoint,
}

/// Finds the events of all system calls.
pub(super) fn find(sources: &mut FoundSources) -> Result {
    for direction in Direction::ALL {
        let Some(tracepoint) = sources.tracepoint(direction.tracepoint()) else {
            continue;
        };
        for call in calls() {
            sources.add(CallEvent {
                call,
                direction,
                tracepoint,
            })?;
        }
    }
    Ok(())
}

impl EventSource for CallEvent {
    fn full_name(&self) -> FullName<'_> {
        (SUBSYSTEM, self.call.name(self.direction))
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.call.fields(self.direction).nth(place)
    }

    fn attach(
        &self,
        NewProbe { probe, channel, .. }: NewProbe<'_>,
        to: &mut AttachedProbes,
    ) -> Result {
        let &Self {
            call,
            direction,
            tracepoint,
        } = self;
        let shares = |calls: &&Arc<CallProbes>| {
            calls.direction() == direction && calls.share_channel(&probe)
        };
        if let Some(calls) = to.calls.iter().find(shares) {
            // A call that was recorded before still has a probe, which `keep` enables again.
            if !calls.has(call) {
                calls.set(call, &probe);
            }
            return Ok(());
        }
        let calls = CallProbes::new(direction)?;
        calls.set(call, &probe);
        let handlers = handlers(direction);
        match channel {
            Some(channel) => to
                .calls
                .attach(tracepoint, handlers.select(channel.setup()), calls),
            // The format does not matter: the probe of a trigger records nothing.
            None => to
                .calls
                .attach_last(tracepoint, handlers.compact_tsc, calls),
        }
    }

    fn aliases(&self) -> [Option<FullName<'_>>; 2] {
        let kernel_name = self.call.kernel_name(self.direction);
        [
            kernel_name.map(|name| (SUBSYSTEM, name)),
            Some(("raw_syscalls", self.direction.tracepoint())),
        ]
    }

    fn is_default(&self) -> bool {
        true
    }
}
