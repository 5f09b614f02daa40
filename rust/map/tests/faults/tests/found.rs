// SPDX-License-Identifier: GPL-2.0

//! Each seeded fault is found by its check, for the reason named.

use rtrace_map_faults::{of, test, Suite};

#[test]
fn map() {
    test(Suite::Map, &of(Suite::Map));
}

#[test]
fn order() {
    test(Suite::MapOrder, &of(Suite::MapOrder));
}
