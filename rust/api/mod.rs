// SPDX-License-Identifier: GPL-2.0

//! What other modules call: `rtrace.h`, which says what each function does.
//!
//! `sys/helpers.c` exports the symbols. A module that uses one holds a reference to this
//! module, so rtrace cannot be unloaded before it.

use crate::event::provided::{self, Provided};
use crate::file::Files;
use crate::sys::foreign::{ForeignSlice, ForeignStr, ResultPtr};
use crate::sys::preempt::NoPreempt;
use crate::sys::rcu::RcuArc;
use kernel::prelude::*;

/// Where new events get their files. Empty while the module is being loaded or unloaded.
pub(crate) static FILES: RcuArc<Files> = RcuArc::new();

/// `struct rtrace_field`.
#[repr(C)]
pub(crate) struct FieldDescription<'a> {
    pub(crate) name: ForeignStr<'a>,
    pub(crate) ty: u8,
    pub(crate) size: u8,
}

/// `struct rtrace_event_desc`.
#[repr(C)]
pub(crate) struct EventDescription<'a> {
    pub(crate) subsystem: ForeignStr<'a>,
    pub(crate) name: ForeignStr<'a>,
    pub(crate) fields: ForeignSlice<'a, FieldDescription<'a>>,
}

fn register(description: Option<&EventDescription<'_>>) -> Result<&'static Provided> {
    let files = FILES.get_arc().ok_or(ENODEV)?;
    let (event, provided) = provided::register(description.ok_or(EINVAL)?)?;
    if let Err(error) = files.add_event(&event) {
        provided.unregister();
        return Err(error);
    }
    Ok(provided)
}

fn unregister(provided: &'static Provided) {
    // The other way round, so that nobody who registers it again meets the old files.
    if let (Some(files), Some(event)) = (FILES.get_arc(), provided.event()) {
        files.remove_event(&event);
    }
    provided.unregister();
}

#[no_mangle]
extern "C" fn rtrace_event_register(
    description: Option<&EventDescription<'_>>,
) -> ResultPtr<Provided> {
    register(description).into()
}

#[no_mangle]
extern "C" fn rtrace_event_unregister(event: &'static Provided) {
    unregister(event);
}

#[no_mangle]
extern "C" fn rtrace_event_enabled(event: &'static Provided) -> bool {
    event.probe(&NoPreempt::new()).is_some()
}

#[no_mangle]
#[link_section = ".kprobes.text"]
extern "C" fn rtrace_event_emit(
    event: &'static Provided,
    data: ForeignSlice<'_, u8>,
    text: ForeignStr<'_>,
) -> c_int {
    match event.emit(data.items(), text.bytes()) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}
