// SPDX-License-Identifier: GPL-2.0

//! The order of a system call's arguments: a record has texts behind numbers, and has what the call only
//! writes to at its exit.
//!
//! The order is that of the module's own table, which is compiled here, too.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What the table asks for.
mod describe {
    macro_rules! syscalls {
        ($($number:literal $name:ident($($argument:ident: $kind:ident),*);)*) => {
            /// The calls, and the names of their arguments.
            pub const CALLS: &[(&str, &[&str])] =
                &[$((stringify!($name), &[$(stringify!($argument)),*])),*];
        };
    }
    pub(super) use syscalls;
}

#[path = "../../../../rust/event/syscall/table.rs"]
mod table;

static CALLS: LazyLock<HashMap<&str, &[&str]>> =
    LazyLock::new(|| table::CALLS.iter().copied().collect());

/// Whether a system call is called so.
pub fn is_call(name: &str) -> bool {
    CALLS.contains_key(name)
}

/// The place of an argument in its call; none if either is not known.
pub fn position(call: &str, argument: &str) -> Option<usize> {
    let arguments = CALLS.get(call)?;
    arguments.iter().position(|name| *name == argument)
}

#[cfg(test)]
mod tests {
    use super::*;

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
