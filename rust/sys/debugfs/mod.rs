// SPDX-License-Identifier: GPL-2.0

//! The files of the module: in debugfs, and in the file system `rtrace` ([`tree`]). Their operations are poll, ioctl,
//! splice and mmap ([`stream`]), and texts of one moment ([`text`]).
//!
//! A [`Dir`] is a directory with its files; the drop removes it. Each operation that uses the directory's data
//! is one of its [`ActiveOperations`]. After the removal it fails with `ENOENT`, and does not access freed data. An
//! open file holds a reference to the module.

mod active;
pub(crate) mod stream;
pub(crate) mod text;
pub(crate) mod tree;

use crate::sys::wait::WaitQueue;
use crate::sys::{bindings, privilege};
use active::ActiveOperations;
use core::ffi::c_void;
use kernel::prelude::*;
use kernel::sync::Arc;
use tree::{FileNode, Tree};

/// Mode of a file for reading. The module's parameter `mode` restricts it.
pub(crate) const READ: u16 = 0o444;
/// Mode of a file for writing, restricted likewise.
pub(crate) const WRITE: u16 = 0o222;
/// Mode of a file for both, restricted likewise.
pub(crate) const READ_WRITE: u16 = 0o666;

/// Mode of the file `program`. The bit that a file cannot have otherwise says that the group of programs has access
/// (`filesystem.c`).
pub(crate) const PROGRAM: u16 = READ_WRITE | 0o2000;

/// Data that files refer to. Freed after the files are removed.
trait Erased: Send + Sync {}
impl<T: Send + Sync> Erased for T {}

/// A directory with its files.
///
/// The drop removes it, and waits for running operations of the files.
///
/// # Invariants
///
/// The files of the folder `id` refer only to `data` of this directory, or of one that contains it.
pub(crate) struct Dir {
    tree: Arc<Tree>,
    id: u64,
    active: Arc<ActiveOperations>,
    data: KVec<KBox<dyn Erased>>,
    /// Woken when the files are removed, so that no poll(2) goes on sleeping.
    waiters: KVec<Arc<WaitQueue>>,
    /// The directory that contains this one, which must live longer.
    _parent: Option<Arc<Dir>>,
}

/// A directory in a [`Dir`] whose files use the data of the `Dir`. Removed together with the `Dir`.
pub(crate) struct Group<'a> {
    dir: &'a mut Dir,
    /// Index of the directory among the entries of `dir`.
    at: usize,
}

/// Data of a [`Dir`]'s files.
pub(crate) struct Data<T>(*const T);

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Data<T> {}

impl Dir {
    /// The root of `tree`. Only one [`Dir`] may be the root. May sleep.
    pub(crate) fn root(tree: &Arc<Tree>) -> Result<Self> {
        Self::new(tree.clone(), tree::ROOT, None).inspect_err(|_| tree.remove_folder(tree::ROOT))
    }

    /// Creates the directory `name` in `parent`. `EEXIST`: the name exists. May sleep.
    pub(crate) fn within(parent: &Arc<Self>, name: &str) -> Result<Self> {
        let tree = parent.tree.clone();
        let id = tree.add_folder(parent.id, name)?;
        Self::new(tree.clone(), id, Some(parent.clone())).inspect_err(|_| tree.remove_folder(id))
    }

    fn new(tree: Arc<Tree>, id: u64, parent: Option<Arc<Self>>) -> Result<Self> {
        // INVARIANT: There is no file yet.
        Ok(Self {
            tree,
            id,
            active: Arc::pin_init(ActiveOperations::new(), GFP_KERNEL)?,
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
        let at = self.tree.add_entry(self.id, 0, name, None)?;
        Ok(Group { dir: self, at })
    }

    /// This directory itself, as the group of its files.
    pub(crate) fn top(&mut self) -> Group<'_> {
        Group { dir: self, at: 0 }
    }
}

impl Group<'_> {
    /// Keeps data as long as the files exist.
    pub(crate) fn data<T: Send + Sync + 'static>(&mut self, data: T) -> Result<Data<T>> {
        self.dir.data(data)
    }

    /// Creates the directory `name` in this one. `EEXIST`: the name exists. May sleep.
    pub(crate) fn group(&mut self, name: &str) -> Result<Group<'_>> {
        let Dir { tree, id, .. } = self.dir;
        let at = tree.add_entry(*id, self.at, name, None)?;
        Ok(Group { dir: self.dir, at })
    }

    fn file(
        &mut self,
        name: &str,
        mode: u16,
        data: *const c_void,
        operations: &'static bindings::file_operations,
    ) -> Result {
        let Dir {
            tree, id, active, ..
        } = self.dir;
        // INVARIANT: `Dir::data` keeps the data.
        let file = FileNode {
            active: active.clone(),
            data,
            mode,
            operations,
        };
        let file = Arc::new(file, GFP_KERNEL)?;
        tree.add_entry(*id, self.at, name, Some(file))?;
        Ok(())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // After this no operation uses `data`. Each `Dir` in this one is removed already, because it holds a reference.
        self.active.close();
        self.tree.remove_folder(self.id);
        self.waiters.iter().for_each(|waiters| waiters.wake_all());
    }
}

/// This module, which open files keep loaded.
const fn this_module() -> *mut bindings::module {
    (&raw const bindings::__this_module).cast_mut()
}

/// Whether a file may be opened: `EPERM` if the kernel is locked down for confidentiality, as in tracefs; `ENOENT`
/// while the module is being initialised.
///
/// If the initialisation fails, the kernel frees the module even if files are open. So files can be opened only
/// after the initialisation has succeeded.
fn may_open() -> Result {
    // SAFETY: The field belongs to this module. The kernel may change it at the same time.
    let state = unsafe { (&raw const (*this_module()).state).read_volatile() };
    if state == bindings::module_state_MODULE_STATE_COMING {
        return Err(ENOENT);
    }
    privilege::may_trace()
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
