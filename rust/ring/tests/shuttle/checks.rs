// SPDX-License-Identifier: GPL-2.0

//! The checks that find faults, by name: short runs of seed 1.

use super::{few_preemptions, random, SHORT};

/// Runs one.
pub fn run(check: &str) {
    match check {
        "shuttle, few_preemptions" => few_preemptions(SHORT, 1),
        "shuttle, random" => random(SHORT, 1),
        _ => unreachable!("no check {check}"),
    }
}
