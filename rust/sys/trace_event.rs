// SPDX-License-Identifier: GPL-2.0

//! The kernel's trace events, which ftrace and perf can record, by name.

use crate::sys::bindings;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::error::from_err_ptr;
use kernel::prelude::*;

/// A trace event. Its module, or the probe behind a user-defined event, stays while this lives.
///
/// # Invariants
///
/// The pointer is from `rtrace_trace_event_get()`, and not returned yet.
pub(crate) struct TraceEvent(NonNull<bindings::rtrace_trace_event>);

/// The event of a module's tracepoint, as the module itself describes it.
///
/// # Invariants
///
/// The module stays during `'a`.
pub(crate) struct ModuleTraceEvent<'a> {
    call: NonNull<bindings::rtrace_trace_call>,
    lifetime: PhantomData<&'a bindings::rtrace_trace_call>,
}

/// Fields of an event's records.
pub(crate) trait TraceFields {
    /// Calls `see` for each field, in the order of the record, except for the fields that all events have.
    /// `EINVAL`: a name is not ASCII.
    fn each_field(&self, see: impl FnMut(TraceField<'_>) -> Result) -> Result;
}

/// A field of a record.
pub(crate) struct TraceField<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its type, as the event's `format` file shows it, without the name.
    pub(crate) ty: &'a str,
    /// Its offset in the record, in bytes; 0 for all fields of a module's own description.
    pub(crate) offset: usize,
    /// Its size in bytes.
    pub(crate) size: usize,
    /// Number of elements of an array; 0 if that is unknown, or if the field is not an array.
    pub(crate) count: usize,
    /// Whether it is a signed number.
    pub(crate) is_signed: bool,
    /// Whether the event's text shows it as a pointer, whatever its type. Always false in a module's own
    /// description.
    pub(crate) is_address: bool,
}

impl TraceEvent {
    /// Finds an event. [`None`]: the kernel has no event of this name, or its fields are not as this module
    /// knows them. `ENODEV`: perf cannot record the event. May sleep.
    pub(crate) fn find(system: &CStr, name: &CStr) -> Result<Option<Self>> {
        // SAFETY: Both texts are NUL-terminated, and are not kept.
        let event = from_err_ptr(unsafe {
            bindings::rtrace_trace_event_get(system.as_ptr().cast(), name.as_ptr().cast())
        });
        match event {
            // INVARIANT: The call above returned the event.
            Ok(event) => Ok(NonNull::new(event).map(Self)),
            Err(error @ (ENOMEM | ENODEV)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// perf's id of the event. It changes when the event is removed and created again.
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
            // - `last` is NULL, or the result of the previous call for this event. Fields are constant as long
            //   as their event lives.
            last = unsafe {
                bindings::rtrace_trace_event_field(self.0.as_ptr(), last, &raw mut field)
            };
            if last.is_null() {
                return Ok(());
            }
            // SAFETY: The field's texts live as long as the event.
            see(unsafe { TraceField::new(&field) }?)?;
        }
    }
}

impl ModuleTraceEvent<'_> {
    /// # Safety
    ///
    /// The event must be of a module that stays as long as this lives.
    pub(super) unsafe fn new(call: NonNull<bindings::rtrace_trace_call>) -> Self {
        // INVARIANT: By the caller's contract.
        Self {
            call,
            lifetime: PhantomData,
        }
    }

    /// The subsystem.
    pub(crate) fn subsystem(&self) -> &[u8] {
        // SAFETY: By the invariant. The name lives as long as the module, and is NUL-terminated.
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
        // SAFETY: By the invariant. There was a field at each lower index.
        while unsafe { bindings::rtrace_trace_call_field(self.call.as_ptr(), at, &raw mut field) } {
            // SAFETY: The field's texts live as long as the module.
            see(unsafe { TraceField::new(&field) }?)?;
            at += 1;
        }
        Ok(())
    }
}

impl<'a> TraceField<'a> {
    /// # Safety
    ///
    /// Both texts must be NUL-terminated, and live as long as this.
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
        // SAFETY: By the invariant. This context may sleep.
        unsafe { bindings::rtrace_trace_event_put(self.0.as_ptr()) };
    }
}
