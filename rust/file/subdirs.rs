// SPDX-License-Identifier: GPL-2.0

//! A directory whose subdirectories are created and removed.

use crate::sys::debugfs::Dir;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Subdirectories, each with a name and its owner's data.
///
/// Their files may refer to this object; [`close`](Self::close) breaks that cycle.
#[pin_data]
pub(super) struct Subdirs<T> {
    #[pin]
    state: Mutex<State<T>>,
}

struct State<T> {
    /// [`None`] before it is opened, and after it was closed.
    parent: Option<Arc<Dir>>,
    children: KVec<(CString, T)>,
}

impl<T> Subdirs<T> {
    /// Without subdirectories. There can be none before [`open`](Self::open).
    pub(super) fn new() -> Result<Arc<Self>> {
        let state = State {
            parent: None,
            children: KVec::new(),
        };
        Arc::pin_init(pin_init!(Self { state <- new_mutex!(state) }), GFP_KERNEL)
    }

    /// Sets the directory that contains the subdirectories. May sleep.
    pub(super) fn open(&self, parent: Dir) -> Result {
        let parent = Arc::new(parent, GFP_KERNEL)?;
        self.state.lock().parent = Some(parent);
        Ok(())
    }

    /// Creates the subdirectory `name`, whose contents `fill` creates. A failure leaves nothing behind.
    /// `ENOENT`: it is not open. May sleep.
    pub(super) fn add(&self, name: &str, fill: impl FnOnce(Dir) -> Result<T>) -> Result {
        let parent = self.state.lock().parent.clone().ok_or(ENOENT)?;
        let child_name = CString::try_from_fmt(fmt!("{name}"))?;
        // The lock is released: the subdirectory may have subdirectories of its own.
        let child = fill(Dir::within(&parent, name)?)?;
        let mut state = self.state.lock();
        if state.parent.is_none() {
            return Err(ENOENT);
        }
        state.children.push((child_name, child), GFP_KERNEL)?;
        Ok(())
    }

    /// Removes the subdirectory `name`, and waits for operations on its files. May sleep.
    pub(super) fn remove(&self, name: &str) {
        let mut state = self.state.lock();
        let is_called = |(child, _): &(CString, T)| child.to_bytes() == name.as_bytes();
        let at = state.children.iter().position(is_called);
        let removed = at.and_then(|at| state.children.remove(at).ok());
        // The lock is released: these operations may take it.
        drop(state);
        drop(removed);
    }

    /// Removes all subdirectories. No others can be created after that. May sleep.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let parent = state.parent.take();
        let children = core::mem::replace(&mut state.children, KVec::new());
        drop(state);
        drop((children, parent));
    }
}
