// SPDX-License-Identifier: GPL-2.0

//! Events of modules.

use crate::source::field::KernelAddress;
use crate::sys::args::{CharPointer, ModuleArg};

event! {
    /// A module is loaded, and about to be initialised.
    MODULE_LOAD: module "module_load" = module_load(module: &ModuleArg) {
        taints: u32 = module.taints(),
    }
    string name = module.name()
}

event! {
    /// A module is unloaded.
    MODULE_FREE: module "module_free" = module_free(module: &ModuleArg) {}
    string name = module.name()
}

event! {
    /// A reference to a module is taken.
    optional MODULE_GET: module "module_get" = module_get(module: &ModuleArg, ip: usize) {
        ip: KernelAddress = KernelAddress::new(ip as u64),
        refcnt: i32 = module.references(),
    }
    string name = module.name()
}

event! {
    /// A reference to a module is released.
    optional MODULE_PUT: module "module_put" = module_put(module: &ModuleArg, ip: usize) {
        ip: KernelAddress = KernelAddress::new(ip as u64),
        refcnt: i32 = module.references(),
    }
    string name = module.name()
}

event! {
    /// The kernel asks user space for a module.
    MODULE_REQUEST: module "module_request" =
        module_request(name: CharPointer, wait: bool, ip: usize)
    {
        ip: KernelAddress = KernelAddress::new(ip as u64),
        wait: u8 = wait.into(),
    }
    string name = name.bytes()
}
