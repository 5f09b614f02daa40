// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The restartable sequence for arm64.

use super::{Header, Rings};
use std::arch::asm;
use std::mem::offset_of;

/// Offsets from the thread pointer: of the C library's rseq area, and of the ring's index there. [`None`]: the library has
/// no such area.
pub(super) fn area() -> Option<(i64, i64)> {
    let (offset, size): (*const i64, *const u32);
    // SAFETY: Loads addresses. A symbol that the C library does not have has the address null.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nomem, nostack, preserves_flags, pure),
        );
    }
    super::area_at(offset, size)
}

/// The index of the ring that this thread would use now.
pub(super) fn index(at: i64) -> u32 {
    let index: u32;
    // SAFETY: `area` has returned the offset, so each thread has this word.
    unsafe {
        asm!(
            "mrs {thread}, tpidr_el0",
            "ldr {index:w}, [{thread}, {at}]",
            at = in(reg) at,
            thread = out(reg) _,
            index = lateout(reg) index,
            options(readonly, nostack, preserves_flags),
        );
    }
    index
}

/// One attempt. From label 2 to label 3 the kernel restarts the thread at label 4 if it was preempted, moved to another CPU,
/// or got a signal. The last instruction stores the head, after all other stores: before it the record does not exist.
/// Returns 0: done, 1: no room, 2: interrupted, 3: without rseq.
///
/// The stores of a record follow the load of the limit by control dependency, so the module has read what was there
/// before. The module loads the head before it reads the record. If another CPU wrote the ring before, the kernel's switch
/// of tasks has ordered its stores before this.
///
/// # Safety
///
/// - `rings` has headers; those that have a ring point to its mapping, which shows the ring twice.
/// - `fields` has `len - 16` bytes; `len` is a multiple of 8 from 16 to 1,024.
#[inline(always)]
pub(super) unsafe fn attempt(rings: &Rings, fields: *const u8, len: u64, tag: u64) -> u32 {
    let result: u32;
    // SAFETY: The caller ensures that all addresses are valid. The kernel jumps only to label 4. The area no longer points
    // to this code when it is left, because it may be unmapped then (dlclose).
    unsafe {
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "9:",
            ".long 0, 0",
            ".quad 2f, 3f - 2f, 4f",
            ".popsection",
            "mrs {thread}, tpidr_el0",
            "ldr {at}, [{rings}, {AREA}]",
            "add {area}, {thread}, {at}",
            "adrp {at}, 9b",
            "add {at}, {at}, :lo12:9b",
            "str {at}, [{area}, 8]",
            "2:",
            "mov {result:w}, 3",
            "ldr {cpu:w}, [{area}, 4]",
            // Negative: this thread has no rseq.
            "tbnz {cpu:w}, 31, 8f",
            "mov {result:w}, 1",
            "ldr {at}, [{rings}, {INDEX_AT}]",
            "ldr {end:w}, [{thread}, {at}]",
            "ldr {ring}, [{rings}, {HEADERS}]",
            "add {ring}, {ring}, {end}, lsl 7",
            "ldr {at}, [{ring}, {DATA}]",
            "cbz {at}, 8f",
            "ldr {word}, [{ring}, {HEAD}]",
            "add {end}, {word}, {len}",
            "ldr {left}, [{ring}, {LIMIT}]",
            "subs {left}, {end}, {left}",
            "b.gt 8f",
            "ldr {left}, [{rings}, {MASK}]",
            "and {word}, {word}, {left}",
            "add {at}, {at}, {word}",
            // Not before the end of the previous record.
            "isb",
            "mrs {word}, cntvct_el0",
            "orr {cpu}, {tag}, {cpu}, lsl 48",
            "stp {word}, {cpu}, [{at}]",
            "subs {left}, {len}, 16",
            "b.eq 6f",
            "add {at}, {at}, 16",
            "5:",
            "sub {left}, {left}, 8",
            "ldr {word}, [{fields}, {left}]",
            "str {word}, [{at}, {left}]",
            "cbnz {left}, 5b",
            "6:",
            "stlr {end}, [{ring}]",
            "3:",
            "mov {result:w}, 0",
            "8:",
            "str xzr, [{area}, 8]",
            ".pushsection __rseq_failure, \"ax\"",
            // The signature that the C library has registered.
            ".inst 0xd428bc00",
            "4:",
            "mov {result:w}, 2",
            "b 8b",
            ".popsection",
            rings = in(reg) rings,
            fields = in(reg) fields,
            len = in(reg) len,
            tag = in(reg) tag,
            thread = out(reg) _,
            area = out(reg) _,
            cpu = out(reg) _,
            ring = out(reg) _,
            at = out(reg) _,
            end = out(reg) _,
            word = out(reg) _,
            left = out(reg) _,
            result = out(reg) result,
            AREA = const offset_of!(Rings, area),
            INDEX_AT = const offset_of!(Rings, index_at),
            HEADERS = const offset_of!(Rings, headers),
            MASK = const offset_of!(Rings, mask),
            HEAD = const offset_of!(Header, head),
            DATA = const offset_of!(Header, data),
            LIMIT = const offset_of!(Header, limit),
            options(nostack),
        );
    }
    result
}
