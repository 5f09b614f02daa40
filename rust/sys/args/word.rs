// SPDX-License-Identifier: GPL-2.0

//! Numbers in objects that the running task points to.
//!
//! The path to a number is data, not code: each kind of path has one function that follows it.

use super::task::CurrentTask;
use crate::arch::preempt::NoPreempt;
use crate::sys::bindings;
use bindings::{cred, nsproxy, task_struct};
use core::mem::offset_of;

/// A 32-bit number in an object that the task points to.
///
/// # Invariants
///
/// `pointer` is the offset of a pointer of a task, which is not NULL, to an object that lives while a
/// guard exists. `at` is the offset of the number there.
#[derive(Clone, Copy)]
pub(crate) struct FarWord {
    pointer: u16,
    at: u16,
}

/// The inode number of a namespace of the task.
///
/// # Invariants
///
/// `pointer` is the offset of a pointer of a task, `next` that of a pointer there, and `at` that of 32
/// bits in the namespace. Each pointer is NULL, or points to an object that lives while a guard exists.
#[derive(Clone, Copy)]
pub(crate) struct NamespaceWord {
    pointer: u16,
    next: u16,
    at: u16,
}

// INVARIANT, of all: Fields of 32 bits. A live task has a parent and credentials, which are not
// freed while a guard makes the reader an RCU reader.
impl FarWord {
    /// Process id of the parent in the initial namespace.
    pub(crate) const PARENT_PID: Self = Self::new(
        offset_of!(task_struct, real_parent),
        offset_of!(task_struct, tgid),
    );

    /// User ids and group ids in the initial namespace.
    pub(crate) const UID: Self = Self::of_credentials(offset_of!(cred, uid));
    pub(crate) const EUID: Self = Self::of_credentials(offset_of!(cred, euid));
    pub(crate) const SUID: Self = Self::of_credentials(offset_of!(cred, suid));
    pub(crate) const GID: Self = Self::of_credentials(offset_of!(cred, gid));
    pub(crate) const EGID: Self = Self::of_credentials(offset_of!(cred, egid));
    pub(crate) const SGID: Self = Self::of_credentials(offset_of!(cred, sgid));

    const fn of_credentials(at: usize) -> Self {
        Self::new(offset_of!(task_struct, cred), at)
    }

    const fn new(pointer: usize, at: usize) -> Self {
        Self {
            pointer: offset(pointer),
            at: offset(at),
        }
    }
}

macro_rules! in_proxy {
    ($field:ident, $at:ident) => {
        Self::new(
            offset_of!(task_struct, nsproxy),
            offset_of!(nsproxy, $field),
            bindings::$at as usize + offset_of!(bindings::ns_common, inum),
        )
    };
}

// INVARIANT, of all: Fields of 32 bits. Credentials, which a live task has, are not freed while a
// guard makes the reader an RCU reader, and hold their user namespace. Only the running task
// exchanges its namespaces. The old ones are freed after the new ones are in place, so that a context
// that interrupts the task finds namespaces that live.
impl NamespaceWord {
    /// Inode numbers of namespaces, as `/proc/PID/ns` shows them; 0 where the task has none any
    /// more, because it ends, or the kernel has none of the kind.
    pub(crate) const CGROUP: Self = in_proxy!(cgroup_ns, rtrace_ns_at_RTRACE_NS_AT_CGROUP);
    pub(crate) const IPC: Self = in_proxy!(ipc_ns, rtrace_ns_at_RTRACE_NS_AT_IPC);
    pub(crate) const MNT: Self = in_proxy!(mnt_ns, rtrace_ns_at_RTRACE_NS_AT_MNT);
    pub(crate) const NET: Self = in_proxy!(net_ns, rtrace_ns_at_RTRACE_NS_AT_NET);
    pub(crate) const TIME: Self = in_proxy!(time_ns, rtrace_ns_at_RTRACE_NS_AT_TIME);
    pub(crate) const UTS: Self = in_proxy!(uts_ns, rtrace_ns_at_RTRACE_NS_AT_UTS);
    pub(crate) const USER: Self = Self::new(
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
}

/// # Safety
///
/// At this offset lies a `T`.
#[inline(always)]
unsafe fn read<T>(of: *const u8, offset: u16) -> T {
    // SAFETY: By the contract; read once.
    unsafe { of.byte_add(offset.into()).cast::<T>().read_volatile() }
}

const fn offset(at: usize) -> u16 {
    assert!(at <= u16::MAX as usize);
    at as u16
}

impl CurrentTask {
    /// A number in an object that the task points to. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn far_word(&self, word: &FarWord, _guard: &NoPreempt) -> u32 {
        // SAFETY: By the invariant, of the running task.
        unsafe {
            let object: *const u8 = read(self.as_ptr().cast(), word.pointer);
            read(object, word.at)
        }
    }

    /// The inode number of a namespace; 0 if the task does not have it. Any context, NMI included.
    #[inline(always)]
    pub(crate) fn namespace(&self, word: &NamespaceWord, _guard: &NoPreempt) -> u32 {
        // SAFETY: By the invariant, of the running task; pointers are checked for NULL.
        unsafe {
            let object: *const u8 = read(self.as_ptr().cast(), word.pointer);
            if object.is_null() {
                return 0;
            }
            let namespace: *const u8 = read(object, word.next);
            if namespace.is_null() {
                return 0;
            }
            read(namespace, word.at)
        }
    }
}
