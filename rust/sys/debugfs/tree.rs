// SPDX-License-Identifier: GPL-2.0

//! The description of all directories and files, and their copies in debugfs and in the file system `rtrace`
//! (`filesystem.c`).
//!
//! The description exists once. Each copy is made from it: that in debugfs at once, that in `rtrace` when `rtrace` is
//! mounted. An entry that is added or removed later is added to or removed from each copy.
//!
//! Lock order: `s_umount` of `rtrace` > `Tree::state` > locks of inodes of `rtrace`.
//!
//! An operation on a directory of debugfs may wait without limit for a reader of that directory: debugfs copies names to
//! user memory with the directory's lock held. So the tree is not locked meanwhile, and the caller should hold no lock
//! that other operations need. `rtrace` copies names without a lock. The owner of a [`Dir`](super::Dir) orders the
//! operations on the directory's entries: it adds them one after the other, and holds the [`Dir`](super::Dir) above.

use super::active::ActiveOperations;
use crate::sys::privilege::as_kernel;
use crate::sys::{bindings, parameter};
use core::ffi::c_void;
use core::ptr::{null, null_mut, NonNull};
use kernel::error::{from_err_ptr, to_result};
use kernel::prelude::*;
use kernel::rbtree::{RBTree, RBTreeNodeReservation};
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, ArcBorrow, Mutex};

/// A directory entry of a file system. It lives until [`remove`](FileSystem::remove).
#[derive(Clone, Copy)]
struct Place(NonNull<bindings::dentry>);

// SAFETY: A dentry is not bound to a thread. Only its file system changes it, under its own locks.
unsafe impl Send for Place {}

/// The file systems that have a copy of the tree.
#[derive(Clone, Copy)]
enum FileSystem {
    Debugfs,
    /// `rtrace`, while it is mounted.
    Own,
}

/// Number of file systems.
const FILE_SYSTEMS: usize = 2;

/// A file. Its inode in `rtrace` and open files hold references, and the description holds one.
pub(super) struct FileNode {
    pub(super) active: Arc<ActiveOperations>,
    /// The file's data. They exist while one of the active operations can use them.
    pub(super) data: *const c_void,
    pub(super) mode: u16,
    pub(super) operations: &'static bindings::file_operations,
}

// SAFETY: The data are `Sync`: see `Dir::data`.
unsafe impl Send for FileNode {}
// SAFETY: As above.
unsafe impl Sync for FileNode {}

impl FileNode {
    /// The file that is being opened.
    ///
    /// # Safety
    ///
    /// `inode` must be that of a file of a [`Tree`], as open(2) passes it.
    pub(super) unsafe fn of(inode: *mut bindings::inode) -> Arc<Self> {
        // SAFETY:
        // - `Entry::make` stored the pointer, which is from an `Arc`.
        // - An inode of `rtrace` has a reference. debugfs holds its guard while a file is opened. Until that is
        //   released, the removal of the entry waits, and the description keeps its reference.
        unsafe { ArcBorrow::from_raw((*inode).i_private.cast_const().cast::<Self>()) }.into()
    }
}

/// A directory or file.
struct Entry {
    /// Index in the folder of the directory that contains the entry. Entry 0 is the folder's own directory.
    within: usize,
    name: CString,
    /// [`None`]: it is a directory.
    file: Option<Arc<FileNode>>,
    /// Its place in each file system that has it.
    places: [Option<Place>; FILE_SYSTEMS],
}

/// Entries that are removed together: a directory, with the files and directories that one
/// [`Dir`](super::Dir) created in it.
struct Folder {
    /// Id of the folder whose directory contains this one; of the root: its own.
    parent: u64,
    entries: KVec<Entry>,
}

/// Id of the folder at the root.
pub(super) const ROOT: u64 = 0;

/// The tree.
#[pin_data]
pub(crate) struct Tree {
    #[pin]
    state: Mutex<State>,
}

struct State {
    /// By id. The parent's id is smaller.
    folders: RBTree<u64, Folder>,
    next_id: u64,
}

impl FileSystem {
    /// Removes an entry, and all below it.
    ///
    /// # Safety
    ///
    /// `place` must be live in this file system, and is dead after the call. In debugfs the call may wait for readers of
    /// the directory and of the one above, and no signal ends that.
    unsafe fn remove(self, Place(place): Place) {
        // SAFETY: By the contract. An open file keeps its inode.
        unsafe {
            match self {
                Self::Debugfs => bindings::debugfs_remove(place.as_ptr()),
                Self::Own => bindings::rtrace_fs_remove(place.as_ptr()),
            }
        }
    }
}

impl Entry {
    fn new(within: usize, name: &str, file: Option<Arc<FileNode>>) -> Result<Self> {
        Ok(Self {
            within,
            name: CString::try_from_fmt(fmt!("{name}"))?,
            file,
            places: [None; FILE_SYSTEMS],
        })
    }

    /// The entry's place in a file system that has it.
    fn place(&self, on: FileSystem) -> Option<Place> {
        self.places.get(on as usize).copied().flatten()
    }

    fn set_place(&mut self, on: FileSystem, place: Option<Place>) {
        if let Some(known) = self.places.get_mut(on as usize) {
            *known = place;
        }
    }

    /// Creates the entry in a file system. `parent` is its directory there; [`None`]: debugfs' root. `EINTR`: the caller
    /// was killed while it waited for the directory in debugfs.
    fn make(&mut self, on: FileSystem, parent: Option<Place>) -> Result {
        let parent = parent.map_or(null_mut(), |Place(parent)| parent.as_ptr());
        let name = self.name.as_ptr().cast();
        let mode = self.mode();
        let (file, operations) = match &self.file {
            Some(file) => (Arc::as_ptr(file), &raw const *file.operations),
            None => (null(), null()),
        };
        let file: *mut c_void = file.cast_mut().cast();
        if let (FileSystem::Debugfs, false) = (on, parent.is_null()) {
            // SAFETY: The parent is live, because the owner of its `Dir` calls this, or of one below.
            to_result(unsafe { bindings::rtrace_dir_wait(parent) })?;
        }
        // A program that registers events has no right in these directories. Linux 6.12 checks those of the caller.
        let made = as_kernel(|| {
            // SAFETY:
            // - The name is NUL-terminated.
            // - The parent is live: in debugfs as above, in `rtrace` because the tree has its place and is locked. Only
            //   that of debugfs can be NULL.
            // - The operations are static, and find the file by `FileNode::of`.
            unsafe {
                match on {
                    FileSystem::Own => {
                        bindings::rtrace_fs_create(parent, name, mode, file, operations)
                    }
                    FileSystem::Debugfs if file.is_null() => {
                        bindings::debugfs_create_dir(name, parent)
                    }
                    FileSystem::Debugfs => bindings::debugfs_create_file_unsafe(
                        name,
                        mode & parameter::mode(),
                        parent,
                        file,
                        operations,
                    ),
                }
            }
        });
        let made = from_err_ptr(made)?;
        if let (FileSystem::Own, Some(file)) = (on, &self.file) {
            // The inode's reference, which `put` returns. The entry cannot be evicted meanwhile: the tree is locked.
            let _ = Arc::into_raw(file.clone());
        }
        let place = Place(NonNull::new(made).ok_or(ENOENT)?);
        self.set_place(on, Some(place));
        self.set_access(place);
        Ok(())
    }

    /// Mode of a file, as far as the file system's mode permits it.
    fn mode(&self) -> u16 {
        self.file.as_ref().map_or(0, |file| file.mode)
    }

    /// Sets owner and mode of the entry in a file system.
    fn set_access(&self, Place(place): Place) {
        // SAFETY: The entry is live, because the tree has its place.
        unsafe { bindings::rtrace_set_access(place.as_ptr(), self.mode()) };
    }
}

impl Folder {
    fn new(parent: u64, name: &str) -> Result<Self> {
        let mut entries = KVec::new();
        entries.push(Entry::new(0, name, None)?, GFP_KERNEL)?;
        Ok(Self { parent, entries })
    }

    /// The directory.
    fn top(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// Creates the entries from the index `from` on in `rtrace`, if it has their directory.
    fn make(&mut self, from: usize) -> Result {
        for at in from..self.entries.len() {
            let within = self.entries.get(at).map(|entry| entry.within);
            let parent = within.and_then(|within| self.entries.get(within)?.place(FileSystem::Own));
            if let (Some(_), Some(entry)) = (parent, self.entries.get_mut(at)) {
                entry.make(FileSystem::Own, parent)?;
            }
        }
        Ok(())
    }
}

impl State {
    /// The root's directory.
    fn top(&mut self) -> Result<&mut Entry> {
        let root = self.folders.get_mut(&ROOT).ok_or(ENOENT)?;
        root.entries.first_mut().ok_or(ENOENT)
    }

    /// Creates the directory of a folder, and all in it, in `rtrace`, if that has the parent's directory.
    fn make(&mut self, id: u64) -> Result {
        let parent = self.folders.get(&id).ok_or(ENOENT)?.parent;
        let above = self.place(parent, 0, FileSystem::Own)?;
        let folder = self.folders.get_mut(&id).ok_or(ENOENT)?;
        if let (Some(_), Some(top)) = (above, folder.entries.first_mut()) {
            top.make(FileSystem::Own, above)?;
        }
        folder.make(1)
    }

    /// The place of a folder's entry in a file system, if it has one there.
    fn place(&self, id: u64, at: usize, on: FileSystem) -> Result<Option<Place>> {
        let folder = self.folders.get(&id).ok_or(ENOENT)?;
        Ok(folder.entries.get(at).and_then(|entry| entry.place(on)))
    }

    /// Whether a folder's directory contains the name. Only for folders that are not in debugfs, which knows its names.
    fn has(&self, id: u64, name: &str) -> bool {
        let is_called = |entry: &Entry| entry.name.to_bytes() == name.as_bytes();
        let is_folder = |(known, folder): (&u64, &Folder)| {
            *known != ROOT && folder.parent == id && folder.top().is_some_and(is_called)
        };
        let files = self
            .folders
            .get(&id)
            .map_or(&[][..], |folder| &folder.entries);
        let mut files = files.iter().skip(1).filter(|entry| entry.within == 0);
        files.any(is_called) || self.folders.iter().any(is_folder)
    }
}

impl Tree {
    /// Creates the root: the directory `name` of debugfs, and the top of `rtrace`. May sleep.
    pub(crate) fn new(name: &str) -> Result<Arc<Self>> {
        let mut folders = RBTree::new();
        folders.try_create_and_insert(ROOT, Folder::new(ROOT, name)?, GFP_KERNEL)?;
        let state = State {
            folders,
            next_id: ROOT + 1,
        };
        let tree = Arc::pin_init(pin_init!(Self { state <- new_mutex!(state) }), GFP_KERNEL)?;
        // Last, so that no failure leaves the directory behind.
        match tree.state.lock().top()?.make(FileSystem::Debugfs, None) {
            // Off by the boot option debugfs=off, or by the kernel's configuration.
            Err(EPERM | ENODEV | ENOENT) => {
                pr_info!("this kernel has no debugfs: mount the file system rtrace\n");
            }
            made => made?,
        }
        Ok(tree)
    }

    /// Creates the folder `name` in another one, and returns its id. The caller keeps the other one. `EEXIST`: the name
    /// exists; `EINTR`: the caller was killed while it waited for a reader of the directory. May sleep.
    pub(super) fn add_folder(&self, parent: u64, name: &str) -> Result<u64> {
        let mut folder = Folder::new(parent, name)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let above = self.state.lock().place(parent, 0, FileSystem::Debugfs)?;
        if let (Some(_), Some(top)) = (above, folder.entries.first_mut()) {
            top.make(FileSystem::Debugfs, above)?;
        }
        let mut state = self.state.lock();
        if above.is_none() && state.has(parent, name) {
            return Err(EEXIST);
        }
        let id = state.next_id;
        state.next_id += 1;
        state.folders.insert(node.into_node(id, folder));
        let made = state.make(id);
        drop(state);
        made.inspect_err(|_| self.remove_folder(id)).map(|()| id)
    }

    /// Adds the entry `name` to the directory at the index `within` of a folder: a file, or a directory. Returns its
    /// index. After a failure the caller removes the folder. One caller at a time for a folder. Errors as for
    /// [`add_folder`](Self::add_folder). May sleep.
    pub(super) fn add_entry(
        &self,
        id: u64,
        within: usize,
        name: &str,
        file: Option<Arc<FileNode>>,
    ) -> Result<usize> {
        let mut entry = Entry::new(within, name, file)?;
        let mut state = self.state.lock();
        let folder = state.folders.get_mut(&id).ok_or(ENOENT)?;
        // So that the entry, which debugfs needs, is not dropped after it was made there.
        folder.entries.reserve(1, GFP_KERNEL)?;
        let above = state.place(id, within, FileSystem::Debugfs)?;
        drop(state);
        if above.is_some() {
            entry.make(FileSystem::Debugfs, above)?;
        }
        let mut state = self.state.lock();
        let folder = state.folders.get_mut(&id).ok_or(ENOENT)?;
        let at = folder.entries.len();
        folder.entries.push(entry, GFP_KERNEL)?;
        folder.make(at)?;
        Ok(at)
    }

    /// Removes a folder that contains no other one. The caller has closed its active operations. May sleep.
    pub(super) fn remove_folder(&self, id: u64) {
        let mut state = self.state.lock();
        let removed = state.folders.remove(&id);
        let place = |on| removed.as_ref().and_then(|folder| folder.top()?.place(on));
        if let Some(place) = place(FileSystem::Own) {
            // SAFETY: The place is live while the tree is locked: `forget` removes places that die. The folder, and with
            // it the place, is no longer in the tree.
            unsafe { FileSystem::Own.remove(place) };
        }
        drop(state);
        if let Some(place) = place(FileSystem::Debugfs) {
            // SAFETY: An entry of debugfs is live until its folder is removed, which only this call has done.
            unsafe { FileSystem::Debugfs.remove(place) };
        }
        // debugfs needs the files up to here.
        drop(removed);
    }

    /// Creates all entries in `rtrace`, whose top is `root`.
    fn fill(&self, root: Place) -> Result {
        let mut state = self.state.lock();
        let top = state.top()?;
        top.set_place(FileSystem::Own, Some(root));
        top.set_access(root);
        let mut ids = KVVec::new();
        for id in state.folders.keys() {
            ids.push(*id, GFP_KERNEL)?;
        }
        // Ids ascend, so a directory comes before those in it.
        for id in &ids {
            if *id == ROOT {
                state.folders.get_mut(id).ok_or(ENOENT)?.make(1)?;
            } else {
                state.make(*id)?;
            }
        }
        Ok(())
    }

    /// Forgets all entries in `rtrace`, which is being unmounted.
    fn forget(&self) {
        let mut state = self.state.lock();
        let folders = state.folders.values_mut();
        for entry in folders.flat_map(|folder| &mut folder.entries) {
            entry.set_place(FileSystem::Own, None);
        }
    }

    /// Sets owners and modes of all entries in `rtrace` anew.
    fn set_access(&self) {
        let state = self.state.lock();
        for entry in state.folders.values().flat_map(|folder| &folder.entries) {
            if let Some(place) = entry.place(FileSystem::Own) {
                entry.set_access(place);
            }
        }
    }
}

/// The file system `rtrace`, which can be mounted. The drop withdraws it; it is not mounted then, because a mounted
/// file system holds the module.
pub(crate) struct Mountable {
    _tree: Arc<Tree>,
}

impl Mountable {
    const OPERATIONS: &'static bindings::rtrace_tree_operations =
        &bindings::rtrace_tree_operations {
            fill: Some(Self::fill),
            forget: Some(Self::forget),
            set_access: Some(Self::set_access),
            put: Some(Self::put),
        };

    /// Makes the file system available, with its mount point. From here on programs can mount it, so the module's
    /// initialisation must not fail after this. May sleep.
    pub(crate) fn new(tree: &Arc<Tree>) -> Result<Self> {
        let data: *mut c_void = Arc::as_ptr(tree).cast_mut().cast();
        // SAFETY: The callbacks get the tree, to which the result holds a reference until it withdraws the file system.
        to_result(unsafe { bindings::rtrace_fs_register(data, Self::OPERATIONS) })?;
        Ok(Self {
            _tree: tree.clone(),
        })
    }

    /// # Safety
    ///
    /// `tree` must be that of [`new`](Self::new).
    unsafe fn tree<'a>(tree: *mut c_void) -> &'a Tree {
        // SAFETY: By the contract. The tree exists while the file system is registered.
        unsafe { &*tree.cast_const().cast::<Tree>() }
    }

    /// Creates all entries of a new superblock.
    ///
    /// # Safety
    ///
    /// Only `filesystem.c` calls this, with the live top of its only superblock.
    unsafe extern "C" fn fill(tree: *mut c_void, root: *mut bindings::dentry) -> c_int {
        // SAFETY: By the contract.
        let tree = unsafe { Self::tree(tree) };
        let filled = NonNull::new(root)
            .ok_or(ENOENT)
            .and_then(|root| tree.fill(Place(root)));
        filled.map_or_else(Error::to_errno, |()| 0)
    }

    /// Forgets the entries of the superblock.
    ///
    /// # Safety
    ///
    /// Only `filesystem.c` calls this, before the superblock's entries die.
    unsafe extern "C" fn forget(tree: *mut c_void) {
        // SAFETY: By the contract.
        unsafe { Self::tree(tree) }.forget();
    }

    /// Sets owners and modes anew.
    ///
    /// # Safety
    ///
    /// Only `filesystem.c` calls this.
    unsafe extern "C" fn set_access(tree: *mut c_void) {
        // SAFETY: By the contract.
        unsafe { Self::tree(tree) }.set_access();
    }

    /// Returns the reference of an inode.
    ///
    /// # Safety
    ///
    /// Only `filesystem.c` calls this, once for each inode, with the pointer that [`Entry::make`] gave it.
    unsafe extern "C" fn put(file: *mut c_void) {
        // SAFETY: By the contract. `Entry::make` took a reference for the inode.
        drop(unsafe { Arc::from_raw(file.cast_const().cast::<FileNode>()) });
    }
}

impl Drop for Mountable {
    fn drop(&mut self) {
        // SAFETY: `new` has registered it, and the module is unloaded, so it is not mounted.
        unsafe { bindings::rtrace_fs_unregister() };
    }
}
