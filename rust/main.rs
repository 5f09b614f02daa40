// SPDX-License-Identifier: GPL-2.0

//! rtrace: a kernel tracer.

#[allow(unreachable_pub)] // Public to the tools.
pub(crate) mod abi;
pub(crate) mod api;
pub(crate) mod channel;
pub(crate) mod event;
pub(crate) mod file;
#[allow(unreachable_pub)] // Public to the tools.
pub(crate) mod input;
pub(crate) mod probe;
#[allow(dead_code, unreachable_pub)] // Its tests use more of it.
pub(crate) mod ring;
pub(crate) mod session;
pub(crate) mod sys;

use channel::config::Config;
use channel::platform::Barriers;
use core::borrow::Borrow;
use file::Files;
use kernel::prelude::*;
use kernel::sync::Arc;
use session::{Session, Tracepoints};
use sys::hotplug::Hotplug;

/// The version of module, tools and trace.
pub(crate) const VERSION: &str = "0.1.0";

module! {
    type: Rtrace,
    name: "rtrace",
    authors: ["The rtrace developers"],
    description: "Lockless multi-core kernel tracer",
    license: "GPL",
    params: {
        delivery_barrier: u8 {
            default: 0,
            description: "1: order packets by a barrier at delivery; 0 (default): by an interrupt when they are read",
        },
        origin: u64 {
            default: 0,
            description: "Where buffer positions begin, rounded down to a lap; for tests of their wrap",
        },
    },
}

/// The module. All there is hangs on the files: they hold the session, which, when it goes,
/// stops.
struct Rtrace;

impl kernel::Module for Rtrace {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let config = Config {
            barriers: match parameter::<u8>(module_parameters::delivery_barrier.value()) {
                0 => Barriers::Interrupt,
                _ => Barriers::Delivery,
            },
            origin: parameter(module_parameters::origin.value()),
            ..Config::DEFAULT
        };
        let hotplug = Arc::new(Hotplug::new(c"trace/rtrace:online")?, GFP_KERNEL)?;
        let tracepoints = Arc::new(Tracepoints::new()?, GFP_KERNEL)?;
        let boot_id = sys::system::boot_id()?;
        let session = Session::new("default", config, hotplug, tracepoints, boot_id)?;
        let files = Files::new(session).inspect_err(|error| {
            pr_err!("cannot make /sys/kernel/debug/rtrace ({error:?}): is debugfs there, and not locked down?\n");
        })?;
        api::FILES.replace(Some(files));
        Ok(Self)
    }
}

/// The value of a module parameter, which some kernels give by reference.
fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

impl Drop for Rtrace {
    fn drop(&mut self) {
        // Nobody else can hold them: open files and callers keep the module loaded.
        api::FILES.replace(None);
    }
}
