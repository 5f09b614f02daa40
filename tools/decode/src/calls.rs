// SPDX-License-Identifier: GPL-2.0

//! The system calls: their numbers, and the order of their arguments. A record has another order: data that arguments
//! point to comes after numbers, and data that the call writes is in its exit.
//!
//! The data comes from the module's own table, which is compiled here, too.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The known facts about a system call.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u32,
    /// The names and kinds of its arguments.
    arguments: &'static [(&'static str, &'static str)],
}

/// The macro that the table calls.
mod describe {
    macro_rules! syscalls {
        ($($number:literal $name:ident($($argument:ident: $kind:ident),*);)*) => {
            /// The calls by name.
            pub const CALLS: &[(&str, super::Call)] = &[$((
                stringify!($name),
                super::Call { number: $number, arguments: &[$((stringify!($argument), stringify!($kind))),*] },
            )),*];
        };
    }
    pub(super) use syscalls;
}

#[path = "../../../rust/source/syscall/table.rs"]
mod table;

static CALLS: LazyLock<HashMap<&str, Call>> =
    LazyLock::new(|| table::CALLS.iter().copied().collect());

/// Whether a system call has this name.
pub fn is_call(name: &str) -> bool {
    CALLS.contains_key(name)
}

/// The names of all system calls.
pub fn calls() -> impl Iterator<Item = &'static str> {
    table::CALLS.iter().map(|(name, _)| *name)
}

/// The number of the call of this name.
pub fn number(name: &str) -> Option<u32> {
    CALLS.get(name).map(|call| call.number)
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
        let numbers = ["read", "openat", "unknown"].map(number);
        assert_eq!(numbers, [Some(0), Some(257), None]);
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
