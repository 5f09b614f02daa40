// SPDX-License-Identifier: GPL-2.0

//! The numbers of system calls, from the module's own table.

use std::collections::HashMap;
use std::sync::LazyLock;

mod describe {
    /// The table's syntax; here only numbers and names matter.
    macro_rules! syscalls {
        ($($number:literal $name:ident($($arg:ident: $kind:ident),*);)*) => {
            /// Name and number of each.
            pub(super) const LISTED: &[(&str, u32)] = &[$((stringify!($name), $number)),*];
        };
    }
    pub(super) use syscalls;
}

#[path = "../../../../../rust/event/syscall/table.rs"]
mod table;

static NUMBERS: LazyLock<HashMap<&str, u32>> =
    LazyLock::new(|| table::LISTED.iter().copied().collect());

/// The number of the call of this name.
pub fn number(name: &str) -> Option<u32> {
    NUMBERS.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers() {
        assert_eq!(number("read"), Some(0));
        assert_eq!(number("openat"), Some(257));
        assert_eq!(number("unknown"), None);
    }
}
