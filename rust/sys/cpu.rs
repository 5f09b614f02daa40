// SPDX-License-Identifier: GPL-2.0

//! CPUs: iterate over them, and run a function on one of them.

use crate::arch::word::full_barrier;
use crate::sys::args::Task;
use crate::sys::bindings;
use kernel::prelude::*;

/// Upper limit of CPU numbers: one more than the largest possible number.
#[inline(always)]
pub(crate) fn count() -> u32 {
    // SAFETY: Set at boot, and constant from then on.
    unsafe { bindings::nr_cpu_ids }
}

/// All CPUs that can ever be online.
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
        // SAFETY: The function accepts any number from -1 on.
        let next = unsafe { bindings::rtrace_cpu_next(self.last, self.online) };
        if next as u32 >= count() {
            return None;
        }
        self.last = next;
        Some(next as u32)
    }
}

/// Whether the kernel keeps its own work off `cpu`. `isolcpus` and isolated cpuset partitions do that;
/// `nohz_full` also stops the tick. Any context.
pub(crate) fn is_isolated(cpu: u32) -> bool {
    // SAFETY: The function accepts the number of a possible CPU, and reads masks under RCU.
    unsafe { bindings::rtrace_cpu_is_isolated(cpu as c_int) }
}

/// Returns an online CPU that is not isolated: the one that this runs on, if possible. Any context.
pub(crate) fn housekeeping() -> Option<u32> {
    let here = Task::current().cpu() as u32;
    let mut online = Cpus {
        last: -1,
        online: true,
    };
    if is_isolated(here) {
        online.find(|cpu| !is_isolated(*cpu))
    } else {
        Some(here)
    }
}

/// A guard: no CPU comes online or goes offline while it lives. Taking it may sleep.
pub(crate) struct NoHotplug(());

impl NoHotplug {
    /// As `cpus_read_lock()`.
    pub(crate) fn new() -> Self {
        // SAFETY: May be called from any process context.
        unsafe { bindings::cpus_read_lock() };
        Self(())
    }

    /// The CPUs that are online.
    pub(crate) fn online(&self) -> impl Iterator<Item = u32> + '_ {
        Cpus {
            last: -1,
            online: true,
        }
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

/// Runs `f` on `cpu` in interrupt context, and waits for its end. If `cpu` is the current CPU, runs `f` here
/// with interrupts off. `f` sees all stores that precede the call. The caller then sees all stores of `f`.
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
        // SAFETY: `info` is the `Call` below, which outlives the wait. No other code uses it until then.
        let call = unsafe { &mut *info.cast::<Call<'_, T>>() };
        (call.f)(call.data);
    }
    let mut call = Call { data, f };
    // SAFETY: `run` gets `call`. The helper waits until `run` returns.
    kernel::error::to_result(unsafe {
        bindings::rtrace_call_on_cpu(cpu as c_int, Some(run::<T>), (&raw mut call).cast())
    })
}

/// Runs `f` as [`run_on`], on a CPU that is not isolated. Runs it here if there is none.
pub(crate) fn run_on_housekeeping<T: Send>(data: &mut T, f: fn(&mut T)) {
    let is_done = housekeeping().is_some_and(|cpu| run_on(cpu, data, f).is_ok());
    if !is_done {
        f(data);
    }
}

/// Executes a full barrier here, one on `cpu`, and another one here. So this thread sees the accesses of `cpu`
/// in program order, although `cpu` has compiler barriers only (the paper's Algorithm 6).
///
/// Fails with `ENXIO` if `cpu` is offline. Context: process, interrupts on.
pub(crate) fn full_barrier_on(cpu: u32) -> Result {
    full_barrier();
    let executed = run_on(cpu, &mut (), |()| full_barrier());
    full_barrier();
    executed
}
