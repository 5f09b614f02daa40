// SPDX-License-Identifier: GPL-2.0

//! Files in debugfs with operations that the kernel crate's debugfs does not offer: poll, ioctl
//! and splice ([`stream`]), and texts that are as of one moment ([`text`]).
//!
//! A [`Tree`] is a directory with all that is below it. Files are of the unproxied kind: each
//! operation takes debugfs' own guard, so once the tree is removed it fails with `ENOENT`
//! rather than touch what is gone. An open file holds a reference to the module.

pub(crate) mod stream;
pub(crate) mod text;

use crate::sys::bindings;
use core::ffi::c_void;
use kernel::error::from_err_ptr;
use kernel::prelude::*;
use kernel::str::CString;

/// Readable by the owner, root.
pub(crate) const READ: u16 = 0o400;
/// Writable by the owner, root.
pub(crate) const WRITE: u16 = 0o200;
/// Readable and writable by the owner, root.
pub(crate) const READ_WRITE: u16 = 0o600;

/// Something that files refer to; freed after they are gone.
trait Erased: Send + Sync {}
impl<T: Send + Sync> Erased for T {}

/// A directory below debugfs' root, with everything in it.
///
/// # Invariants
///
/// `root` is a live directory. The inodes below it point into `data`.
pub(crate) struct Tree {
    root: *mut bindings::dentry,
    /// With the leaf whose files it is for, or NULL.
    data: KVec<(*mut bindings::dentry, KBox<dyn Erased>)>,
}

// SAFETY: debugfs has locks of its own.
unsafe impl Send for Tree {}
// SAFETY: As above.
unsafe impl Sync for Tree {}

/// A directory of a [`Tree`].
#[derive(Clone, Copy)]
pub(crate) struct Dir(*mut bindings::dentry);

// SAFETY: Only used together with its tree.
unsafe impl Send for Dir {}
// SAFETY: As above.
unsafe impl Sync for Dir {}

/// A directory of a [`Tree`] that has only files, and can be removed.
pub(crate) struct Leaf(*mut bindings::dentry);

// SAFETY: Only used together with its tree.
unsafe impl Send for Leaf {}
// SAFETY: As above.
unsafe impl Sync for Leaf {}

/// Where files can be made.
pub(crate) trait Parent {
    /// Its entry; live as long as the tree, or until the leaf is removed.
    #[doc(hidden)]
    fn entry(&self) -> *mut c_void;
}

impl Parent for Dir {
    fn entry(&self) -> *mut c_void {
        self.0.cast()
    }
}

impl Parent for &Leaf {
    fn entry(&self) -> *mut c_void {
        self.0.cast()
    }
}

/// Data of a [`Tree`]'s files.
pub(crate) struct Data<T>(*const T);

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Data<T> {}

impl Tree {
    /// Makes the directory `name` in debugfs' root.
    ///
    /// Fails with `EEXIST` if it is there, `EPERM` or `ENODEV` if there is no debugfs (boot
    /// option `debugfs=off`, or lockdown). May sleep.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        // INVARIANT: Live, as the result says; no inode is below it yet.
        Ok(Self {
            root: make_dir(name, core::ptr::null_mut())?,
            data: KVec::new(),
        })
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> Dir {
        Dir(self.root)
    }

    /// Makes a directory. May sleep.
    pub(crate) fn dir(&mut self, parent: Dir, name: &str) -> Result<Dir> {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        Ok(Dir(make_dir(&name, parent.0)?))
    }

    /// Makes a directory that can be removed. May sleep.
    pub(crate) fn leaf(&mut self, parent: Dir, name: &str) -> Result<Leaf> {
        Ok(Leaf(self.dir(parent, name)?.0))
    }

    /// Removes a directory and its files, and waits for those in use. May sleep.
    pub(crate) fn remove(&mut self, leaf: Leaf) {
        // SAFETY: Live until now: only this function removes leaves, and takes them.
        unsafe { bindings::debugfs_remove(leaf.0) };
        self.data.retain(|(owner, _)| *owner != leaf.0);
    }

    /// Keeps data for as long as there are files.
    pub(crate) fn data<T: Send + Sync + 'static>(&mut self, data: T) -> Result<Data<T>> {
        self.keep(core::ptr::null_mut(), data)
    }

    /// Keeps data for as long as there are files in `leaf`.
    pub(crate) fn leaf_data<T: Send + Sync + 'static>(
        &mut self,
        leaf: &Leaf,
        data: T,
    ) -> Result<Data<T>> {
        self.keep(leaf.0, data)
    }

    fn keep<T: Send + Sync + 'static>(
        &mut self,
        owner: *mut bindings::dentry,
        data: T,
    ) -> Result<Data<T>> {
        let data = KBox::new(data, GFP_KERNEL)?;
        let pointer: *const T = &*data;
        // Unsized by hand: KBox has no coercion here.
        let raw: *mut dyn Erased = KBox::into_raw(data);
        // SAFETY: Just taken out of a box of the same allocation.
        let data = unsafe { KBox::from_raw(raw) };
        self.data.push((owner, data), GFP_KERNEL)?;
        Ok(Data(pointer))
    }

    fn file(
        &mut self,
        parent: impl Parent,
        name: &str,
        mode: u16,
        data: *const c_void,
        operations: &'static bindings::file_operations,
    ) -> Result {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        // SAFETY:
        // - The parent is a live directory, of this tree.
        // - `data` is kept until the tree is removed, by `Tree::data`.
        // - The operations are static, and take debugfs' guard themselves.
        from_err_ptr(unsafe {
            bindings::debugfs_create_file_unsafe(
                name.as_ptr().cast(),
                mode,
                parent.entry().cast(),
                data.cast_mut(),
                operations,
            )
        })?;
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: By the invariant. Waits for operations that run; new ones fail. After it
        // nothing refers to `data` any more.
        unsafe { bindings::debugfs_remove(self.root) };
    }
}

fn make_dir(name: &CStr, parent: *mut bindings::dentry) -> Result<*mut bindings::dentry> {
    // SAFETY: The name is NUL-terminated; the parent is NULL or a live directory.
    from_err_ptr(unsafe { bindings::debugfs_create_dir(name.as_ptr().cast(), parent) })
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
    /// `file` must be an open file of a [`Tree`].
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

fn errno(error: Error) -> isize {
    error.to_errno() as isize
}
