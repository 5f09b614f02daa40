// SPDX-License-Identifier: GPL-2.0

//! Events of timers. Times of timers are in jiffies, those of high-resolution timers in
//! nanoseconds.

use crate::source::field::KernelAddress;
use crate::sys::args::{jiffies, DueTime, HrTimer, Pid, TimerList, TimerSetting};

event! {
    /// A timer is made ready for use.
    optional TIMER_INIT: timer "timer_init" = timer_init(timer: &TimerList) {
        timer: KernelAddress = KernelAddress::new(timer.address()),
    }
}

event! {
    /// A timer is set.
    optional TIMER_START: timer "timer_start" =
        timer_start(timer: &TimerList, bucket_expiry: usize)
    {
        timer: KernelAddress = KernelAddress::new(timer.address()),
        function: KernelAddress = KernelAddress::new(timer.function()),
        expires: u64 = timer.expires(),
        bucket_expiry: u64 = bucket_expiry as u64,
        now: u64 = jiffies(),
        flags: u32 = timer.flags(),
    }
}

event! {
    /// A timer is due: its function begins.
    optional TIMER_EXPIRE_ENTRY: timer "timer_expire_entry" =
        timer_expire_entry(timer: &TimerList, baseclk: usize)
    {
        timer: KernelAddress = KernelAddress::new(timer.address()),
        now: u64 = jiffies(),
        function: KernelAddress = KernelAddress::new(timer.function()),
        baseclk: u64 = baseclk as u64,
    }
}

event! {
    /// A timer's function ends. The timer may be gone by now.
    optional TIMER_EXPIRE_EXIT: timer "timer_expire_exit" = timer_expire_exit(timer: &TimerList) {
        timer: KernelAddress = KernelAddress::new(timer.address()),
    }
}

event! {
    /// A timer is not to expire any more.
    optional TIMER_CANCEL: timer "timer_cancel" = timer_cancel(timer: &TimerList) {
        timer: KernelAddress = KernelAddress::new(timer.address()),
    }
}

event! {
    /// A high-resolution timer is set.
    optional TIMER_HRTIMER_START: timer "timer_hrtimer_start" =
        hrtimer_start(hrtimer: &HrTimer, mode: u32, was_armed: bool)
    {
        hrtimer: KernelAddress = KernelAddress::new(hrtimer.address()),
        function: KernelAddress = KernelAddress::new(hrtimer.function()),
        expires: i64 = hrtimer.expires(),
        softexpires: i64 = hrtimer.soft_expires(),
        mode: u32 = mode,
        was_armed: u8 = was_armed.into(),
    }
}

event! {
    /// A high-resolution timer is due: its function begins.
    optional TIMER_HRTIMER_EXPIRE_ENTRY: timer "timer_hrtimer_expire_entry" =
        hrtimer_expire_entry(hrtimer: &HrTimer, now: DueTime)
    {
        hrtimer: KernelAddress = KernelAddress::new(hrtimer.address()),
        now: i64 = now.ns(),
        function: KernelAddress = KernelAddress::new(hrtimer.function()),
    }
}

event! {
    /// A high-resolution timer's function ends. The timer may be gone by now.
    optional TIMER_HRTIMER_EXPIRE_EXIT: timer "timer_hrtimer_expire_exit" =
        hrtimer_expire_exit(hrtimer: &HrTimer)
    {
        hrtimer: KernelAddress = KernelAddress::new(hrtimer.address()),
    }
}

event! {
    /// A high-resolution timer is not to expire any more.
    optional TIMER_HRTIMER_CANCEL: timer "timer_hrtimer_cancel" =
        hrtimer_cancel(hrtimer: &HrTimer)
    {
        hrtimer: KernelAddress = KernelAddress::new(hrtimer.address()),
    }
}

event! {
    /// A process sets its interval timer.
    optional TIMER_ITIMER_STATE: timer "timer_itimer_state" =
        itimer_state(which: i32, value: &TimerSetting, expires: u64)
    {
        which: i32 = which,
        expires: u64 = expires,
        value_sec: i64 = value.value().0,
        value_nsec: i64 = value.value().1,
        interval_sec: i64 = value.interval().0,
        interval_nsec: i64 = value.interval().1,
    }
}

event! {
    /// A process's interval timer is due.
    optional TIMER_ITIMER_EXPIRE: timer "timer_itimer_expire" =
        itimer_expire(which: i32, pid: Option<&Pid>, now: u64)
    {
        which: i32 = which,
        pid: i32 = pid.map_or(0, Pid::number),
        now: u64 = now,
    }
}
