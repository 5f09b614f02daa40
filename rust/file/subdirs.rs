// SPDX-License-Identifier: GPL-2.0

//! Directories that come and go in one that stays.

use crate::sys::debugfs::Dir;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Directories, each with a name and what it is to its owner.
///
/// Files may refer to this whose directory it holds: [`close`](Self::close) ends that circle.
#[pin_data]
pub(super) struct Subdirs<T> {
    #[pin]
    state: Mutex<State<T>>,
}

struct State<T> {
    /// None before it is opened, and once it was closed.
    parent: Option<Arc<Dir>>,
    children: KVec<(CString, T)>,
}

impl<T> Subdirs<T> {
    /// None; nor can there be any before [`open`](Self::open).
    pub(super) fn new() -> Result<Arc<Self>> {
        let state = State {
            parent: None,
            children: KVec::new(),
        };
        Arc::pin_init(pin_init!(Self { state <- new_mutex!(state) }), GFP_KERNEL)
    }

    /// From now on there can be directories, in `parent`. May sleep.
    pub(super) fn open(&self, parent: Dir) -> Result {
        let parent = Arc::new(parent, GFP_KERNEL)?;
        self.state.lock().parent = Some(parent);
        Ok(())
    }

    /// Makes the directory `name`, and has `fill` make what is in it. Failing, leaves nothing
    /// behind. `ENOENT`: it is not open. May sleep.
    pub(super) fn add(&self, name: &str, fill: impl FnOnce(Dir) -> Result<T>) -> Result {
        let parent = self.state.lock().parent.clone().ok_or(ENOENT)?;
        let child_name = CString::try_from_fmt(fmt!("{name}"))?;
        // Without the lock: there may be directories like these in it.
        let child = fill(Dir::within(&parent, name)?)?;
        let mut state = self.state.lock();
        if state.parent.is_none() {
            return Err(ENOENT);
        }
        state.children.push((child_name, child), GFP_KERNEL)?;
        Ok(())
    }

    /// Removes the directory `name`, and waits for who uses its files. May sleep.
    pub(super) fn remove(&self, name: &str) {
        let mut state = self.state.lock();
        let is_called = |(child, _): &(CString, T)| child.to_bytes() == name.as_bytes();
        let at = state.children.iter().position(is_called);
        let removed = at.and_then(|at| state.children.remove(at).ok());
        // Without the lock: they may want it.
        drop(state);
        drop(removed);
    }

    /// Removes all; there will be no others. May sleep.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let parent = state.parent.take();
        let children = core::mem::replace(&mut state.children, KVec::new());
        drop(state);
        drop((children, parent));
    }
}
