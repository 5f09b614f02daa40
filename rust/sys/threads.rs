// SPDX-License-Identifier: GPL-2.0

//! All threads that there are, and what is known of each. Process context.

use crate::sys::bindings;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::prelude::*;

pub(crate) use bindings::rtrace_namespaces as Namespaces;
pub(crate) use bindings::rtrace_pid_ns as InPidNamespace;
pub(crate) use bindings::rtrace_thread as ThreadState;
pub(crate) use bindings::rtrace_user_ns as InUserNamespace;

/// A thread that is visited. It may be ending.
///
/// # Invariants
///
/// The pointer is that of a task, and who has this is called by [`visit`], so that RCU keeps it.
pub(crate) struct Thread<'a>(NonNull<bindings::task_struct>, PhantomData<&'a ()>);

/// Chooses what tables of files are called from now on: once, when the module is loaded. May sleep.
pub(crate) fn init() {
    // SAFETY: May sleep here; nobody visits threads yet.
    unsafe { bindings::rtrace_threads_init() };
}

/// Calls `visit` with the thread that has the least id from `tid` on, and returns that; [`None`]: there
/// is none. Nothing in `visit` may sleep. May itself sleep, before and after.
pub(crate) fn visit(tid: i32, mut visit: impl FnMut(&Thread<'_>)) -> Option<i32> {
    /// Calls an `F`.
    ///
    /// # Safety
    ///
    /// `task` is a task that RCU keeps meanwhile, and `data` points to an `F` that nobody else uses.
    unsafe extern "C" fn call<F: FnMut(&Thread<'_>)>(
        task: *mut bindings::task_struct,
        data: *mut c_void,
    ) {
        // SAFETY: By the contract.
        let visit = unsafe { &mut *data.cast::<F>() };
        if let Some(task) = NonNull::new(task) {
            // INVARIANT: By the contract; `visit` cannot keep it.
            visit(&Thread(task, PhantomData));
        }
    }
    /// `call` for the type that `visit` has.
    fn caller<F: FnMut(&Thread<'_>)>(_: &F) -> bindings::rtrace_visit_thread_t {
        Some(call::<F>)
    }
    let caller = caller(&visit);
    // SAFETY:
    // - Process context, where it may sleep.
    // - `caller` gets a task of which RCU is a reader, and `visit`, which lives until it returns.
    let found =
        unsafe { bindings::rtrace_visit_thread(tid, caller, (&raw mut visit).cast::<c_void>()) };
    (found > 0).then_some(found)
}

impl Thread<'_> {
    /// What it is and does now. Calls nothing that sleeps, or takes a lock.
    pub(crate) fn state(&self) -> ThreadState {
        let mut state = ThreadState::default();
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_thread_read(self.0.as_ptr(), &mut state) };
        state
    }

    /// Its namespaces but those of process ids and users.
    pub(crate) fn namespaces(&self) -> Namespaces {
        let mut namespaces = Namespaces::default();
        // SAFETY: By the invariant.
        unsafe { bindings::rtrace_thread_namespaces(self.0.as_ptr(), &mut namespaces) };
        namespaces
    }

    /// What it is in its namespace of process ids, and in all those around that, from the inside.
    pub(crate) fn in_pid_namespaces(&self) -> impl Iterator<Item = InPidNamespace> + '_ {
        (0..).map_while(|up| {
            let mut here = InPidNamespace::default();
            // SAFETY: By the invariant.
            unsafe { bindings::rtrace_thread_pid_ns(self.0.as_ptr(), up, &mut here) }
                .then_some(here)
        })
    }

    /// The same for namespaces of users.
    pub(crate) fn in_user_namespaces(&self) -> impl Iterator<Item = InUserNamespace> + '_ {
        (0..).map_while(|up| {
            let mut here = InUserNamespace::default();
            // SAFETY: By the invariant.
            unsafe { bindings::rtrace_thread_user_ns(self.0.as_ptr(), up, &mut here) }
                .then_some(here)
        })
    }

    /// The table of open files that it has, unless its process's first thread has the same; what stands
    /// for it is not its address.
    pub(crate) fn own_table(&self) -> Option<u64> {
        // SAFETY: By the invariant.
        let table = unsafe { bindings::rtrace_thread_own_table(self.0.as_ptr()) };
        (table != 0).then_some(table)
    }

    /// Calls `visit` with so many of its open files at most, from descriptor `from` on. Returns where to
    /// go on; [`None`]: there are no others. Nothing in `visit` may sleep or use files.
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
        /// `file` lives meanwhile, with its name, and `data` points to an `F` that nobody else uses.
        unsafe extern "C" fn call<F: FnMut(&OpenFile<'_>)>(
            file: *const bindings::rtrace_file,
            data: *mut c_void,
        ) {
            // SAFETY: By the contract; a name has so many bytes.
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
        /// `call` for the type that `visit` has.
        fn caller<F: FnMut(&OpenFile<'_>)>(_: &F) -> bindings::rtrace_visit_file_t {
            Some(call::<F>)
        }
        let caller = caller(&visit);
        // SAFETY:
        // - By the invariant, a task.
        // - The room has so many bytes, which nobody else uses.
        // - `caller` gets what it wants: a file of a table that is locked, and `visit`, which lives
        //   until it returns.
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
    /// Stands for the table that has it.
    pub(crate) table: u64,
    /// Its descriptor.
    pub(crate) descriptor: i32,
    /// `O_...`, as `/proc/PID/fdinfo` has them.
    pub(crate) flags: u32,
    /// `FMODE_...`
    pub(crate) mode: u32,
    /// Its path, as `/proc/PID/fd` has it; of one that is longer than 4 KiB, the last part.
    pub(crate) name: &'a [u8],
}

/// Room for a path.
pub(crate) struct PathRoom(KVec<u8>);

impl PathRoom {
    /// It: `PATH_MAX` bytes. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(KVec::from_elem(0, 4096, GFP_KERNEL)?))
    }
}
