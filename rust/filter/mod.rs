// SPDX-License-Identifier: GPL-2.0

//! Filters: which records of an event are recorded.
//!
//! A filter is an expression in ftrace's language (`input/filter`). [`compile()`](compile::compile)
//! checks it against the fields of an event and the available contexts, and makes a
//! [`Program`](program::Program). The program accepts or refuses a record. It may run in any
//! context, NMI included, because of these properties:
//!
//! - It ends: a step gives the number of steps to skip after it, and has no other way to continue.
//! - It reads only inside the record. It refuses a record that ends before a value that it reads.
//! - It allocates no memory, and cannot panic.
//!
//! These properties do not depend on the origin of the steps.
//!
//! [`find()`](compile::find) finds a single [`Value`](value::Value) of a record in the same way.
//!
//! A record's fields are adjacent, as [`abi::schema`] defines; the event header is not a part of
//! the record here. A value that depends on the moment instead of the record is a context. The
//! caller provides it ([`Contexts`](evaluate::Contexts)), and the program reads it only when a step
//! needs it.
//!
//! # Meaning of operators
//!
//! As in ftrace:
//!
//! - Numbers are compared as signed or unsigned, by the field's type. `&` is true if they have a
//!   common bit.
//! - A text ends at its first NUL. `~` takes the kernel's patterns (`input/glob`); a `!` before the
//!   pattern inverts the result.
//! - `CPUS{}` with one CPU is that number, and `&` is then `==`. A number never equals several
//!   CPUs. It differs from them if it is the number of a CPU. `&` is true if it is one of them.
//! - An array of numbers is a set, like a cpumask: the lowest bit of the first number is CPU 0. `&`
//!   is true if it and `CPUS{}` have a common CPU.
//! - `&&` has precedence over `||`. The right side is evaluated only if the left side has not
//!   decided.
//!
//! Differences from ftrace:
//!
//! - A number that does not fit the field is refused; ftrace cuts off its upper bits. Hexadecimal
//!   and octal numbers may be the bits of a negative one: `ret == 0xffffffff` is `ret == -1` if
//!   `ret` has 32 bits.
//! - A pattern `*x` matches a text that ends in `x`, as ftrace's documentation says. (ftrace
//!   compares the end of the field, which usually has NULs after the text.)
//! - A pattern that begins with a digit is a pattern. (ftrace compares it as a text.)

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod compile;
pub mod evaluate;
mod flow;
mod layout;
pub mod program;
pub mod value;

// In the module these are rooms next to this one; for cargo they are crates.
#[cfg(MODULE)]
use crate::{abi, input};
#[cfg(not(MODULE))]
use {rtrace_abi as abi, rtrace_input as input};
