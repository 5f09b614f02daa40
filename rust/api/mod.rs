// SPDX-License-Identifier: GPL-2.0

//! Functions that other modules call. `rtrace.h` documents each of them.
//!
//! `exports.c` exports the symbols. A module that uses one holds a reference to this module, so rtrace cannot
//! be unloaded before it.

mod description;

use crate::probe::captured::filling::{self, Room};
use crate::probe::Probe;
use crate::source::aux::{AuxSource, Handle};
use crate::source::external::External;
use crate::source::provided::Provided;
use crate::sys::foreign::{
    ForeignArc, ForeignLoan, ForeignModule, ForeignSlice, ForeignStr, ResultPtr,
};
use crate::sys::rcu::RcuArc;
use crate::sys::tracepoint::Tracepoints;
use crate::tracer::Tracer;
use core::ptr::NonNull;
use description::{AuxDescription, EventDescription, LentProbes, TracepointDescription};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The tracer that gets the calls of other modules. Empty while the module is being loaded or unloaded.
pub(crate) static TRACER: RcuArc<Tracer> = RcuArc::new();

fn register(description: Option<&EventDescription<'_>>) -> Result<Arc<Provided>> {
    let tracer = TRACER.get_arc().ok_or(ENODEV)?;
    tracer.add_source(Provided::new(description.ok_or(EINVAL)?.read()?)?)
}

#[no_mangle]
extern "C" fn rtrace_event_register(
    description: Option<&EventDescription<'_>>,
) -> ResultPtr<Provided> {
    register(description).into()
}

#[no_mangle]
extern "C" fn rtrace_tracepoints_register(
    tracepoints: ForeignLoan<TracepointDescription<'static>>,
) -> c_int {
    match register_tracepoints(tracepoints) {
        Ok(added) => added as c_int,
        Err(error) => error.to_errno(),
    }
}

fn register_tracepoints(tracepoints: ForeignLoan<TracepointDescription<'static>>) -> Result<usize> {
    let tracer = TRACER.get_arc().ok_or(ENODEV)?;
    let Some(owner) = tracepoints.items().first().map(|first| first.owner()) else {
        return Ok(0);
    };
    let kernels = Tracepoints::new()?;
    let (mut externals, mut of_modules) = (KVVec::new(), KVVec::new());
    for (place, tracepoint) in tracepoints.items().iter().enumerate() {
        if tracepoint.owner() != owner {
            return Err(EINVAL);
        }
        let name = core::str::from_utf8(tracepoint.name()).unwrap_or("");
        match kernels.find(name) {
            Some(found) => {
                let (description, handler) = tracepoint.read().inspect_err(|error| {
                    pr_err!(
                        "the tracepoint {name} is no event, because its description is wrong: {error:?}\n"
                    );
                })?;
                let event = External {
                    description,
                    tracepoint: found.into(),
                    handler,
                };
                externals.push(event, GFP_KERNEL)?;
            }
            None if tracepoint.may_be_of_module() => of_modules.push(place as u32, GFP_KERNEL)?,
            None => {}
        }
    }
    let probes = KBox::new(LentProbes::new(tracepoints, of_modules), GFP_KERNEL)?;
    tracer.add_probes(owner, externals, probes)
}

#[no_mangle]
extern "C" fn rtrace_tracepoints_unregister(owner: ForeignModule) {
    // The tracer is there, as below.
    if let Some(tracer) = TRACER.get_arc() {
        tracer.remove_probes(owner);
    }
}

#[no_mangle]
#[link_section = ".kprobes.text"]
extern "C" fn rtrace_record_begin<'a>(
    probe: &'a Probe,
    room: Room<'a, '_>,
    len: usize,
) -> Option<NonNull<u8>> {
    probe.begin(room, len as u64)
}

#[no_mangle]
#[link_section = ".kprobes.text"]
extern "C" fn rtrace_record_end(room: Room<'_, '_>) {
    filling::end(room);
}

#[no_mangle]
extern "C" fn rtrace_aux_register(
    description: Option<&AuxDescription<'_>>,
) -> ResultPtr<AuxSource> {
    register_aux(description).into()
}

fn register_aux(description: Option<&AuxDescription<'_>>) -> Result<Arc<AuxSource>> {
    let tracer = TRACER.get_arc().ok_or(ENODEV)?;
    tracer.add_source(description.ok_or(EINVAL)?.read()?)
}

#[no_mangle]
extern "C" fn rtrace_aux_unregister(source: ForeignArc<AuxSource>) {
    // The tracer is there, as below.
    if let Some(tracer) = TRACER.get_arc() {
        let source = source.into_arc();
        tracer.remove_source(&source);
        source.end_all();
    }
}

#[no_mangle]
#[link_section = ".kprobes.text"]
extern "C" fn rtrace_aux_begin(
    source: &AuxSource,
    handle: Handle<'_>,
    wanted: usize,
) -> Option<NonNull<u8>> {
    source.begin(handle, wanted as u64)
}

#[no_mangle]
#[link_section = ".kprobes.text"]
extern "C" fn rtrace_aux_end(
    source: &AuxSource,
    handle: Handle<'_>,
    written: usize,
    flags: c_ulong,
) -> c_int {
    match source.end(handle, written as u64, flags as u64) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

#[no_mangle]
extern "C" fn rtrace_event_unregister(event: ForeignArc<Provided>) {
    // The tracer is there: the caller keeps this module loaded.
    if let Some(tracer) = TRACER.get_arc() {
        tracer.remove_source(&event.into_arc());
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
