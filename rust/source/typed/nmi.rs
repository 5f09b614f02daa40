// SPDX-License-Identifier: GPL-2.0

//! Events of non-maskable interrupts. They fire, and are recorded, in NMI context.

use crate::source::field::KernelAddress;
use crate::sys::args::Address;

event! {
    /// A handler of NMIs was called.
    optional NMI_HANDLER: nmi "nmi_handler" =
        nmi_handler(handler: Address, delta_ns: i64, handled: i32)
    {
        handler: KernelAddress = KernelAddress::new(handler.value()),
        delta_ns: i64 = delta_ns,
        handled: i32 = handled,
    }
}
