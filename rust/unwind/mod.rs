// SPDX-License-Identifier: GPL-2.0

//! Unwind tables: the callers of a function of a program, without frame pointers.
//!
//! An [`UnwindTable`](table::UnwindTable) describes the code of one ELF file. For an address of the code it has a
//! [`Rule`](rule::Rule): the location of the caller's registers. [`step()`](step::step) applies the rule to an
//! [`UnwindFrame`](step::UnwindFrame), which gives the frame of the caller. The crate `unwind` of the tools compiles
//! tables.
//!
//! Addresses in a table are offsets in the file, and not the addresses that the file has for its code. So a walk needs
//! only the mapping of an address, and several executable segments need no further numbers.
//!
//! The bytes of a table come from user space. A wrong table leads to wrong addresses, and to nothing else, because of
//! these properties:
//!
//! - [`UnwindTable::check`](table::UnwindTable::check) refuses a table whose numbers are out of range.
//! - A look-up reads only inside the table, and takes a bounded number of steps. This holds for any bytes.
//! - A step reads a few words of the stack through [`StackWords`](step::StackWords). Except at a signal, the caller's
//!   stack pointer is above that of the frame.
//!
//! The code has no pointer, no kernel call and no allocation, and cannot panic. Any context may run it, NMI included.
//! kbuild compiles these files into the module; cargo compiles the same files for the tests and the tools.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod end;
pub mod head;
pub mod processor;
pub mod quick;
pub mod rule;
pub mod step;
pub mod table;
