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
}

/// The module. All there is hangs on the files: they hold the session, which, when it goes,
/// stops.
struct Rtrace;

impl kernel::Module for Rtrace {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let config = Config {
            barriers: match sys::parameter::delivery_barrier() {
                0 => Barriers::Interrupt,
                _ => Barriers::Delivery,
            },
            origin: sys::parameter::origin(),
            ..Config::DEFAULT
        };
        let hotplug = Arc::new(Hotplug::new(c"trace/rtrace:prepare", c"trace/rtrace:online")?, GFP_KERNEL)?;
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

impl Drop for Rtrace {
    fn drop(&mut self) {
        // Nobody else can hold them: open files and callers keep the module loaded.
        api::FILES.replace(None);
    }
}
