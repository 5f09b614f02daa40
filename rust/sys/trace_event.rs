// SPDX-License-Identifier: GPL-2.0

//! The kernel's trace events: what ftrace and perf can record, by name.

use crate::sys::bindings;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;

/// A trace event. What it is of stays while this lives: its module, or the probe that somebody has
/// defined.
///
/// # Invariants
///
/// From `rtrace_trace_event_get()`, and not given back yet.
pub(crate) struct TraceEvent(NonNull<bindings::rtrace_trace_event>);

/// What a module itself says of the event of one of its tracepoints.
///
/// # Invariants
///
/// The module is there during `'a`.
pub(crate) struct ModuleTraceEvent<'a> {
    call: NonNull<bindings::rtrace_trace_call>,
    lifetime: PhantomData<&'a bindings::rtrace_trace_call>,
}

/// What records have.
pub(crate) trait TraceFields {
    /// Shows the fields to `see`, in the order of the record, but for those that all events have.
    /// `EINVAL`: a name is not ASCII.
    fn each_field(&self, see: impl FnMut(TraceField<'_>) -> Result) -> Result;
}

/// A field of a record.
pub(crate) struct TraceField<'a> {
    /// What it is called.
    pub(crate) name: &'a str,
    /// As the event's file `format` shows it, but for the name.
    pub(crate) ty: &'a str,
    /// Where it lies in the record, in bytes; 0 in all of a module's.
    pub(crate) offset: usize,
    /// Its bytes.
    pub(crate) size: usize,
    /// The elements of an array; 0 if that is not known, or it is none.
    pub(crate) count: usize,
    /// Whether it is a signed number.
    pub(crate) is_signed: bool,
    /// Whether the event's text shows it as a pointer, whatever its type; not known of a module's.
    pub(crate) is_address: bool,
}

impl TraceEvent {
    /// Finds one; [`None`] if the kernel has none that is called so, or that is as is known here.
    /// `ENODEV`: it is for ftrace alone. May sleep.
    pub(crate) fn find(system: &CStr, name: &CStr) -> Result<Option<Self>> {
        // SAFETY: Two texts, which are not kept.
        let event = from_err_ptr(unsafe {
            bindings::rtrace_trace_event_get(system.as_ptr().cast(), name.as_ptr().cast())
        });
        match event {
            // INVARIANT: Just got.
            Ok(event) => Ok(NonNull::new(event).map(Self)),
            Err(error @ (ENOMEM | ENODEV)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// By what perf knows it. It has another one when it comes again.
    pub(crate) fn id(&self) -> u64 {
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_trace_event_id(self.0.as_ptr()) }
    }
}

impl TraceFields for TraceEvent {
    fn each_field(&self, mut see: impl FnMut(TraceField<'_>) -> Result) -> Result {
        let mut field = bindings::rtrace_trace_field::default();
        let mut last = core::ptr::null();
        loop {
            // SAFETY:
            // - By the invariant.
            // - `last` is NULL, or what this returned for the event before. Fields stay as they are
            //   as long as their event.
            last = unsafe {
                bindings::rtrace_trace_event_field(self.0.as_ptr(), last, &raw mut field)
            };
            if last.is_null() {
                return Ok(());
            }
            // SAFETY: Its texts are there as long as the event.
            see(unsafe { TraceField::new(&field) }?)?;
        }
    }
}

impl ModuleTraceEvent<'_> {
    /// # Safety
    ///
    /// It is of a module that is there as long as this.
    pub(super) unsafe fn new(call: NonNull<bindings::rtrace_trace_call>) -> Self {
        // INVARIANT: The caller's contract.
        Self {
            call,
            lifetime: PhantomData,
        }
    }

    /// The subsystem.
    pub(crate) fn subsystem(&self) -> &[u8] {
        // SAFETY: By the invariant; the name is as long there, and NUL-terminated.
        let name = unsafe {
            CStr::from_ptr(bindings::rtrace_trace_call_system(self.call.as_ptr()).cast())
        };
        name.to_bytes()
    }
}

impl TraceFields for ModuleTraceEvent<'_> {
    fn each_field(&self, mut see: impl FnMut(TraceField<'_>) -> Result) -> Result {
        let mut field = bindings::rtrace_trace_field::default();
        let mut at = 0;
        // SAFETY: By the invariant. All places before this one have fields.
        while unsafe { bindings::rtrace_trace_call_field(self.call.as_ptr(), at, &raw mut field) } {
            // SAFETY: Its texts are there as long as the module.
            see(unsafe { TraceField::new(&field) }?)?;
            at += 1;
        }
        Ok(())
    }
}

impl<'a> TraceField<'a> {
    /// # Safety
    ///
    /// Both texts are NUL-terminated, and stay as long as this.
    unsafe fn new(field: &bindings::rtrace_trace_field) -> Result<Self> {
        let text = |text: *const c_char| -> Result<&'a str> {
            // SAFETY: The caller's contract.
            Ok(unsafe { CStr::from_ptr(text.cast()) }.to_str()?)
        };
        Ok(Self {
            name: text(field.name)?,
            ty: text(field.type_)?,
            offset: field.offset as usize,
            size: field.size as usize,
            count: field.count as usize,
            is_signed: field.is_signed,
            is_address: field.is_address,
        })
    }
}

impl Drop for TraceEvent {
    fn drop(&mut self) {
        // SAFETY: By the invariant. May sleep here.
        unsafe { bindings::rtrace_trace_event_put(self.0.as_ptr()) };
    }
}
