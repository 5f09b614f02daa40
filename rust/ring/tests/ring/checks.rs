// SPDX-License-Identifier: GPL-2.0

//! The checks that find faults, by name.

use super::nested::one;
use super::ring::Mode;
use super::{directed, lifecycle};

/// Runs one: a test, or the nested search: "nested, SCENARIO, MODE, INTERRUPTIONS".
pub fn run(check: &str) {
    match check.split(", ").collect::<Vec<_>>()[..] {
        ["nested", scenario, mode, depth] => {
            let mode = match mode {
                "Discard" => Mode::Discard,
                "Overwrite" => Mode::Overwrite,
                _ => unreachable!("no mode {mode}"),
            };
            one(scenario, mode, depth.parse().expect("a number"));
        }
        ["directed::too_large_is_not_called_full"] => directed::too_large_is_not_called_full(),
        ["directed::switch_of_an_empty_buffer_does_nothing"] => {
            directed::switch_of_an_empty_buffer_does_nothing();
        }
        ["lifecycle::what_was_held_can_be_read_again"] => {
            lifecycle::what_was_held_can_be_read_again();
        }
        _ => unreachable!("no check {check}"),
    }
}
