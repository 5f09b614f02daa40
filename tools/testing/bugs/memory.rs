// SPDX-License-Identifier: GPL-2.0

//! Memory bugs in Rust: they show that KASAN checks Rust code.

use core::ptr;
use kernel::prelude::*;

const WORDS: usize = 9;

/// Reads a word of the heap after it was freed.
#[no_mangle]
pub extern "C" fn rtrace_bug_use_after_free() {
    let Ok(words) = KBox::new([0u64; WORDS], GFP_KERNEL) else {
        return;
    };
    let word: *const u64 = &words[1];
    drop(words);
    // SAFETY: None: this is the bug.
    unsafe { ptr::read_volatile(word) };
}

/// Writes after the end of an area of the kind that contains the ring's buffers.
#[no_mangle]
pub extern "C" fn rtrace_bug_out_of_bounds() {
    let Ok(mut words) = VBox::new([0u64; WORDS], GFP_KERNEL) else {
        return;
    };
    let behind = words.as_mut_ptr().wrapping_add(WORDS);
    // SAFETY: None: this is the bug.
    unsafe { ptr::write_volatile(behind, 1) };
}
