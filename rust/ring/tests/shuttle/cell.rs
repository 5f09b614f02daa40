// SPDX-License-Identifier: GPL-2.0

//! Payload bytes: at each access the other thread may run first.

use shuttle::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Replacement of loom's cell. The machine checks which thread may write.
pub struct UnsafeCell<T> {
    value: std::cell::UnsafeCell<T>,
    access: AtomicBool,
}

impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: std::cell::UnsafeCell::new(value),
            access: AtomicBool::new(false),
        }
    }

    pub fn with<R>(&self, work: impl FnOnce(*const T) -> R) -> R {
        self.access.load(SeqCst);
        work(self.value.get())
    }

    pub fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        self.access.load(SeqCst);
        work(self.value.get())
    }
}
