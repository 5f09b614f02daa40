// SPDX-License-Identifier: GPL-2.0

//! Filters: which records of an event are wanted.
//!
//! A filter is an expression in ftrace's language (`input/filter`).
//! [`compile()`](compile::compile) checks it against the fields of an event and the contexts that
//! there are, and makes a [`Program`](program::Program) of it, which says of a record whether it is
//! wanted. That may happen in any context, NMI included, because of what a program is:
//!
//! - It ends: a step says how many steps are skipped behind it, and can say nothing else.
//! - It reads inside of the record only. A record that ends before something that the program
//!   reads is not wanted.
//! - It allocates nothing, and cannot panic.
//!
//! None of this depends on where the steps come from.
//!
//! A record's fields lie one behind the other, as [`abi::schema`] has it; the event header is not
//! a part of it. What depends on the moment, not on the record, is a context, which the caller
//! knows ([`Contexts`](evaluate::Contexts)) and is asked for only when a step needs it.
//!
//! # What operators mean
//!
//! As in ftrace:
//!
//! - Numbers are compared as the field's type says, signed or unsigned; `&` asks whether they have
//!   a bit in common.
//! - A text ends at its first NUL. `~` takes the kernel's patterns (`input/glob`); a `!` in front
//!   of the pattern inverts the answer.
//! - `CPUS{}` of one CPU is that number, and `&` is then `==`. A number never equals several CPUs;
//!   it differs from them if it is the number of a CPU; `&` asks whether it is one of them.
//! - An array of numbers is a set, as a cpumask is: the lowest bit of the first number is CPU 0.
//!   `&` asks whether it and `CPUS{}` have a CPU in common.
//! - `&&` binds stronger than `||`. The right side of each is evaluated only if the left side has
//!   not decided.
//!
//! Other than in ftrace:
//!
//! - A number that the field cannot hold is refused; ftrace cuts off its upper bits. Hexadecimal
//!   and octal numbers may be the bits of a negative one: `ret == 0xffffffff` is `ret == -1` where
//!   `ret` has 32 bits.
//! - A pattern `*x` matches a text that ends in `x`, as ftrace's documentation has it. (ftrace
//!   compares the end of the field, which mostly is NULs behind the text.)
//! - A pattern that begins with a digit is a pattern. (ftrace compares it as a text.)

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

pub mod compile;
pub mod evaluate;
mod flow;
mod layout;
pub mod program;

// In the module these are rooms beside this one, for cargo they are crates.
#[cfg(MODULE)]
use crate::{abi, input};
#[cfg(not(MODULE))]
use {rtrace_abi as abi, rtrace_input as input};
