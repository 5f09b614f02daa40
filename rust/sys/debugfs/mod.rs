// SPDX-License-Identifier: GPL-2.0

//! Files in debugfs with operations that the kernel crate's debugfs does not offer: poll, ioctl,
//! splice and mmap ([`stream`]), and texts that are as of one moment ([`text`]).
//!
//! A [`Dir`] is a directory with its files, and is removed when it is dropped. Files are of the
//! unproxied kind: an operation that looks at the directory's data takes debugfs' own guard, so
//! once the directory is removed it fails with `ENOENT` rather than touch what is gone. An open
//! file holds a reference to the module.

pub(crate) mod stream;
pub(crate) mod text;

use crate::sys::wait::WaitQueue;
use crate::sys::{bindings, parameter};
use core::ffi::c_void;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;

/// Can be read, by those whom the module's parameter `mode` lets in.
pub(crate) const READ: u16 = 0o444;
/// Can be written, by those.
pub(crate) const WRITE: u16 = 0o222;
/// Can be read and written, by those.
pub(crate) const READ_WRITE: u16 = 0o666;

/// Something that files refer to; freed after they are gone.
trait Erased: Send + Sync {}
impl<T: Send + Sync> Erased for T {}

/// A directory with its files.
///
/// Dropping it removes it, and waits for the files' operations that run.
///
/// # Invariants
///
/// `entry` is a live directory. The inodes of the files in it, and in its groups, point into `data`, here or of
/// a directory that it is in.
pub(crate) struct Dir {
    entry: *mut bindings::dentry,
    data: KVec<KBox<dyn Erased>>,
    /// Woken when the files are gone, so that no poll(2) sleeps on.
    waiters: KVec<Arc<WaitQueue>>,
    /// The directory that it is in, which must stay longer.
    _parent: Option<Arc<Dir>>,
}

/// A directory of a [`Dir`] whose files share that one's data. Removed together with the `Dir`.
///
/// # Invariants
///
/// `entry` is the live directory of `dir`, or a live one below it.
pub(crate) struct Group<'a> {
    dir: &'a mut Dir,
    entry: *mut bindings::dentry,
}

// SAFETY: debugfs has locks of its own.
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
    /// Makes the directory `name` in debugfs' root.
    ///
    /// Fails with `EEXIST` if it is there, `EPERM` or `ENODEV` if there is no debugfs (boot
    /// option `debugfs=off`, or lockdown). May sleep.
    pub(crate) fn new(name: &str) -> Result<Self> {
        Self::make(name, None)
    }

    /// Makes the directory `name` in `parent`. `EEXIST`: it is there. May sleep.
    pub(crate) fn within(parent: &Arc<Self>, name: &str) -> Result<Self> {
        Self::make(name, Some(parent.clone()))
    }

    fn make(name: &str, parent: Option<Arc<Self>>) -> Result<Self> {
        let above = parent
            .as_ref()
            .map_or(core::ptr::null_mut(), |parent| parent.entry);
        // SAFETY: NULL or a live directory, by the invariant.
        let entry = unsafe { make_entry(name, above) }?;
        // INVARIANT: Live, as the result says; no file is in it yet.
        Ok(Self {
            entry,
            data: KVec::new(),
            waiters: KVec::new(),
            _parent: parent,
        })
    }

    /// Keeps data for as long as there are files.
    pub(crate) fn data<T: Send + Sync + 'static>(&mut self, data: T) -> Result<Data<T>> {
        let data = KBox::new(data, GFP_KERNEL)?;
        let pointer: *const T = &*data;
        // Unsized by hand: KBox has no coercion here.
        let raw: *mut dyn Erased = KBox::into_raw(data);
        // SAFETY: Just taken out of a box of the same allocation.
        let data = unsafe { KBox::from_raw(raw) };
        self.data.push(data, GFP_KERNEL)?;
        Ok(Data(pointer))
    }

    /// Makes the directory `name` in this one, for files that refer to data of this one. `EEXIST`: it is there.
    /// May sleep.
    pub(crate) fn group(&mut self, name: &str) -> Result<Group<'_>> {
        // SAFETY: Live, by the invariant.
        let entry = unsafe { make_entry(name, self.entry) }?;
        // INVARIANT: Live, as the result says, and in this directory.
        Ok(Group { dir: self, entry })
    }

    /// This directory itself, as the group of its files.
    pub(crate) fn top(&mut self) -> Group<'_> {
        let entry = self.entry;
        // INVARIANT: Live, by the invariant of `Dir`.
        Group { dir: self, entry }
    }
}

/// Makes the directory `name` in `above`, or in debugfs' root if that is NULL.
///
/// # Safety
///
/// `above` must be NULL or a live directory.
unsafe fn make_entry(name: &str, above: *mut bindings::dentry) -> Result<*mut bindings::dentry> {
    let name = CString::try_from_fmt(fmt!("{name}"))?;
    // SAFETY:
    // - The name is NUL-terminated.
    // - `above` is NULL or live, as the caller promises.
    let made = unsafe { bindings::debugfs_create_dir(name.as_ptr().cast(), above) };
    let entry = from_err_ptr(made)?;
    // SAFETY: Just made, so it is there.
    unsafe { bindings::rtrace_set_access(entry) };
    Ok(entry)
}

impl Group<'_> {
    /// Keeps data for as long as there are files.
    pub(crate) fn data<T: Send + Sync + 'static>(&mut self, data: T) -> Result<Data<T>> {
        self.dir.data(data)
    }

    /// Makes the directory `name` in this one. `EEXIST`: it is there. May sleep.
    pub(crate) fn group(&mut self, name: &str) -> Result<Group<'_>> {
        // SAFETY: Live, by the invariant.
        let entry = unsafe { make_entry(name, self.entry) }?;
        // INVARIANT: Live, as the result says, and below `dir`.
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
        // - The directory is live, by the invariant.
        // - `data` is kept until `dir` is removed, by `Dir::data`; the file's directory goes with that.
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
        // SAFETY: Just made, so it is there.
        unsafe { bindings::rtrace_set_access(entry) };
        Ok(())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // SAFETY:
        // - Live, by the invariant.
        // - Every `Dir` in it is gone, because that holds this one. Its groups are removed with it.
        // - Waits for operations that run; new ones fail. After it nothing refers to `data` any more.
        unsafe { bindings::debugfs_remove(self.entry) };
        self.waiters.iter().for_each(|waiters| waiters.wake_all());
    }
}

/// This module, which open files keep loaded.
const fn this_module() -> *mut bindings::module {
    (&raw const bindings::__this_module).cast_mut()
}

/// Keeps an open file's directory entry, and so its data, from going while an operation runs.
struct Guard(*mut bindings::dentry);

impl Guard {
    /// Fails with `ENOENT` if the file has been removed.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of a [`Dir`].
    unsafe fn new(file: *mut bindings::file) -> Result<Self> {
        // SAFETY: An open file's dentry stays while it is open.
        let dentry = unsafe { (*file).__bindgen_anon_1.f_path.dentry };
        // SAFETY: A debugfs dentry.
        if unsafe { bindings::debugfs_file_get(dentry) } != 0 {
            return Err(ENOENT);
        }
        Ok(Self(dentry))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: Got in `new`.
        unsafe { bindings::debugfs_file_put(self.0) };
    }
}

/// Whether a file may be opened: `ENOENT` while the module is being initialised.
///
/// The kernel frees a module whose initialisation fails, although files are open. So no file is open before the
/// initialisation has succeeded.
fn may_open() -> Result {
    // SAFETY: This module's; the kernel changes it meanwhile.
    let state = unsafe { (&raw const (*this_module()).state).read_volatile() };
    if state == bindings::module_state_MODULE_STATE_COMING {
        return Err(ENOENT);
    }
    Ok(())
}

/// Waits until the kernel has given back all references to this module of opens that [`may_open`] refused. Called
/// when the initialisation fails and the files are removed. May sleep.
pub(crate) fn wait_for_refused() {
    /// The initialisation's own reference.
    const OWN: c_int = 1;
    // SAFETY:
    // - This module is loaded, for it runs.
    // - May sleep.
    unsafe {
        while bindings::module_refcount(this_module()) > OWN {
            bindings::msleep(1);
        }
    }
}

fn errno(error: Error) -> isize {
    error.to_errno() as isize
}
