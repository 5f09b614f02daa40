// SPDX-License-Identifier: GPL-2.0

//! Being told, on the CPU itself, when it comes and before it goes.

use crate::sys::bindings;
use core::marker::{PhantomData, PhantomPinned};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What follows CPUs.
pub(crate) trait PerCpuState: Send + Sync {
    /// `cpu`, on which this runs, is online. May sleep.
    ///
    /// An error fails [`Watch::new`] with it, or, later, keeps the CPU offline.
    fn online(&self, cpu: u32) -> Result;

    /// `cpu`, on which this runs, goes offline soon, or the watch ends. May sleep.
    fn offline(&self, cpu: u32);
}

/// The kernel's hook for all the `T`s. One is made when the module is loaded.
pub(crate) struct Hotplug<T: PerCpuState> {
    state: bindings::cpuhp_state,
    what: PhantomData<fn(T)>,
}

type Callback = unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int;

impl<T: PerCpuState> Hotplug<T> {
    /// Registers under `name`, which shows in sysfs.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        // With multi_instance the kernel calls with a second argument.
        fn erase(f: Callback) -> unsafe extern "C" fn(c_uint) -> c_int {
            // SAFETY: Function pointers have one size; the kernel casts back before it calls.
            unsafe { core::mem::transmute(f) }
        }
        // SAFETY: The callbacks are of the multi-instance kind, and the last argument says so.
        let state = unsafe {
            bindings::__cpuhp_setup_state(
                bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
                name.as_ptr().cast(),
                false,
                Some(erase(online::<T>)),
                Some(erase(offline::<T>)),
                true,
            )
        };
        kernel::error::to_result(state.min(0))?;
        Ok(Self {
            state: state as bindings::cpuhp_state,
            what: PhantomData,
        })
    }
}

impl<T: PerCpuState> Drop for Hotplug<T> {
    fn drop(&mut self) {
        // SAFETY: Set up by `new`; watches hold a reference to `self`, so there are none.
        unsafe { bindings::__cpuhp_remove_state(self.state, false) };
    }
}

/// Follows the CPUs for one `T`, from creation until dropped.
#[pin_data(PinnedDrop)]
pub(crate) struct Watch<T: PerCpuState> {
    #[pin]
    node: Opaque<bindings::hlist_node>,
    target: Arc<T>,
    hotplug: Arc<Hotplug<T>>,
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: The node is the kernel's, under its own lock.
unsafe impl<T: PerCpuState> Sync for Watch<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: PerCpuState> Send for Watch<T> {}

impl<T: PerCpuState> Watch<T> {
    /// Calls [`online`](PerCpuState::online) on each CPU that is, now and later. If it fails on
    /// one, undoes the others by [`offline`](PerCpuState::offline) and fails. May sleep.
    pub(crate) fn new(hotplug: &Arc<Hotplug<T>>, target: Arc<T>) -> Result<Pin<KBox<Self>>> {
        let watch = KBox::pin_init(
            pin_init!(Self {
                node <- Opaque::ffi_init(|node: *mut bindings::hlist_node| {
                    // SAFETY: `node` is memory for a node; unhashed is all zero.
                    unsafe { node.write_bytes(0, 1) }
                }),
                target,
                hotplug: hotplug.clone(),
                pinned: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The node is pinned and stays until the drop below takes it off. On failure the
        // kernel has not linked it, which that drop sees.
        kernel::error::to_result(unsafe {
            bindings::__cpuhp_state_add_instance(hotplug.state, watch.node.get(), true)
        })?;
        Ok(watch)
    }
}

#[pinned_drop]
impl<T: PerCpuState> PinnedDrop for Watch<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Only this object's users and the kernel's list touch the node; it was added
        // exactly if it is linked.
        unsafe {
            if (*self.node.get()).pprev.is_null() {
                return;
            }
            bindings::__cpuhp_state_remove_instance(self.hotplug.state, self.node.get(), true);
        }
    }
}

/// The `T` of a node.
///
/// # Safety
///
/// `node` must be that of a live `Watch<T>`.
unsafe fn target<'a, T: PerCpuState>(node: *mut bindings::hlist_node) -> &'a T {
    // SAFETY: By the contract; an Opaque is transparent.
    unsafe {
        let watch = kernel::container_of!(Opaque::cast_from(node), Watch<T>, node);
        &(*watch).target
    }
}

/// A CPU has come.
///
/// # Safety
///
/// For the kernel to call, with the node of a live watch.
unsafe extern "C" fn online<T: PerCpuState>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: The kernel passes the nodes of live watches of this state.
    match unsafe { target::<T>(node) }.online(cpu) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// A CPU will go.
///
/// # Safety
///
/// As [`online`].
unsafe extern "C" fn offline<T: PerCpuState>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: As in `online`.
    unsafe { target::<T>(node) }.offline(cpu);
    0
}
