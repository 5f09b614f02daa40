// SPDX-License-Identifier: GPL-2.0

//! System calls: numbers and names, one `NUMBER NAME` per line after comments, and a structure that differs between
//! processors.

/// The calls of 64-bit programs, by the names of their entry points, ordered by number.
pub const NATIVE: &str = include_str!("calls.txt");

/// The calls of 32-bit programs, by the names of the C library.
pub const COMPAT: &str = include_str!("compat.txt");

/// Offset of the data in a `struct epoll_event`. The structure has no padding.
pub const EPOLL_DATA: usize = 4;

/// Offset of the mode in a `struct stat`.
pub const STAT_MODE: usize = 24;
/// Offset of the device that the file is.
pub const STAT_RDEV: usize = 40;
/// Offset of the file's size.
pub const STAT_SIZE: usize = 48;
