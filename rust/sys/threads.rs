// SPDX-License-Identifier: GPL-2.0

//! Iteration over all threads, and the state of each. Process context.

use crate::arch::task;
use crate::sys::bindings;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::prelude::*;

pub(crate) use bindings::rtrace_namespaces as Namespaces;
pub(crate) use bindings::rtrace_pid_ns as InPidNamespace;
pub(crate) use bindings::rtrace_thread as ThreadState;
pub(crate) use bindings::rtrace_user_ns as InUserNamespace;

/// A thread during a visit. It may be ending.
///
/// # Invariants
///
/// The pointer is that of a task. Only code that [`visit`] calls has this, so RCU keeps the task.
pub(crate) struct Thread<'a>(NonNull<bindings::task_struct>, PhantomData<&'a ()>);

/// Prepares the pseudonyms of tables of files. Called once, when the module is loaded. May sleep.
pub(crate) fn init() {
    // SAFETY: This context may sleep. No thread is visited yet.
    unsafe { bindings::rtrace_threads_init() };
}

/// Calls `visit` with the thread that has the smallest id from `tid` on, and returns that id. [`None`]: there
/// is no such thread. `visit` must not sleep. The function itself may sleep outside of `visit`.
pub(crate) fn visit(tid: i32, mut visit: impl FnMut(&Thread<'_>)) -> Option<i32> {
    /// Calls an `F`.
    ///
    /// # Safety
    ///
    /// RCU must keep `task` during the call. `data` must point to an `F` that no other code uses.
    unsafe extern "C" fn call<F: FnMut(&Thread<'_>)>(
        task: *mut bindings::task_struct,
        data: *mut c_void,
    ) {
        // SAFETY: By the contract.
        let visit = unsafe { &mut *data.cast::<F>() };
        if let Some(task) = NonNull::new(task) {
            // INVARIANT: By the contract. `visit` cannot keep the reference.
            visit(&Thread(task, PhantomData));
        }
    }
    /// `call` for the type of `visit`.
    fn caller<F: FnMut(&Thread<'_>)>(_: &F) -> bindings::rtrace_visit_thread_t {
        Some(call::<F>)
    }
    let caller = caller(&visit);
    // SAFETY:
    // - This is process context, which may sleep.
    // - `caller` gets a task under RCU, and `visit`, which lives until the call returns.
    let found =
        unsafe { bindings::rtrace_visit_thread(tid, caller, (&raw mut visit).cast::<c_void>()) };
    (found > 0).then_some(found)
}

/// The memory of a process, which several threads use.
///
/// # Invariants
///
/// The pointer is that of a memory that lives as long as this.
pub(crate) struct ProcessMemory<'a>(NonNull<bindings::mm_struct>, PhantomData<&'a ()>);

impl ProcessMemory<'_> {
    /// The memory that the kernel passes to a handler.
    ///
    /// # Safety
    ///
    /// It must live as long as the result.
    pub(super) unsafe fn of(memory: *mut bindings::mm_struct) -> Option<Self> {
        // INVARIANT: By the contract.
        Some(Self(NonNull::new(memory)?, PhantomData))
    }

    /// The memory of the current task. [`None`]: a thread of the kernel has none.
    pub(crate) fn current() -> Option<Self> {
        // SAFETY: The current task keeps its memory until its end or its exec, so as long as its caller runs.
        unsafe { Self::of((*task::current()).mm) }
    }

    /// Whether it is this one.
    pub(super) fn is(&self, memory: *const bindings::mm_struct) -> bool {
        core::ptr::eq(self.0.as_ptr(), memory)
    }

    /// Whether `picks` selects a thread of its process by the id. Also true if the process is being forked, or if this
    /// kernel does not know the threads. Process context.
    pub(crate) fn has_thread(&self, mut picks: impl FnMut(i32) -> bool) -> bool {
        /// Calls an `F`.
        ///
        /// # Safety
        ///
        /// `data` must point to an `F` that no other code uses.
        unsafe extern "C" fn call<F: FnMut(i32) -> bool>(tid: i32, data: *mut c_void) -> bool {
            // SAFETY: By the contract.
            unsafe { (*data.cast::<F>())(tid) }
        }
        /// `call` for the type of `picks`.
        fn caller<F: FnMut(i32) -> bool>(_: &F) -> bindings::rtrace_picks_thread_t {
            Some(call::<F>)
        }
        let caller = caller(&picks);
        // SAFETY:
        // - By the invariant the memory lives.
        // - `caller` gets `picks`, which lives until the call returns.
        unsafe {
            bindings::rtrace_memory_has_thread(self.0.as_ptr(), caller, (&raw mut picks).cast())
        }
    }
}

/// Whether [`ProcessMemory::has_thread`] finds a thread: not if its process shares the memory of another one. Process context.
pub(crate) fn owns_memory(tid: u32) -> bool {
    // SAFETY: Any id is allowed.
    unsafe { bindings::rtrace_owns_memory(tid as c_int) }
}

impl Thread<'_> {
    /// Ids, name and state of the thread now. Neither sleeps nor takes a lock.
    pub(crate) fn state(&self) -> ThreadState {
        let mut state = ThreadState::default();
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_thread_read(self.0.as_ptr(), &mut state) };
        state
    }

    /// Its namespaces, except those of process ids and users.
    pub(crate) fn namespaces(&self) -> Namespaces {
        let mut namespaces = Namespaces::default();
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_thread_namespaces(self.0.as_ptr(), &mut namespaces) };
        namespaces
    }

    /// Its ids in its pid namespace and in all ancestors of that, the innermost first.
    pub(crate) fn in_pid_namespaces(&self) -> impl Iterator<Item = InPidNamespace> + '_ {
        (0..).map_while(|up| {
            let mut here = InPidNamespace::default();
            // SAFETY: By the invariant.
            unsafe { bindings::rtrace_thread_pid_ns(self.0.as_ptr(), up, &mut here) }
                .then_some(here)
        })
    }

    /// Its ids in its user namespace and in all ancestors of that, the innermost first.
    pub(crate) fn in_user_namespaces(&self) -> impl Iterator<Item = InUserNamespace> + '_ {
        (0..).map_while(|up| {
            let mut here = InUserNamespace::default();
            // SAFETY: By the invariant.
            unsafe { bindings::rtrace_thread_user_ns(self.0.as_ptr(), up, &mut here) }
                .then_some(here)
        })
    }

    /// Pseudonym of its table of open files; [`None`] if the first thread of its process has the same table.
    pub(crate) fn own_table(&self) -> Option<u64> {
        // SAFETY: By the invariant.
        let table = unsafe { bindings::rtrace_thread_own_table(self.0.as_ptr()) };
        (table != 0).then_some(table)
    }

    /// Calls `visit` with up to `most` of its open files, from descriptor `from` on. Returns the descriptor at
    /// which to go on; [`None`]: no file is left. `visit` must neither sleep nor use files.
    pub(crate) fn visit_files(
        &self,
        from: u32,
        most: u32,
        room: &mut PathRoom,
        mut visit: impl FnMut(&OpenFile<'_>),
    ) -> Option<u32> {
        /// Calls an `F`.
        ///
        /// # Safety
        ///
        /// `file` and its name must live during the call. `data` must point to an `F` that no other code uses.
        unsafe extern "C" fn call<F: FnMut(&OpenFile<'_>)>(
            file: *const bindings::rtrace_file,
            data: *mut c_void,
        ) {
            // SAFETY: By the contract. The name has `name_len` bytes.
            let (visit, file, name) = unsafe {
                let file = &*file;
                let name = core::slice::from_raw_parts(file.name.cast::<u8>(), file.name_len);
                (&mut *data.cast::<F>(), file, name)
            };
            visit(&OpenFile {
                table: file.table,
                descriptor: file.fd,
                flags: file.flags,
                mode: file.mode,
                name,
            });
        }
        /// `call` for the type of `visit`.
        fn caller<F: FnMut(&OpenFile<'_>)>(_: &F) -> bindings::rtrace_visit_file_t {
            Some(call::<F>)
        }
        let caller = caller(&visit);
        // SAFETY:
        // - By the invariant the pointer is that of a task.
        // - `room` has the given size, and no other code uses it.
        // - `caller` gets a file of a locked table, and `visit`, which lives until the call returns.
        let next = unsafe {
            bindings::rtrace_visit_files(
                self.0.as_ptr(),
                from,
                most,
                room.0.as_mut_ptr().cast(),
                room.0.len(),
                caller,
                (&raw mut visit).cast::<c_void>(),
            )
        };
        u32::try_from(next).ok()
    }
}

/// An open file.
pub(crate) struct OpenFile<'a> {
    /// Pseudonym of the table that has the file.
    pub(crate) table: u64,
    /// Its descriptor.
    pub(crate) descriptor: i32,
    /// `O_...`, as `/proc/PID/fdinfo` shows them.
    pub(crate) flags: u32,
    /// `FMODE_...`
    pub(crate) mode: u32,
    /// Its path, as `/proc/PID/fd` shows it. If the path is longer than 4 KiB, the last component.
    pub(crate) name: &'a [u8],
}

/// Buffer for a path.
pub(crate) struct PathRoom(KVec<u8>);

impl PathRoom {
    /// Allocates `PATH_MAX` bytes. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(KVec::from_elem(0, 4096, GFP_KERNEL)?))
    }
}
