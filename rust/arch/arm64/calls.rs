// SPDX-License-Identifier: GPL-2.0

//! System calls: numbers and names, one `NUMBER NAME` per line after comments, and a structure that differs between
//! processors.

/// The calls of 64-bit programs, by the names of their entry points, ordered by number.
pub const NATIVE: &str = include_str!("calls.txt");

/// The calls of 32-bit programs, by the names of the C library.
pub const COMPAT: &str = include_str!("compat.txt");

/// Offset of the data in a `struct epoll_event`. The structure has padding before them.
pub const EPOLL_DATA: usize = 8;
