// SPDX-License-Identifier: GPL-2.0

//! The names of numbers in system calls: flags, constants, errors. Also the calls themselves, the flags of io_uring, and
//! the kernel's names of events.
//!
//! The names and their values are those of the kernel's uapi headers, through the crates `libc` and `nix`, which have
//! those of the machine that reads. Values that differ between processors are written here, for each [`Architecture`]
//! that a trace can be of. A number
//! that is not in a table stays a number, and bits without a name stay in hexadecimal.

#![forbid(unsafe_code)]

mod architecture;
mod calls;
mod chosen;
mod error;
mod event_name;
mod meaning;
mod mounts;
mod signals;
mod tables;
mod uring;

pub use architecture::Architecture;
pub use calls::{arguments, calls, data, is_call, is_descriptor, number, position};
pub use chosen::{chosen, path_of, SETS};
pub use error::{error_name, write_error};
pub use event_name::{event_in_kernel, event_of_kernel};
pub use meaning::{write_end, Meaning};
pub use signals::{write_origin, Origin};
pub use tables::{
    argument, decided, decider, is_given, result, EPOLL_EVENTS, POLL_EVENTS, SA_RESTORER,
};
pub use uring::{REQUEST_FLAGS, RESULT_FLAGS};
