// SPDX-License-Identifier: GPL-2.0

//! A periodic timer that stays on the CPU that started it.

use crate::arch::word::SharedWord;
use crate::sys::args::Registers;
use crate::sys::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// A tick of a timer.
pub(crate) struct Expiry<'a> {
    /// Expiry time, in nanoseconds of the monotonic clock.
    pub(crate) due_ns: u64,
    /// Time from one tick to the next, in nanoseconds.
    pub(crate) period_ns: u64,
    /// Registers of the interrupted code, if this architecture's kernel provides them.
    pub(crate) registers: Option<&'a Registers>,
}

/// A periodic timer and its data.
#[pin_data(PinnedDrop)]
pub(crate) struct Timer<T: Sync> {
    #[pin]
    timer: Opaque<bindings::hrtimer>,
    data: T,
    tick: fn(&T, &Expiry<'_>),
    period_ns: SharedWord,
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: Any CPU may call the hrtimer functions; `T` is Sync.
unsafe impl<T: Sync> Sync for Timer<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: Send + Sync> Send for Timer<T> {}

impl<T: Sync> Timer<T> {
    /// Creates a stopped timer that calls `tick` with `data` in hard interrupt context, on the CPU that starts
    /// it. A timer with a period of 0 never starts.
    pub(crate) fn new(data: T, tick: fn(&T, &Expiry<'_>), period_us: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            timer <- Opaque::ffi_init(|timer| {
                // SAFETY: `timer` is memory for a timer that will not move.
                unsafe { bindings::rtrace_hrtimer_setup(timer, Some(Self::callback)) }
            }),
            data,
            tick,
            period_ns: SharedWord::new(nanoseconds(period_us)),
            pinned: PhantomPinned,
        })
    }

    /// Sets the period from the next tick on. It must not be 0.
    pub(crate) fn set_period(&self, period_us: u32) {
        self.period_ns.store(nanoseconds(period_us));
    }

    /// Starts the timer on this CPU, to which the caller must be bound.
    pub(crate) fn start(&self) {
        let period_ns = self.period_ns.load();
        if period_ns == 0 {
            return;
        }
        // SAFETY: The timer is set up, and pinned until the drop below.
        unsafe {
            bindings::hrtimer_start_range_ns(
                self.timer.get(),
                period_ns as i64,
                0,
                bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD,
            )
        };
    }

    /// Stops the timer, and waits for a running tick. May sleep.
    pub(crate) fn cancel(&self) {
        // SAFETY: The timer is set up. A timer that never started may be cancelled.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }

    /// Handles the end of a period.
    ///
    /// # Safety
    ///
    /// Only the kernel calls this, with the `timer` of a `Timer<T>`.
    unsafe extern "C" fn callback(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
        // SAFETY:
        // - `timer` is the field of a `Timer<T>`; an Opaque is transparent.
        // - The `Timer` is not dropped while the callback runs.
        let this = unsafe { &*kernel::container_of!(Opaque::cast_from(timer), Self, timer) };
        let period_ns = this.period_ns.load();
        // SAFETY:
        // - The timer's own callback may read its expiry time. It runs in an interrupt, and asks for the
        //   registers that this interrupted.
        // - The registers, if there are any, live until the interrupt ends.
        let (due_ns, registers) = unsafe {
            (
                bindings::rtrace_hrtimer_due(timer),
                bindings::rtrace_interrupted().cast::<Registers>().as_ref(),
            )
        };
        let expiry = Expiry {
            due_ns,
            period_ns,
            registers,
        };
        (this.tick)(&this.data, &expiry);
        // SAFETY: The timer may be forwarded from its own callback.
        unsafe { bindings::rtrace_hrtimer_again(timer, period_ns as i64) }
    }
}

/// Converts microseconds to nanoseconds.
fn nanoseconds(us: u32) -> u64 {
    u64::from(us).wrapping_mul(1000)
}

#[pinned_drop]
impl<T: Sync> PinnedDrop for Timer<T> {
    fn drop(self: Pin<&mut Self>) {
        self.cancel();
    }
}
