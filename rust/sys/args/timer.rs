// SPDX-License-Identifier: GPL-2.0

//! Timers.

use crate::sys::bindings;
use crate::sys::tracepoint::Arg;
use kernel::types::Opaque;

/// A `struct timer_list`.
#[repr(transparent)]
pub(crate) struct TimerList(Opaque<bindings::timer_list>);

// SAFETY: A pointer to a live timer; tracepoints that pass one pass no NULL.
unsafe impl Arg for &TimerList {
    type Raw = *mut bindings::timer_list;
}

impl TimerList {
    /// Where it is.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        self.0.get().addr() as u64
    }

    /// The address of what it calls.
    #[inline(always)]
    pub(crate) fn function(&self) -> u64 {
        // SAFETY: A live timer.
        unsafe { (*self.0.get()).function }.map_or(0, |function| function as usize as u64)
    }

    /// When it is due, in jiffies.
    #[inline(always)]
    pub(crate) fn expires(&self) -> u64 {
        // SAFETY: A live timer.
        unsafe { (*self.0.get()).expires as u64 }
    }

    /// Its flags (`TIMER_...`) and its CPU.
    #[inline(always)]
    pub(crate) fn flags(&self) -> u32 {
        // SAFETY: A live timer; read once.
        unsafe { (&raw const (*self.0.get()).flags).read_volatile() }
    }
}

/// What time it is, in jiffies.
#[inline(always)]
pub(crate) fn jiffies() -> u64 {
    // SAFETY: A word that the kernel counts up; read once.
    unsafe { (&raw const bindings::jiffies).read_volatile() as u64 }
}

/// A `struct hrtimer`.
#[repr(transparent)]
pub(crate) struct HrTimer(Opaque<bindings::hrtimer>);

// SAFETY: A pointer to a live timer; tracepoints that pass one pass no NULL.
unsafe impl Arg for &HrTimer {
    type Raw = *mut bindings::hrtimer;
}

impl HrTimer {
    /// Where it is.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        self.0.get().addr() as u64
    }

    /// The address of what it calls.
    #[inline(always)]
    pub(crate) fn function(&self) -> u64 {
        // SAFETY: A live timer.
        unsafe { (*self.0.get()).function }.map_or(0, |function| function as usize as u64)
    }

    /// When it is due at the latest, in nanoseconds.
    #[inline(always)]
    pub(crate) fn expires(&self) -> i64 {
        // SAFETY: A live timer.
        unsafe { (*self.0.get()).node.expires }
    }

    /// When it is due at the earliest, in nanoseconds.
    #[inline(always)]
    pub(crate) fn soft_expires(&self) -> i64 {
        // SAFETY: A live timer.
        unsafe { (*self.0.get())._softexpires }
    }
}

/// A `struct itimerspec64`: what an interval timer is set to.
#[repr(transparent)]
pub(crate) struct TimerSetting(bindings::itimerspec64);

// SAFETY: A pointer to a live setting that nobody changes; tracepoints pass no NULL.
unsafe impl Arg for &TimerSetting {
    type Raw = *const bindings::itimerspec64;
}

impl TimerSetting {
    /// Seconds and nanoseconds to the first expiry.
    #[inline(always)]
    pub(crate) fn value(&self) -> (i64, i64) {
        (self.0.it_value.tv_sec, self.0.it_value.tv_nsec as i64)
    }

    /// Seconds and nanoseconds from one to the next.
    #[inline(always)]
    pub(crate) fn interval(&self) -> (i64, i64) {
        (self.0.it_interval.tv_sec, self.0.it_interval.tv_nsec as i64)
    }
}
