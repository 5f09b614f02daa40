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
    /// A softirq's handler ends.
    IRQ_SOFTIRQ_EXIT: irq "irq_softirq_exit" = softirq_exit(vec: u32) {
        vec: u8 = vec as u8,
    }
}

event! {
    /// A softirq is to be handled.
    IRQ_SOFTIRQ_RAISE: irq "irq_softirq_raise" = softirq_raise(vec: u32) {
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

event! {
    /// An interrupt's handler ends. `ret` says whether it was for that handler.
    IRQ_HANDLER_EXIT: irq "irq_handler_exit" =
        irq_handler_exit(irq: i32, _action: &IrqAction, ret: i32)
    {
        irq: i32 = irq,
        ret: i32 = ret,
    }
}
