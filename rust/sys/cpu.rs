// SPDX-License-Identifier: GPL-2.0

//! CPUs: which there are, and running a function on one of them.

use crate::arch::word::full_barrier;
use crate::sys::bindings;
use kernel::prelude::*;

/// One more than the largest CPU number there can be.
#[inline(always)]
pub(crate) fn count() -> u32 {
    // SAFETY: Set at boot and never written again.
    unsafe { bindings::nr_cpu_ids }
}

/// All the CPUs that can ever be online.
pub(crate) fn possible() -> impl Iterator<Item = u32> {
    Cpus {
        last: -1,
        online: false,
    }
}

struct Cpus {
    last: i32,
    online: bool,
}

impl Iterator for Cpus {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // SAFETY: Takes any number from -1 on.
        let next = unsafe { bindings::rtrace_cpu_next(self.last, self.online) };
        if next as u32 >= count() {
            return None;
        }
        self.last = next;
        Some(next as u32)
    }
}

/// Whether the kernel keeps its own work off `cpu`: by `isolcpus` or an isolated cpuset partition,
/// or, its tick included, by `nohz_full`. Any context.
pub(crate) fn is_isolated(cpu: u32) -> bool {
    // SAFETY: Takes the number of a possible CPU; looks at masks that RCU protects there.
    unsafe { bindings::rtrace_cpu_is_isolated(cpu as c_int) }
}

/// No CPU comes or goes while this lives. May sleep to get it.
pub(crate) struct NoHotplug(());

impl NoHotplug {
    /// As `cpus_read_lock()`.
    pub(crate) fn new() -> Self {
        // SAFETY: May be called from any process context.
        unsafe { bindings::cpus_read_lock() };
        Self(())
    }

    /// Whether `cpu` is online.
    pub(crate) fn is_online(&self, cpu: u32) -> bool {
        cpu < count()
            // SAFETY: As in `Cpus::next`.
            && unsafe { bindings::rtrace_cpu_next(cpu as i32 - 1, true) } as u32 == cpu
    }
}

impl Drop for NoHotplug {
    fn drop(&mut self) {
        // SAFETY: Taken by `new`.
        unsafe { bindings::cpus_read_unlock() };
    }
}

/// Runs `f` on `cpu`, in its interrupt context, and waits for it. Runs it here if `cpu` is
/// this one, with interrupts off. All that was stored before is seen there, and the other way round
/// afterwards.
///
/// Fails with `ENXIO` if `cpu` is offline. Context: process, interrupts on.
pub(crate) fn run_on<T: Send>(cpu: u32, data: &mut T, f: fn(&mut T)) -> Result {
    struct Call<'a, T> {
        data: &'a mut T,
        f: fn(&mut T),
    }
    /// Runs a [`Call`].
    ///
    /// # Safety
    ///
    /// `info` must point to the live `Call` of a `T`.
    unsafe extern "C" fn run<T>(info: *mut c_void) {
        // SAFETY: `info` is the `Call` below, which outlives the wait; nobody else uses it meanwhile.
        let call = unsafe { &mut *info.cast::<Call<'_, T>>() };
        (call.f)(call.data);
    }
    let mut call = Call { data, f };
    // SAFETY: `run` gets `call`, and the helper waits for its end.
    kernel::error::to_result(unsafe {
        bindings::rtrace_call_on_cpu(cpu as c_int, Some(run::<T>), (&raw mut call).cast())
    })
}

/// Executes a full barrier here, one on `cpu`, and another one here: what `cpu` has in program
/// order is in order for this thread, although `cpu` has compiler barriers only (the paper's
/// Algorithm 6).
///
/// Fails with `ENXIO` if `cpu` is offline. Context: process, interrupts on.
pub(crate) fn full_barrier_on(cpu: u32) -> Result {
    full_barrier();
    let executed = run_on(cpu, &mut (), |()| full_barrier());
    full_barrier();
    executed
}
