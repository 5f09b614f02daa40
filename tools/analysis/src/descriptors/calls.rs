// SPDX-License-Identifier: GPL-2.0

//! Effects of system calls on descriptors.

use crate::calls::FollowedCall;

/// `O_CLOEXEC`, and the flags of other calls that have the same value.
const CLOEXEC: u64 = 0o2_000_000;
/// `MFD_CLOEXEC`
const MEMFD_CLOEXEC: u64 = 1;

/// Effect of a call on descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Opens the file with this name, relative to the directory in the first argument, with the flags in
    /// the second.
    Open,
    /// Creates a file of this kind, with the flags in the first argument. If they contain this flag, an
    /// exec closes the file.
    Make(&'static str, u64),
    /// Duplicates the descriptor in the first argument, with the flags in the third.
    Duplicate,
    /// Applies the fcntl command in the second argument to the first argument, with the third as its value.
    Control,
    /// Applies the ioctl command in the second argument to the first argument.
    Device,
    /// Closes the first argument.
    Close,
    /// Closes the descriptors from the first argument to the second, with the flags in the third.
    CloseRange,
    /// Reads from the first argument.
    Read,
    /// Writes to the first argument.
    Write,
    /// Copies data from the first argument to the second.
    Copy,
    /// Executes another program.
    Execute,
}

impl Does {
    /// Returns whether the call moves data.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Copy)
    }
}

/// Returns whether flags request that an exec closes the file.
pub fn closes_on_exec(flags: Option<u64>) -> bool {
    flags.is_some_and(|flags| flags & CLOEXEC != 0)
}

/// The calls that are followed. Calls that return descriptors in memory, such as pipe, are not among them.
pub const CALLS: &[FollowedCall<Does>] = &[
    open("open", ["", "flags", ""], "filename"),
    open("openat", ["dfd", "flags", ""], "filename"),
    open("openat2", ["dfd", "", ""], "filename"),
    open("creat", ["", "", ""], "pathname"),
    make("socket", "socket", "type", CLOEXEC),
    make("accept", "socket", "", CLOEXEC),
    make("accept4", "socket", "flags", CLOEXEC),
    make("epoll_create", "epoll", "", CLOEXEC),
    make("epoll_create1", "epoll", "flags", CLOEXEC),
    make("eventfd", "eventfd", "", CLOEXEC),
    make("eventfd2", "eventfd", "flags", CLOEXEC),
    make("timerfd_create", "timerfd", "flags", CLOEXEC),
    make("signalfd", "signalfd", "", CLOEXEC),
    make("signalfd4", "signalfd", "flags", CLOEXEC),
    make("inotify_init", "inotify", "", CLOEXEC),
    make("inotify_init1", "inotify", "flags", CLOEXEC),
    make("memfd_create", "memfd", "flags", MEMFD_CLOEXEC),
    call("dup", Does::Duplicate, ["fildes", "", ""]),
    call("dup2", Does::Duplicate, ["oldfd", "newfd", ""]),
    call("dup3", Does::Duplicate, ["oldfd", "newfd", "flags"]),
    call("fcntl", Does::Control, ["fd", "cmd", "arg"]),
    call("ioctl", Does::Device, ["fd", "cmd", ""]),
    call("close", Does::Close, ["fd", "", ""]),
    call("close_range", Does::CloseRange, ["fd", "max_fd", "flags"]),
    call("read", Does::Read, FD),
    call("readv", Does::Read, FD),
    call("pread64", Does::Read, FD),
    call("preadv", Does::Read, FD),
    call("preadv2", Does::Read, FD),
    call("recvfrom", Does::Read, FD),
    call("recvmsg", Does::Read, FD),
    call("write", Does::Write, FD),
    call("writev", Does::Write, FD),
    call("pwrite64", Does::Write, FD),
    call("pwritev", Does::Write, FD),
    call("pwritev2", Does::Write, FD),
    call("sendto", Does::Write, FD),
    call("sendmsg", Does::Write, FD),
    call("sendfile64", Does::Copy, ["in_fd", "out_fd", ""]),
    call("splice", Does::Copy, ["fd_in", "fd_out", ""]),
    call("copy_file_range", Does::Copy, ["fd_in", "fd_out", ""]),
    call("execve", Does::Execute, ["", "", ""]),
    call("execveat", Does::Execute, ["", "", ""]),
];

/// Calls after which a descriptor no longer refers to its file.
pub const FREE: [&str; 5] = ["close", "close_range", "dup2", "dup3", "execve"];

/// Calls that change whether an exec closes a descriptor.
pub const MARK: [&str; 2] = ["fcntl", "ioctl"];

/// Returns whether the result of the call with this name is always a descriptor. (The result of fcntl may
/// be one.)
pub fn makes_descriptor(name: &str) -> bool {
    let call = CALLS.iter().find(|call| call.name == name);
    call.is_some_and(|call| matches!(call.does, Does::Open | Does::Make(..) | Does::Duplicate))
}

const FD: [&str; 3] = ["fd", "", ""];

const fn call(name: &'static str, does: Does, arguments: [&'static str; 3]) -> FollowedCall<Does> {
    FollowedCall {
        name,
        does,
        arguments,
        text: None,
    }
}

const fn open(
    name: &'static str,
    arguments: [&'static str; 3],
    text: &'static str,
) -> FollowedCall<Does> {
    FollowedCall {
        name,
        does: Does::Open,
        arguments,
        text: Some(text),
    }
}

const fn make(
    name: &'static str,
    kind: &'static str,
    flags: &'static str,
    cloexec: u64,
) -> FollowedCall<Does> {
    call(name, Does::Make(kind, cloexec), [flags, "", ""])
}
