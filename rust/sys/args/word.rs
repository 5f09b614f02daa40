// SPDX-License-Identifier: GPL-2.0

//! Numbers that are reached by pointers from the current task.
//!
//! The choice of a number is data, not code: only one function follows pointers.

use super::task::CurrentTask;
use crate::arch::preempt::NoPreempt;
use crate::sys::bindings;
use bindings::{cred, nsproxy, task_struct};
use core::mem::offset_of;

/// A 32-bit number that is reached by pointers from a task.
///
/// # Invariants
///
/// - `pointer` is the offset of a pointer in a task. The object that it points to lives while a guard does.
/// - `next` is 0, or the offset of another pointer of this kind in that object.
/// - `at` is the offset of the number, in the object of the last pointer.
/// - With two pointers, each may be NULL. With one pointer, it is not NULL.
#[derive(Clone, Copy)]
pub(crate) struct FarWord {
    pointer: u16,
    next: u16,
    at: u16,
}

macro_rules! of_credentials {
    ($field:ident) => {
        Self::new(offset_of!(task_struct, cred), 0, offset_of!(cred, $field))
    };
}

macro_rules! of_namespaces {
    ($field:ident, $at:ident) => {
        Self::new(
            offset_of!(task_struct, nsproxy),
            offset_of!(nsproxy, $field),
            bindings::$at as usize + offset_of!(bindings::ns_common, inum),
        )
    };
}

impl FarWord {
    // INVARIANT: For all constants below:
    // - The fields have 32 bits.
    // - A live task has a parent and credentials. While a guard makes the reader an RCU reader, they are not
    //   freed.
    // - Credentials hold their user namespace.
    // - Only the current task exchanges its namespaces. The old ones are freed after the new ones are in place,
    //   so code that interrupts the task finds live namespaces.
    /// Process id of the parent in the initial namespace.
    pub(crate) const PARENT_PID: Self = Self::new(
        offset_of!(task_struct, real_parent),
        0,
        offset_of!(task_struct, tgid),
    );

    /// User ids and group ids in the initial namespace.
    pub(crate) const UID: Self = of_credentials!(uid);
    pub(crate) const EUID: Self = of_credentials!(euid);
    pub(crate) const SUID: Self = of_credentials!(suid);
    pub(crate) const GID: Self = of_credentials!(gid);
    pub(crate) const EGID: Self = of_credentials!(egid);
    pub(crate) const SGID: Self = of_credentials!(sgid);

    /// Inode numbers of namespaces, as `/proc/PID/ns` shows them. 0 if the task is ending and has none any
    /// more, or if the kernel has no namespaces of this kind.
    pub(crate) const CGROUP_NS: Self = of_namespaces!(cgroup_ns, rtrace_ns_at_RTRACE_NS_AT_CGROUP);
    pub(crate) const IPC_NS: Self = of_namespaces!(ipc_ns, rtrace_ns_at_RTRACE_NS_AT_IPC);
    pub(crate) const MNT_NS: Self = of_namespaces!(mnt_ns, rtrace_ns_at_RTRACE_NS_AT_MNT);
    pub(crate) const NET_NS: Self = of_namespaces!(net_ns, rtrace_ns_at_RTRACE_NS_AT_NET);
    pub(crate) const TIME_NS: Self = of_namespaces!(time_ns, rtrace_ns_at_RTRACE_NS_AT_TIME);
    pub(crate) const UTS_NS: Self = of_namespaces!(uts_ns, rtrace_ns_at_RTRACE_NS_AT_UTS);
    pub(crate) const USER_NS: Self = Self::new(
        offset_of!(task_struct, cred),
        offset_of!(cred, user_ns),
        offset_of!(bindings::user_namespace, ns.inum),
    );

    const fn new(pointer: usize, next: usize, at: usize) -> Self {
        Self {
            pointer: offset(pointer),
            next: offset(next),
            at: offset(at),
        }
    }

    /// Reads the number; 0 if a pointer is NULL.
    ///
    /// # Safety
    ///
    /// `task` must be the current task.
    #[inline(always)]
    unsafe fn read(&self, task: *const task_struct, _guard: &NoPreempt) -> u32 {
        // SAFETY: By the invariant, for the current task and for objects that live. Each field is read once.
        unsafe {
            let mut at = read_pointer(task.cast(), self.pointer);
            if self.next != 0 {
                if at.is_null() {
                    return 0;
                }
                at = read_pointer(at, self.next);
                if at.is_null() {
                    return 0;
                }
            }
            at.byte_add(self.at.into()).cast::<u32>().read_volatile()
        }
    }
}

/// Reads a pointer in an object.
///
/// # Safety
///
/// `of` must have a pointer at `offset`.
#[inline(always)]
unsafe fn read_pointer(of: *const u8, offset: u16) -> *const u8 {
    // SAFETY: By the contract.
    unsafe {
        of.byte_add(offset.into())
            .cast::<*const u8>()
            .read_volatile()
    }
}

const fn offset(at: usize) -> u16 {
    assert!(at <= u16::MAX as usize);
    at as u16
}

impl CurrentTask {
    /// A number reached from the task; 0 if it cannot be reached. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn far_word(&self, word: &FarWord, guard: &NoPreempt) -> u32 {
        // SAFETY: This is the current task.
        unsafe { word.read(self.as_ptr(), guard) }
    }
}
