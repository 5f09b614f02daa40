// SPDX-License-Identifier: GPL-2.0

//! A ring's slots in a vector, with the index of the open one.

use super::ring::platform::{Local, Platform};
use super::ring::slot::{Slot, Slots};

/// Slots, and the index of the open slot.
pub struct IndexedSlots<P: Platform> {
    slots: Vec<Slot<P>>,
    open: P::Local,
}

impl<P: Platform> IndexedSlots<P> {
    /// Makes the slots from `slots`, in order.
    pub fn new(slots: Vec<Slot<P>>) -> Self {
        Self {
            slots,
            open: P::Local::new(0),
        }
    }
}

impl<P: Platform> Slots<P> for IndexedSlots<P> {
    fn all(&self) -> &[Slot<P>] {
        &self.slots
    }
    fn open(&self) -> &Slot<P> {
        &self.slots[self.open.load() as usize]
    }
    fn set_open(&self, index: u64) {
        self.open.store(index);
    }
}
