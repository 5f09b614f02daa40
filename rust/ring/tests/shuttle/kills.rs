// SPDX-License-Identifier: GPL-2.0

//! Some of the faults, to show that long runs can fail, too.

use crate::faults::{self, Kill, Suite};
use crate::{few_preemptions, random, SHORT};
use rtrace_ring::fault::Fault;

/// A fault that short runs of seed 1 find.
macro_rules! shuttle {
    ($fault:ident, $check:ident, $message:literal) => {
        Kill {
            fault: Fault::$fault,
            with: &[],
            check: concat!("shuttle, ", stringify!($check)),
            run: || $check(SHORT, 1),
            message: $message,
        }
    };
}

#[test]
#[rustfmt::skip]
fn each_fault_is_found() {
    faults::test(Suite::Shuttle, &[
        shuttle!(NoTagCheck, few_preemptions, "the packet's number"),
        shuttle!(HoldByStore, few_preemptions, "each record is read or overwritten"),
        shuttle!(PushOnce, random, "each record is read or overwritten"),
        shuttle!(TimeOutsideLoop, random, "times go back"),
    ]);
}
