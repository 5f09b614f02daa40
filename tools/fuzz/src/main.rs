// SPDX-License-Identifier: GPL-2.0

//! Runs the target that `RTRACE_FUZZ_TARGET` names under libFuzzer, which parses the command line.

#![no_main]

use cap::Cap;
use fuzz::{find, Target};
use libfuzzer_sys::fuzz_target;
use std::alloc::System;
use std::sync::OnceLock;

/// Memory limit of a target in bytes: a constant, plus a multiple of the input's size.
const MEMORY: usize = 1 << 20;
const MEMORY_PER_BYTE: usize = 1 << 10;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

static TARGET: OnceLock<&Target> = OnceLock::new();

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var("RTRACE_FUZZ_TARGET").unwrap_or_default();
        find(&name).unwrap_or_else(|| panic!("RTRACE_FUZZ_TARGET: no target `{name}`"))
    })
}

fuzz_target!(|data: &[u8]| {
    let target = target();
    // An allocation beyond the limit fails, which ends the process.
    let limit = ALLOCATOR.allocated() + MEMORY + MEMORY_PER_BYTE * data.len();
    ALLOCATOR.set_limit(limit).expect("more than is in use");
    (target.check)(data);
    ALLOCATOR.set_limit(usize::MAX).expect("no limit");
});
