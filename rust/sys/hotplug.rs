// SPDX-License-Identifier: GPL-2.0

//! Notification of CPU hotplug: before a CPU comes up, when it is online, and before it goes offline.

use crate::sys::bindings;
use core::marker::{PhantomData, PhantomPinned};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Receives the notifications.
pub(crate) trait PerCpuState: Send + Sync {
    /// Prepares for `cpu`, which will come up and runs no code yet. Runs on another CPU. May sleep.
    ///
    /// Not called for a CPU that is online when the watch begins.
    fn prepare(&self, cpu: u32);

    /// Handles the start of `cpu`, on which this runs. `cpu` may have run any code before. May sleep.
    ///
    /// If this returns an error in [`HotplugWatch::new`], that fails with the error. Later, an error keeps the
    /// CPU offline.
    fn online(&self, cpu: u32) -> Result;

    /// Handles the end of `cpu`, on which this runs: it goes offline soon, or the watch ends. May sleep.
    fn offline(&self, cpu: u32);
}

/// The kernel's hotplug states for all `T`s. Created when the module is loaded.
pub(crate) struct Hotplug<T: PerCpuState> {
    online: State,
    prepare: State,
    what: PhantomData<fn(T)>,
}

type Callback = unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int;

impl<T: PerCpuState> Hotplug<T> {
    /// Registers the states under these names, which sysfs shows.
    pub(crate) fn new(prepare: &'static CStr, online: &'static CStr) -> Result<Self> {
        Ok(Self {
            prepare: State::new(
                bindings::cpuhp_state_CPUHP_BP_PREPARE_DYN,
                prepare,
                self::prepare::<T>,
                None,
            )?,
            online: State::new(
                bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
                online,
                self::online::<T>,
                Some(offline::<T>),
            )?,
            what: PhantomData,
        })
    }
}

/// A hotplug state that the kernel has allocated for us.
///
/// # Invariants
///
/// `id` is a dynamic multi-instance state that we own.
struct State {
    id: bindings::cpuhp_state,
}

impl State {
    fn new(
        section: bindings::cpuhp_state,
        name: &'static CStr,
        startup: Callback,
        teardown: Option<Callback>,
    ) -> Result<Self> {
        // With multi_instance the kernel passes a second argument.
        fn erase(f: Callback) -> unsafe extern "C" fn(c_uint) -> c_int {
            // SAFETY: Function pointers have one size. The kernel casts the pointer back before the call.
            unsafe { core::mem::transmute(f) }
        }
        // SAFETY: The callbacks are of the multi-instance kind, as the last argument says.
        let id = unsafe {
            bindings::__cpuhp_setup_state(
                section,
                name.as_ptr().cast(),
                false,
                Some(erase(startup)),
                teardown.map(erase),
                true,
            )
        };
        kernel::error::to_result(id.min(0))?;
        // INVARIANT: The state was allocated above.
        Ok(Self {
            id: id as bindings::cpuhp_state,
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: By the invariant. Watches hold a reference to the owner, so no watch is left.
        unsafe { bindings::__cpuhp_remove_state(self.id, false) };
    }
}

/// Notifies one `T` of all CPUs, from creation until dropped.
#[pin_data(PinnedDrop)]
pub(crate) struct HotplugWatch<T: PerCpuState> {
    #[pin]
    prepare: Opaque<bindings::hlist_node>,
    #[pin]
    online: Opaque<bindings::hlist_node>,
    target: Arc<T>,
    hotplug: Arc<Hotplug<T>>,
    #[pin]
    pinned: PhantomPinned,
}

// SAFETY: The kernel accesses the nodes under its own lock.
unsafe impl<T: PerCpuState> Sync for HotplugWatch<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: PerCpuState> Send for HotplugWatch<T> {}

impl<T: PerCpuState> HotplugWatch<T> {
    /// Calls [`online`](PerCpuState::online) on each CPU that is online, now and later. If a call fails now,
    /// calls [`offline`](PerCpuState::offline) for the calls that succeeded, and fails. May sleep.
    pub(crate) fn new(hotplug: &Arc<Hotplug<T>>, target: Arc<T>) -> Result<Pin<KBox<Self>>> {
        fn unlinked() -> impl PinInit<Opaque<bindings::hlist_node>> {
            Opaque::ffi_init(|node: *mut bindings::hlist_node| {
                // SAFETY: `node` is memory for a node. An unhashed node is all zero.
                unsafe { node.write_bytes(0, 1) }
            })
        }
        let watch = KBox::pin_init(
            pin_init!(Self {
                prepare <- unlinked(),
                online <- unlinked(),
                target,
                hotplug: hotplug.clone(),
                pinned: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // `prepare` is added first, so that each CPU that comes online from now on was prepared.
        let states = [
            (&hotplug.prepare, &watch.prepare, false),
            (&hotplug.online, &watch.online, true),
        ];
        for (state, node, invoke) in states {
            // SAFETY: The node is pinned, and lives until the drop below has removed it. On failure the kernel
            // has not linked it, and the drop sees that.
            kernel::error::to_result(unsafe {
                bindings::__cpuhp_state_add_instance(state.id, node.get(), invoke)
            })?;
        }
        Ok(watch)
    }
}

#[pinned_drop]
impl<T: PerCpuState> PinnedDrop for HotplugWatch<T> {
    fn drop(self: Pin<&mut Self>) {
        let states = [
            (&self.hotplug.online, &self.online),
            (&self.hotplug.prepare, &self.prepare),
        ];
        for (state, node) in states {
            // SAFETY: Only the users of this object and the kernel's list access the node. The node was added
            // if and only if it is linked.
            unsafe {
                if !(*node.get()).pprev.is_null() {
                    bindings::__cpuhp_state_remove_instance(state.id, node.get(), true);
                }
            }
        }
    }
}

/// Calls the target before a CPU comes up.
///
/// # Safety
///
/// Only the kernel calls this, with the `prepare` node of a live watch.
unsafe extern "C" fn prepare<T: PerCpuState>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: By the contract. An Opaque is transparent. The watch outlives the call.
    let watch =
        unsafe { &*kernel::container_of!(Opaque::cast_from(node), HotplugWatch<T>, prepare) };
    watch.target.prepare(cpu);
    0
}

/// Calls the target when a CPU is online.
///
/// # Safety
///
/// Only the kernel calls this, with the `online` node of a live watch.
unsafe extern "C" fn online<T: PerCpuState>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: As in `prepare`.
    let watch =
        unsafe { &*kernel::container_of!(Opaque::cast_from(node), HotplugWatch<T>, online) };
    match watch.target.online(cpu) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// Calls the target before a CPU goes offline.
///
/// # Safety
///
/// As [`online`].
unsafe extern "C" fn offline<T: PerCpuState>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: As in `prepare`.
    let watch =
        unsafe { &*kernel::container_of!(Opaque::cast_from(node), HotplugWatch<T>, online) };
    watch.target.offline(cpu);
    0
}
