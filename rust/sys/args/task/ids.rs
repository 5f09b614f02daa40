// SPDX-License-Identifier: GPL-2.0

//! Users and groups of the task that runs, as its own user namespace has them.
//!
//! The kernel's `from_kuid_munged()` finds them, too, but is a call that may be traced. The data that it looks
//! up is looked up here: the map of the namespace that the task's credentials hold.

use super::CurrentTask;
use crate::arch::preempt::NoPreempt;
use crate::sys::bindings;
use bindings::{cred, uid_gid_extent, uid_gid_map, user_namespace};
use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{fence, Ordering};

/// Number of ranges in a map itself. A longer list is elsewhere, and sorted.
const BASE_EXTENTS: usize = bindings::UID_GID_MAP_MAX_BASE_EXTENTS as usize;

/// An id that credentials have.
///
/// # Invariants
///
/// `at` is the offset of 32 bits in credentials, `map` that of the map for such ids in a user namespace.
#[derive(Clone, Copy)]
pub(crate) struct IdInNamespace {
    at: u16,
    map: u16,
}

const USER_MAP: usize = offset_of!(user_namespace, uid_map);
const GROUP_MAP: usize = offset_of!(user_namespace, gid_map);

// INVARIANT, of all: Each is the offset of a field of that size.
impl IdInNamespace {
    /// User: real, effective and saved.
    pub(crate) const UID: Self = Self::new(offset_of!(cred, uid), USER_MAP);
    pub(crate) const EUID: Self = Self::new(offset_of!(cred, euid), USER_MAP);
    pub(crate) const SUID: Self = Self::new(offset_of!(cred, suid), USER_MAP);
    /// Group, likewise.
    pub(crate) const GID: Self = Self::new(offset_of!(cred, gid), GROUP_MAP);
    pub(crate) const EGID: Self = Self::new(offset_of!(cred, egid), GROUP_MAP);
    pub(crate) const SGID: Self = Self::new(offset_of!(cred, sgid), GROUP_MAP);

    const fn new(at: usize, map: usize) -> Self {
        assert!(at <= u16::MAX as usize && map <= u16::MAX as usize);
        Self {
            at: at as u16,
            map: map as u16,
        }
    }

    /// Shown for an id that a namespace does not have.
    #[inline(always)]
    fn overflow(self) -> u32 {
        let overflow = match self.map as usize {
            USER_MAP => &raw const bindings::overflowuid,
            _ => &raw const bindings::overflowgid,
        };
        // SAFETY: A variable of the kernel's, which an administrator may change; read once.
        unsafe { overflow.read_volatile() as u32 }
    }
}

impl CurrentTask {
    /// An id as its own user namespace has it; where that has no such id, what the kernel shows
    /// instead (`/proc/sys/kernel/overflowuid`, `overflowgid`). Any context, NMI included.
    #[inline(always)]
    pub(crate) fn id_in_namespace(&self, id: IdInNamespace, _guard: &NoPreempt) -> u32 {
        // SAFETY:
        // - A live task has credentials, which are not freed while the guard makes this an RCU reader.
        // - They hold their user namespace; by the invariant they have 32 bits there.
        // - A namespace has its maps as long as it lives.
        let mapped = unsafe {
            let credentials = (&raw const (*self.as_ptr()).cred).read_volatile();
            let number = credentials.byte_add(id.at.into()).cast::<u32>().read();
            let map = (*credentials).user_ns.byte_add(id.map.into());
            mapped_up(map.cast(), number)
        };
        mapped.unwrap_or_else(|| id.overflow())
    }
}

/// Maps an id of the initial namespace to the namespace of `map`.
///
/// # Safety
///
/// The map of a live namespace.
#[inline(always)]
unsafe fn mapped_up(map: *const uid_gid_map, id: u32) -> Option<u32> {
    // SAFETY: By the contract. The extents are written once, before the number of extents
    // (`map_write()`), and stay as long as the namespace. There are as many extents as `left`.
    unsafe {
        let inside = &raw const (*map).__bindgen_anon_1.__bindgen_anon_1;
        let mut left = (&raw const (*inside).nr_extents).read_volatile() as usize;
        // The extents are read after their number: pairs with smp_wmb() in map_write().
        fence(Ordering::Acquire);
        let mut extent: *const uid_gid_extent = (&raw const (*inside).extent).cast();
        if left > BASE_EXTENTS {
            // They do not overlap, and lie in the order of their ids in the initial namespace: one can have
            // the id, the last of those that do not begin after it.
            extent = (*map).__bindgen_anon_1.__bindgen_anon_2.reverse;
            while left > 1 {
                let half = left / 2;
                if (*extent.add(half)).lower_first <= id {
                    extent = extent.add(half);
                }
                left = left.wrapping_sub(half);
            }
        }
        while left != 0 {
            let place = id.wrapping_sub((*extent).lower_first);
            if place < (*extent).count {
                return Some((*extent).first.wrapping_add(place));
            }
            extent = extent.add(1);
            left = left.wrapping_sub(1);
            // No effect, except that the compiler does not unroll the loop, which mostly has one iteration.
            asm!("", options(nomem, nostack, preserves_flags));
        }
        None
    }
}
