// SPDX-License-Identifier: GPL-2.0

//! Following CPUs: before each comes up, when it is online, and before it goes.

use crate::sys::bindings;
use core::marker::{PhantomData, PhantomPinned};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What follows CPUs.
pub(crate) trait PerCpuState: Send + Sync {
    /// `cpu` will come up: it runs nothing yet. This runs on another CPU. May sleep.
    ///
    /// Not called for a CPU that is online when the watch begins.
    fn prepare(&self, cpu: u32);

    /// `cpu`, on which this runs, is online; it may have run anything before. May sleep.
    ///
    /// An error fails [`HotplugWatch::new`] with it, or, later, keeps the CPU offline.
    fn online(&self, cpu: u32) -> Result;

    /// `cpu`, on which this runs, goes offline soon, or the watch ends. May sleep.
    fn offline(&self, cpu: u32);
}

/// The kernel's hooks for all the `T`s. One is made when the module is loaded.
pub(crate) struct Hotplug<T: PerCpuState> {
    online: State,
    prepare: State,
    what: PhantomData<fn(T)>,
}

type Callback = unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int;

impl<T: PerCpuState> Hotplug<T> {
    /// Registers under the names, which show in sysfs.
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

/// A state on the way of a CPU that the kernel has given to us.
///
/// # Invariants
///
/// `id` is a dynamic multi-instance state of ours.
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
        // With multi_instance the kernel calls with a second argument.
        fn erase(f: Callback) -> unsafe extern "C" fn(c_uint) -> c_int {
            // SAFETY: Function pointers have one size; the kernel casts back before it calls.
            unsafe { core::mem::transmute(f) }
        }
        // SAFETY: The callbacks are of the multi-instance kind, and the last argument says so.
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
        // INVARIANT: Just made.
        Ok(Self {
            id: id as bindings::cpuhp_state,
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: By the invariant; watches hold a reference to the owner, so there are none.
        unsafe { bindings::__cpuhp_remove_state(self.id, false) };
    }
}

/// Follows the CPUs for one `T`, from creation until dropped.
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

// SAFETY: The nodes are the kernel's, under its own lock.
unsafe impl<T: PerCpuState> Sync for HotplugWatch<T> {}
// SAFETY: Not bound to a thread.
unsafe impl<T: PerCpuState> Send for HotplugWatch<T> {}

impl<T: PerCpuState> HotplugWatch<T> {
    /// Calls [`online`](PerCpuState::online) on each CPU that is, now and later. If it fails on
    /// one, undoes the others by [`offline`](PerCpuState::offline) and fails. May sleep.
    pub(crate) fn new(hotplug: &Arc<Hotplug<T>>, target: Arc<T>) -> Result<Pin<KBox<Self>>> {
        fn unlinked() -> impl PinInit<Opaque<bindings::hlist_node>> {
            Opaque::ffi_init(|node: *mut bindings::hlist_node| {
                // SAFETY: `node` is memory for a node; unhashed is all zero.
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
        // First, so that no CPU is online that was not prepared, but those that are now.
        let states = [
            (&hotplug.prepare, &watch.prepare, false),
            (&hotplug.online, &watch.online, true),
        ];
        for (state, node, invoke) in states {
            // SAFETY: The node is pinned and stays until the drop below takes it off. On failure
            // the kernel has not linked it, which that drop sees.
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
            // SAFETY: Only this object's users and the kernel's list touch the node; it was added
            // exactly if it is linked.
            unsafe {
                if !(*node.get()).pprev.is_null() {
                    bindings::__cpuhp_state_remove_instance(state.id, node.get(), true);
                }
            }
        }
    }
}

/// A CPU will come up.
///
/// # Safety
///
/// For the kernel to call, with the `prepare` node of a live watch.
unsafe extern "C" fn prepare<T: PerCpuState>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: By the contract; an Opaque is transparent, and the watch outlives the call.
    let watch =
        unsafe { &*kernel::container_of!(Opaque::cast_from(node), HotplugWatch<T>, prepare) };
    watch.target.prepare(cpu);
    0
}

/// A CPU has come.
///
/// # Safety
///
/// For the kernel to call, with the `online` node of a live watch.
unsafe extern "C" fn online<T: PerCpuState>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: As in `prepare`.
    let watch =
        unsafe { &*kernel::container_of!(Opaque::cast_from(node), HotplugWatch<T>, online) };
    match watch.target.online(cpu) {
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
    // SAFETY: As in `prepare`.
    let watch =
        unsafe { &*kernel::container_of!(Opaque::cast_from(node), HotplugWatch<T>, online) };
    watch.target.offline(cpu);
    0
}
