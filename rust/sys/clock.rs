// SPDX-License-Identifier: GPL-2.0

//! Clocks, their leaps, and the calendar.

use crate::sys::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// Ticks per second of the time stamp counter ([`tsc`](crate::arch::clock::tsc)), if its rate is constant at
/// all times on all CPUs.
pub(crate) fn tsc_frequency() -> Option<u64> {
    // SAFETY: Reads values that the kernel determined at boot.
    match unsafe { bindings::rtrace_tsc_frequency() } {
        0 => None,
        frequency => Some(frequency),
    }
}

/// Nanoseconds since the epoch. Any context except NMI.
pub(crate) fn realtime_ns() -> u64 {
    let mut now = bindings::timespec64::default();
    // SAFETY: Writes `now`.
    unsafe { bindings::ktime_get_real_ts64(&mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// A time in which clocks stood still, or a setting of the wall clock.
pub(crate) type Leap = bindings::rtrace_clock_leap;

/// A follower of the clocks' leaps.
pub(crate) trait FollowClock: Send + Sync {
    /// Handles a leap. Interrupts are off. The function may read no clock except those of
    /// [`arch`](crate::arch::clock). After a sleep this CPU is the only one that runs; otherwise other CPUs may
    /// run.
    fn leapt(&self, leap: &Leap);
}

/// Calls a follower at each leap, from creation until dropped.
#[pin_data(PinnedDrop)]
pub(crate) struct ClockWatch<T: FollowClock> {
    #[pin]
    watch: Opaque<bindings::rtrace_clock_watch>,
    follower: T,
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: The kernel's list has its own lock; `T` is Sync.
unsafe impl<T: FollowClock> Sync for ClockWatch<T> {}
// SAFETY: Not bound to a thread; `T` is Send.
unsafe impl<T: FollowClock> Send for ClockWatch<T> {}

impl<T: FollowClock> ClockWatch<T> {
    /// Follows the clocks. May sleep.
    pub(crate) fn new(follower: T) -> Result<Pin<KBox<Self>>> {
        let watch = KBox::pin_init(
            pin_init!(Self {
                watch <- Opaque::ffi_init(|watch: *mut bindings::rtrace_clock_watch| {
                    // SAFETY: `watch` is memory for a watch; the list fills in the rest.
                    unsafe {
                        watch.write(bindings::rtrace_clock_watch {
                            leapt: Some(leapt::<T>),
                            ..Default::default()
                        })
                    }
                }),
                follower,
                pinned: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The watch is pinned. It lives until the drop below has removed it from the list.
        unsafe { bindings::rtrace_clock_watch_add(watch.watch.get()) };
        Ok(watch)
    }
}

#[pinned_drop]
impl<T: FollowClock> PinnedDrop for ClockWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` has added the watch. This context may sleep.
        unsafe { bindings::rtrace_clock_watch_remove(self.watch.get()) };
    }
}

/// Calls the follower.
///
/// # Safety
///
/// Only the kernel calls this, with the `watch` of a live [`ClockWatch`] of a `T`.
unsafe extern "C" fn leapt<T: FollowClock>(
    watch: *mut bindings::rtrace_clock_watch,
    leap: *const bindings::rtrace_clock_leap,
) {
    // SAFETY:
    // - By the contract; an Opaque is transparent, and the `ClockWatch` outlives the call.
    // - `leap` is valid for the call.
    unsafe {
        let this = kernel::container_of!(Opaque::cast_from(watch), ClockWatch<T>, watch);
        (*this).follower.leapt(&*leap);
    }
}

/// A calendar time in UTC, formatted as ISO 8601 without separators.
pub(crate) struct Calendar(bindings::tm);

impl Calendar {
    /// The current time.
    pub(crate) fn now() -> Self {
        let mut tm = bindings::tm::default();
        // SAFETY: Writes `tm`.
        unsafe { bindings::time64_to_tm((realtime_ns() / 1_000_000_000) as i64, 0, &mut tm) };
        Self(tm)
    }
}

impl kernel::fmt::Display for Calendar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let tm = &self.0;
        write!(
            f,
            "{:04}{:02}{:02}T{:02}{:02}{:02}+0000",
            tm.tm_year + 1900,
            tm.tm_mon + 1,
            tm.tm_mday,
            tm.tm_hour,
            tm.tm_min,
            tm.tm_sec
        )
    }
}
