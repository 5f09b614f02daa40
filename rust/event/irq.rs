// SPDX-License-Identifier: GPL-2.0

//! Events of interrupts and softirqs.

use crate::sys::args::IrqAction;

event! {
    /// A softirq's handler begins.
    IRQ_SOFTIRQ_ENTRY: irq "irq_softirq_entry" = softirq_entry(vec: u32) {
        vec: u8 = vec as u8,
    }
}

event! {
    /// An interrupt's handler begins.
    IRQ_HANDLER_ENTRY: irq "irq_handler_entry" = irq_handler_entry(irq: i32, action: &IrqAction) {
        irq: i32 = irq,
    }
    string name = action.name()
}
