// SPDX-License-Identifier: GPL-2.0

//! What other modules call: `rtrace.h`, which says what each function does.
//!
//! `sys/helpers.c` exports the symbols. A module that uses one holds a reference to this
//! module, so rtrace cannot be unloaded before it.

mod description;

use crate::event::provided::Provided;
use crate::sys::foreign::{ForeignArc, ForeignSlice, ForeignStr, ResultPtr};
use crate::sys::rcu::RcuArc;
use crate::tracer::Tracer;
use description::EventDescription;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Where events come from other modules to. Empty while the module is being loaded or unloaded.
pub(crate) static TRACER: RcuArc<Tracer> = RcuArc::new();

fn register(description: Option<&EventDescription<'_>>) -> Result<Arc<Provided>> {
    let tracer = TRACER.get_arc().ok_or(ENODEV)?;
    tracer.add_event(description.ok_or(EINVAL)?.read()?)
}

#[no_mangle]
extern "C" fn rtrace_event_register(
    description: Option<&EventDescription<'_>>,
) -> ResultPtr<Provided> {
    register(description).into()
}

#[no_mangle]
extern "C" fn rtrace_event_unregister(event: ForeignArc<Provided>) {
    // It is there: a caller of ours keeps this module loaded.
    if let Some(tracer) = TRACER.get_arc() {
        tracer.remove_event(&event.into_arc());
    }
}

#[no_mangle]
extern "C" fn rtrace_event_enabled(event: &Provided) -> bool {
    event.is_recorded()
}

#[no_mangle]
#[link_section = ".kprobes.text"]
extern "C" fn rtrace_event_emit(
    event: &Provided,
    data: ForeignSlice<'_, u8>,
    text: ForeignStr<'_>,
) -> c_int {
    match event.emit(data.items(), text.bytes()) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}
