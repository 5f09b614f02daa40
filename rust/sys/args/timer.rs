// SPDX-License-Identifier: GPL-2.0

//! Timers.

use crate::sys::bindings;
use crate::sys::old;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct timer_list`.
#[repr(transparent)]
pub(crate) struct TimerList(Opaque<bindings::timer_list>);

// SAFETY: The pointer is to a live timer. No tracepoint passes NULL for it.
unsafe impl Arg for &TimerList {
    type Raw = *mut bindings::timer_list;
}

impl TimerList {
    /// Address of the timer.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        self.0.get().addr() as u64
    }

    /// Address of its callback.
    #[inline(always)]
    pub(crate) fn function(&self) -> u64 {
        // SAFETY: The timer is live.
        unsafe { (*self.0.get()).function }.map_or(0, |function| function as usize as u64)
    }

    /// Its expiry time in jiffies.
    #[inline(always)]
    pub(crate) fn expires(&self) -> u64 {
        // SAFETY: The timer is live.
        unsafe { (*self.0.get()).expires as u64 }
    }

    /// Its flags (`TIMER_...`), which contain its CPU.
    #[inline(always)]
    pub(crate) fn flags(&self) -> u32 {
        // SAFETY: The timer is live. The field is read once.
        unsafe { (&raw const (*self.0.get()).flags).read_volatile() }
    }
}

/// The current time in jiffies.
#[inline(always)]
pub(crate) fn jiffies() -> u64 {
    // SAFETY: The kernel increments this word. It is read once.
    unsafe { (&raw const bindings::jiffies).read_volatile() as u64 }
}

/// A `struct hrtimer`.
#[repr(transparent)]
pub(crate) struct HrTimer(Opaque<bindings::hrtimer>);

// SAFETY: The pointer is to a live timer. No tracepoint passes NULL for it.
unsafe impl Arg for &HrTimer {
    type Raw = *mut bindings::hrtimer;
}

impl HrTimer {
    /// Address of the timer.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        self.0.get().addr() as u64
    }

    /// Address of its callback.
    #[inline(always)]
    pub(crate) fn function(&self) -> u64 {
        // SAFETY: The timer is live.
        unsafe { (*self.0.get()).function }.map_or(0, |function| function as usize as u64)
    }

    /// Its latest expiry time, in nanoseconds.
    #[inline(always)]
    pub(crate) fn expires(&self) -> i64 {
        // SAFETY: The timer is live.
        unsafe { (*self.0.get()).node.expires }
    }

    /// Its earliest expiry time, in nanoseconds.
    #[inline(always)]
    pub(crate) fn soft_expires(&self) -> i64 {
        // SAFETY: The timer is live.
        unsafe { (*self.0.get())._softexpires }
    }
}

/// The time at which a high-resolution timer is due.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct DueTime(bindings::rtrace_expiry_t);

// SAFETY: Transparent.
unsafe impl Arg for DueTime {
    type Raw = bindings::rtrace_expiry_t;
}

impl DueTime {
    /// The time in nanoseconds.
    #[inline(always)]
    pub(crate) fn ns(&self) -> i64 {
        // SAFETY: A pointer is to the caller's variable. No tracepoint passes NULL for it.
        unsafe { old::ExpiryArgument::ns(self.0) }
    }
}

/// A `struct itimerspec64`: the setting of an interval timer.
#[repr(transparent)]
pub(crate) struct TimerSetting(bindings::itimerspec64);

// SAFETY: The pointer is to a live setting that no code changes during the call. No tracepoint passes NULL for
// it.
unsafe impl Arg for &TimerSetting {
    type Raw = *const bindings::itimerspec64;
}

impl TimerSetting {
    /// Seconds and nanoseconds until the first expiry.
    #[inline(always)]
    pub(crate) fn value(&self) -> (i64, i64) {
        (self.0.it_value.tv_sec, self.0.it_value.tv_nsec as i64)
    }

    /// Seconds and nanoseconds from one expiry to the next.
    #[inline(always)]
    pub(crate) fn interval(&self) -> (i64, i64) {
        (self.0.it_interval.tv_sec, self.0.it_interval.tv_nsec as i64)
    }
}
