// SPDX-License-Identifier: GPL-2.0

//! User and group ids of the current task in its own user namespace.
//!
//! The kernel's `from_kuid_munged()` also finds them, but it is a call that may be traced. So this code does
//! the same lookup: in the map of the namespace that the task's credentials hold.

use super::CurrentTask;
use crate::arch::preempt::NoPreempt;
use crate::sys::bindings;
use bindings::{cred, uid_gid_extent, uid_gid_map, user_namespace};
use core::mem::offset_of;
use core::sync::atomic::{fence, Ordering};

/// Maximum number of ranges in a map itself. A longer list is outside of the map, and sorted.
const BASE_EXTENTS: usize = bindings::UID_GID_MAP_MAX_BASE_EXTENTS as usize;

/// An id in credentials.
///
/// # Invariants
///
/// `at` is the offset of 32 bits in credentials.
#[derive(Clone, Copy)]
pub(crate) struct IdInNamespace {
    at: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    User,
    Group,
}

// INVARIANT: Each constant is the offset of a field of that size.
impl IdInNamespace {
    /// User id: real, effective and saved.
    pub(crate) const UID: Self = Self::user(offset_of!(cred, uid));
    pub(crate) const EUID: Self = Self::user(offset_of!(cred, euid));
    pub(crate) const SUID: Self = Self::user(offset_of!(cred, suid));
    /// Group id, likewise.
    pub(crate) const GID: Self = Self::group(offset_of!(cred, gid));
    pub(crate) const EGID: Self = Self::group(offset_of!(cred, egid));
    pub(crate) const SGID: Self = Self::group(offset_of!(cred, sgid));

    const fn user(at: usize) -> Self {
        let kind = Kind::User;
        Self { at, kind }
    }

    const fn group(at: usize) -> Self {
        let kind = Kind::Group;
        Self { at, kind }
    }
}

impl Kind {
    /// The map of a namespace for ids of this kind.
    ///
    /// # Safety
    ///
    /// `namespace` must be live.
    #[inline(always)]
    unsafe fn map(self, namespace: *const user_namespace) -> *const uid_gid_map {
        // SAFETY: By the contract.
        unsafe {
            match self {
                Self::User => &raw const (*namespace).uid_map,
                Self::Group => &raw const (*namespace).gid_map,
            }
        }
    }

    /// The id that is shown for an id without mapping.
    #[inline(always)]
    fn overflow(self) -> u32 {
        let overflow = match self {
            Self::User => &raw const bindings::overflowuid,
            Self::Group => &raw const bindings::overflowgid,
        };
        // SAFETY: The variable is the kernel's, and an administrator may change it. It is read once.
        unsafe { overflow.read_volatile() as u32 }
    }
}

impl CurrentTask {
    /// An id in the task's own user namespace. If the namespace has no such id, the kernel's replacement
    /// (`/proc/sys/kernel/overflowuid`, `overflowgid`). Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    pub(crate) fn id_in_namespace(&self, id: IdInNamespace, _guard: &NoPreempt) -> u32 {
        // SAFETY:
        // - A live task has credentials. The guard makes this an RCU reader, so they are not freed.
        // - They hold their user namespace. By the invariant they have 32 bits at this offset.
        // - A namespace has its maps until its end.
        let mapped = unsafe {
            let credentials = (&raw const (*self.as_ptr()).cred).read_volatile();
            let number = credentials.byte_add(id.at).cast::<u32>().read();
            mapped_up(id.kind.map((*credentials).user_ns), number)
        };
        mapped.unwrap_or_else(|| id.kind.overflow())
    }
}

/// Maps an id of the initial namespace into the namespace of `map`.
///
/// # Safety
///
/// `map` must be that of a live namespace.
#[inline(always)]
unsafe fn mapped_up(map: *const uid_gid_map, id: u32) -> Option<u32> {
    // SAFETY: By the contract. The extents are written once, before their number (`map_write()`), and stay as
    // long as the namespace.
    unsafe {
        let inside = &raw const (*map).__bindgen_anon_1.__bindgen_anon_1;
        let extents = (&raw const (*inside).nr_extents).read_volatile() as usize;
        // The extents are read after their number. Pairs with smp_wmb() in map_write().
        fence(Ordering::Acquire);
        if extents <= BASE_EXTENTS {
            let first = (&raw const (*inside).extent).cast();
            return find_linear(core::slice::from_raw_parts(first, extents), id);
        }
        let outside = &raw const (*map).__bindgen_anon_1.__bindgen_anon_2;
        find_sorted(core::slice::from_raw_parts((*outside).reverse, extents), id)
    }
}

#[inline(always)]
fn find_linear(extents: &[uid_gid_extent], id: u32) -> Option<u32> {
    extents.iter().find_map(|extent| within(extent, id))
}

/// The extents do not overlap. They are sorted by their ids in the initial namespace.
#[inline(always)]
fn find_sorted(extents: &[uid_gid_extent], id: u32) -> Option<u32> {
    let behind = extents.partition_point(|extent| extent.lower_first <= id);
    within(extents.get(behind.wrapping_sub(1))?, id)
}

/// Maps an id of the initial namespace, if the extent has it.
#[inline(always)]
fn within(extent: &uid_gid_extent, id: u32) -> Option<u32> {
    let place = id.wrapping_sub(extent.lower_first);
    (place < extent.count).then(|| extent.first.wrapping_add(place))
}
