// SPDX-License-Identifier: GPL-2.0

//! The system calls: their numbers, and the order of their arguments. A record has another order: data that arguments
//! point to comes after numbers, and data that the call writes is in its exit.
//!
//! The data comes from the module's own table, which is compiled here, too.

use super::architecture::Architecture;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The known facts about a system call.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The names and kinds of its arguments.
    arguments: &'static [(&'static str, &'static str)],
}

/// The macro that the table calls.
mod describe {
    macro_rules! syscalls {
        ($($name:ident($($argument:ident: $kind:ident),*);)*) => {
            /// The calls by name.
            pub const CALLS: &[(&str, super::Call)] = &[$((
                stringify!($name),
                super::Call { arguments: &[$((stringify!($argument), stringify!($kind))),*] },
            )),*];
        };
    }
    pub(super) use syscalls;
}

#[path = "../../../rust/source/syscall/table.rs"]
mod table;

static CALLS: LazyLock<HashMap<&str, Call>> =
    LazyLock::new(|| table::CALLS.iter().copied().collect());

/// The numbers of an architecture's calls, by name: the module's own list.
fn numbers(list: &'static str) -> HashMap<&'static str, u32> {
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter_map(|(number, name)| Some((name, number.parse().ok()?)))
        .collect()
}

static X86_64: LazyLock<HashMap<&str, u32>> =
    LazyLock::new(|| numbers(include_str!("../../../rust/arch/x86/calls.txt")));
static ARM64: LazyLock<HashMap<&str, u32>> =
    LazyLock::new(|| numbers(include_str!("../../../rust/arch/arm64/calls.txt")));

/// Whether a system call has this name.
pub fn is_call(name: &str) -> bool {
    CALLS.contains_key(name)
}

/// The names of all system calls.
pub fn calls() -> impl Iterator<Item = &'static str> {
    table::CALLS.iter().map(|(name, _)| *name)
}

/// The number of the call of this name on an architecture.
pub fn number(architecture: Architecture, name: &str) -> Option<u32> {
    let numbers = match architecture {
        Architecture::X86_64 => &X86_64,
        Architecture::Arm64 => &ARM64,
    };
    numbers.get(name).copied()
}

/// The position of an argument in its call. [`None`]: the call or the argument is unknown.
pub fn position(call: &str, argument: &str) -> Option<usize> {
    let mut arguments = arguments(call).iter();
    arguments.position(|(name, _)| *name == argument)
}

/// The arguments of a call: their names, and their kinds in the module's table.
pub fn arguments(call: &str) -> &'static [(&'static str, &'static str)] {
    CALLS.get(call).map_or(&[], |call| call.arguments)
}

/// The argument of a call whose bytes have an event of their own, and whether the call reads them.
pub fn data(call: &str) -> Option<(&'static str, bool)> {
    let mut arguments = arguments(call).iter();
    arguments.find_map(|(name, kind)| match *kind {
        "given_data" | "given_iovec" | "message" => Some((*name, true)),
        "filled_data" | "filled_iovec" | "received" => Some((*name, false)),
        _ => None,
    })
}

/// Whether an argument is a descriptor of the calling process.
pub fn is_descriptor(call: &str, argument: &str) -> bool {
    // This one is a descriptor of another process.
    if (call, argument) == ("pidfd_getfd", "fd") {
        return false;
    }
    arguments(call).contains(&(argument, "fd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let names = ["read", "openat", "open", "unknown"];
        let of = |architecture| names.map(|name| number(architecture, name));
        assert_eq!(
            of(Architecture::X86_64),
            [Some(0), Some(257), Some(2), None]
        );
        assert_eq!(of(Architecture::Arm64), [Some(63), Some(56), None, None]);
    }

    /// Each call with a number has arguments, so each list has names of the table.
    #[test]
    fn all_calls_are_described() {
        for numbers in [&*X86_64, &*ARM64] {
            assert!(numbers.len() > 300);
            assert!(numbers.keys().all(|name| is_call(name)));
        }
    }

    #[test]
    fn moved_bytes() {
        assert_eq!(data("write"), Some(("buf", true)));
        assert_eq!(data("read"), Some(("buf", false)));
        assert_eq!(data("writev"), Some(("vec", true)));
        assert_eq!(data("recvmsg"), Some(("msg", false)));
        assert_eq!(data("close"), None);
    }

    #[test]
    fn descriptors() {
        for (call, argument, expected) in [
            ("read", "fd", true),
            ("openat", "dfd", true),
            ("openat", "mode", false),
            ("pidfd_getfd", "pidfd", true),
            ("pidfd_getfd", "fd", false),
            ("unknown", "fd", false),
        ] {
            assert_eq!(is_descriptor(call, argument), expected, "{call} {argument}");
        }
    }

    #[test]
    fn arguments_have_the_order_of_the_call() {
        let places = ["dfd", "filename", "flags", "mode"].map(|name| position("openat", name));
        assert_eq!(places, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(position("mount", "type"), Some(2));
        assert_eq!(position("openat", "buf"), None);
        assert_eq!(position("unknown", "id"), None);
        assert!(is_call("openat") && !is_call("sched") && !is_call("unknown"));
    }
}
