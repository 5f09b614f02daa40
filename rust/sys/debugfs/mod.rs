// SPDX-License-Identifier: GPL-2.0

//! Files in debugfs with operations that the kernel crate's debugfs lacks: poll, ioctl, splice and mmap
//! ([`stream`]), and texts of one moment ([`text`]).
//!
//! A [`Dir`] is a directory with its files; the drop removes it. The files are created without debugfs' proxy.
//! So each operation that uses the directory's data takes debugfs' own guard. After the removal it fails with
//! `ENOENT`, and does not access freed data. An open file holds a reference to the module.

pub(crate) mod stream;
pub(crate) mod text;

use crate::sys::wait::WaitQueue;
use crate::sys::{bindings, parameter};
use core::ffi::c_void;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// Mode of a file for reading. The module's parameter `mode` restricts it.
pub(crate) const READ: u16 = 0o444;
/// Mode of a file for writing, restricted likewise.
pub(crate) const WRITE: u16 = 0o222;
/// Mode of a file for both, restricted likewise.
pub(crate) const READ_WRITE: u16 = 0o666;

/// Data that files refer to. Freed after the files are removed.
trait Erased: Send + Sync {}
impl<T: Send + Sync> Erased for T {}

/// A directory with its files.
///
/// The drop removes it, and waits for running operations of the files.
///
/// # Invariants
///
/// `entry` is a live directory. The inodes of the files in it and in its groups point into `data`, of this
/// directory or of one that contains it.
pub(crate) struct Dir {
    entry: *mut bindings::dentry,
    data: KVec<KBox<dyn Erased>>,
    /// Woken when the files are removed, so that no poll(2) goes on sleeping.
    waiters: KVec<Arc<WaitQueue>>,
    /// The directory that contains this one, which must live longer.
    _parent: Option<Arc<Dir>>,
}

/// A directory in a [`Dir`] whose files use the data of the `Dir`. Removed together with the `Dir`.
///
/// # Invariants
///
/// `entry` is the live directory of `dir`, or a live directory below it.
pub(crate) struct Group<'a> {
    dir: &'a mut Dir,
    entry: *mut bindings::dentry,
}

// SAFETY: debugfs has its own locks.
unsafe impl Send for Dir {}
// SAFETY: As above.
unsafe impl Sync for Dir {}

/// Data of a [`Dir`]'s files.
pub(crate) struct Data<T>(*const T);

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Data<T> {}

impl Dir {
    /// Creates the directory `name` in debugfs' root.
    ///
    /// Fails with `EEXIST` if the name exists. Fails with `EPERM` or `ENODEV` if debugfs is off (boot option
    /// `debugfs=off`, or lockdown). May sleep.
    pub(crate) fn new(name: &str) -> Result<Self> {
        Self::make(name, None)
    }

    /// Creates the directory `name` in `parent`. `EEXIST`: the name exists. May sleep.
    pub(crate) fn within(parent: &Arc<Self>, name: &str) -> Result<Self> {
        Self::make(name, Some(parent.clone()))
    }

    fn make(name: &str, parent: Option<Arc<Self>>) -> Result<Self> {
        let above = parent
            .as_ref()
            .map_or(core::ptr::null_mut(), |parent| parent.entry);
        // SAFETY: The pointer is NULL, or by the invariant a live directory.
        let entry = unsafe { make_entry(name, above) }?;
        // INVARIANT: The directory was created above. It has no file yet.
        Ok(Self {
            entry,
            data: KVec::new(),
            waiters: KVec::new(),
            _parent: parent,
        })
    }

    /// Keeps `data` until the files are removed.
    pub(crate) fn data<T: Send + Sync + 'static>(&mut self, data: T) -> Result<Data<T>> {
        let data = KBox::new(data, GFP_KERNEL)?;
        let pointer: *const T = &*data;
        // Unsized by hand, because KBox has no coercion here.
        let raw: *mut dyn Erased = KBox::into_raw(data);
        // SAFETY: The pointer is from a box of the same allocation.
        let data = unsafe { KBox::from_raw(raw) };
        self.data.push(data, GFP_KERNEL)?;
        Ok(Data(pointer))
    }

    /// Creates the directory `name` in this one, for files that use data of this one. `EEXIST`: the name
    /// exists. May sleep.
    pub(crate) fn group(&mut self, name: &str) -> Result<Group<'_>> {
        // SAFETY: By the invariant the directory is live.
        let entry = unsafe { make_entry(name, self.entry) }?;
        // INVARIANT: The directory was created above, in this one.
        Ok(Group { dir: self, entry })
    }

    /// This directory itself, as the group of its files.
    pub(crate) fn top(&mut self) -> Group<'_> {
        let entry = self.entry;
        // INVARIANT: By the invariant of `Dir` the directory is live.
        Group { dir: self, entry }
    }
}

/// Creates the directory `name` in `above`; NULL stands for debugfs' root.
///
/// # Safety
///
/// `above` must be NULL or a live directory.
unsafe fn make_entry(name: &str, above: *mut bindings::dentry) -> Result<*mut bindings::dentry> {
    let name = CString::try_from_fmt(fmt!("{name}"))?;
    // SAFETY:
    // - The name is NUL-terminated.
    // - By the caller's contract `above` is NULL or live.
    let made = unsafe { bindings::debugfs_create_dir(name.as_ptr().cast(), above) };
    let entry = from_err_ptr(made)?;
    // SAFETY: The directory was created above, so it is live.
    unsafe { bindings::rtrace_set_access(entry) };
    Ok(entry)
}

impl Group<'_> {
    /// Keeps data as long as the files exist.
    pub(crate) fn data<T: Send + Sync + 'static>(&mut self, data: T) -> Result<Data<T>> {
        self.dir.data(data)
    }

    /// Creates the directory `name` in this one. `EEXIST`: the name exists. May sleep.
    pub(crate) fn group(&mut self, name: &str) -> Result<Group<'_>> {
        // SAFETY: By the invariant the directory is live.
        let entry = unsafe { make_entry(name, self.entry) }?;
        // INVARIANT: The directory was created above, below `dir`.
        Ok(Group {
            dir: self.dir,
            entry,
        })
    }

    fn file(
        &mut self,
        name: &str,
        mode: u16,
        data: *const c_void,
        operations: &'static bindings::file_operations,
    ) -> Result {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        // SAFETY:
        // - By the invariant the directory is live.
        // - `Dir::data` keeps `data` until `dir` is removed, together with the file's directory.
        // - The operations are static, and take debugfs' guard themselves.
        let entry = from_err_ptr(unsafe {
            bindings::debugfs_create_file_unsafe(
                name.as_ptr().cast(),
                mode & parameter::mode(),
                self.entry,
                data.cast_mut(),
                operations,
            )
        })?;
        // SAFETY: The file was created above, so it is live.
        unsafe { bindings::rtrace_set_access(entry) };
        Ok(())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // SAFETY:
        // - By the invariant the directory is live.
        // - Each `Dir` in it is removed already, because it holds a reference to this one. Its groups are
        //   removed with it.
        // - The call waits for running operations; new ones fail. After it no file refers to `data` any more.
        unsafe { bindings::debugfs_remove(self.entry) };
        self.waiters.iter().for_each(|waiters| waiters.wake_all());
    }
}

/// This module, which open files keep loaded.
const fn this_module() -> *mut bindings::module {
    (&raw const bindings::__this_module).cast_mut()
}

/// A guard for one operation of an open file: it keeps the file's directory entry and data.
struct Guard(*mut bindings::dentry);

impl Guard {
    /// Takes the guard. Fails with `ENOENT` if the file has been removed.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of a [`Dir`].
    unsafe fn new(file: *mut bindings::file) -> Result<Self> {
        // SAFETY: The dentry of a file stays while the file is open.
        let dentry = unsafe { (*file).__bindgen_anon_1.f_path.dentry };
        // SAFETY: The dentry is debugfs'.
        if unsafe { bindings::debugfs_file_get(dentry) } != 0 {
            return Err(ENOENT);
        }
        Ok(Self(dentry))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: `new` has taken the guard.
        unsafe { bindings::debugfs_file_put(self.0) };
    }
}

/// Whether a file may be opened: `ENOENT` while the module is being initialised.
///
/// If the initialisation fails, the kernel frees the module even if files are open. So files can be opened only
/// after the initialisation has succeeded.
fn may_open() -> Result {
    // SAFETY: The field belongs to this module. The kernel may change it at the same time.
    let state = unsafe { (&raw const (*this_module()).state).read_volatile() };
    if state == bindings::module_state_MODULE_STATE_COMING {
        return Err(ENOENT);
    }
    Ok(())
}

/// Waits until the kernel has put the module references of all opens that [`may_open`] refused. Called after a
/// failed initialisation, once the files are removed. May sleep.
pub(crate) fn wait_for_refused() {
    /// The initialisation's own reference.
    const OWN: c_int = 1;
    // SAFETY:
    // - This module is loaded, because it runs.
    // - This context may sleep.
    unsafe {
        while bindings::module_refcount(this_module()) > OWN {
            bindings::msleep(1);
        }
    }
}

fn errno(error: Error) -> isize {
    error.to_errno() as isize
}
