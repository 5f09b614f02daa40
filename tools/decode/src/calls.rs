// SPDX-License-Identifier: GPL-2.0

//! The system calls: their numbers, and the order of their arguments, which is not that of a record. (That
//! has what arguments point to behind numbers, and what the call only writes to at its exit.)
//!
//! They come from the module's own table, which is compiled here, too.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What is known of a system call.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u32,
    /// Their names and kinds.
    arguments: &'static [(&'static str, &'static str)],
}

/// What the table asks for.
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

/// Whether a system call is called so.
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

/// The place of an argument in its call; none if either is not known.
pub fn position(call: &str, argument: &str) -> Option<usize> {
    let mut arguments = arguments(call).iter();
    arguments.position(|(name, _)| *name == argument)
}

/// The arguments of a call: their names, and what kind of argument the module's table says that each is.
pub fn arguments(call: &str) -> &'static [(&'static str, &'static str)] {
    CALLS.get(call).map_or(&[], |call| call.arguments)
}

/// Whether an argument is a descriptor of who calls.
pub fn is_descriptor(call: &str, argument: &str) -> bool {
    // That is one of another process.
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
