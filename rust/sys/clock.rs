// SPDX-License-Identifier: GPL-2.0

//! Clocks, their leaps, and the calendar.

use crate::sys::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// Ticks of the time stamp counter ([`tsc`](crate::arch::clock::tsc)) per second, if it runs at a constant rate at all times on all CPUs.
pub(crate) fn tsc_frequency() -> Option<u64> {
    // SAFETY: Reads what was found out at boot.
    unsafe {
        if !bindings::rtrace_tsc_is_trustworthy() {
            return None;
        }
        Some(u64::from(bindings::tsc_khz) * 1000)
    }
}

/// Nanoseconds since the epoch. Not from NMI.
pub(crate) fn realtime_ns() -> u64 {
    let mut now = bindings::timespec64::default();
    // SAFETY: Writes `now`.
    unsafe { bindings::ktime_get_real_ts64(&mut now) };
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// A moment in which clocks stood still, or were set.
pub(crate) type Leap = bindings::rtrace_clock_leap;

/// A follower of the clocks' leaps.
pub(crate) trait FollowClock: Send + Sync {
    /// The clocks leapt. Interrupts are off, and no clock but those of [`arch`](crate::arch::clock)
    /// may be read. After a sleep no other CPU runs yet; otherwise others may.
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

// SAFETY: The kernel's list is under its own lock; `T` is Sync.
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
        // SAFETY: The watch is pinned, and stays until the drop below takes it off the list.
        unsafe { bindings::rtrace_clock_watch_add(watch.watch.get()) };
        Ok(watch)
    }
}

#[pinned_drop]
impl<T: FollowClock> PinnedDrop for ClockWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` has added it. It may sleep here.
        unsafe { bindings::rtrace_clock_watch_remove(self.watch.get()) };
    }
}

/// Calls the follower.
///
/// # Safety
///
/// For the kernel to call, with the `watch` of a live [`ClockWatch`] of a `T`.
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

/// A moment in the calendar, UTC, as ISO 8601 writes it without separators.
pub(crate) struct Calendar(bindings::tm);

impl Calendar {
    /// This moment.
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
