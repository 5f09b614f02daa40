// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The restartable sequence for x86-64.

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
            "mov {offset}, [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, [rip + __rseq_size@GOTPCREL]",
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
            "mov {index:e}, fs:[{at}]",
            at = in(reg) at,
            index = out(reg) index,
            options(readonly, nostack, preserves_flags),
        );
    }
    index
}

/// One attempt. From label 2 to label 3 the kernel restarts the thread at label 4 if it was preempted, moved to another CPU,
/// or got a signal. The last instruction stores the head: before it the record does not exist. Returns 0: done, 1: no room,
/// 2: interrupted, 3: without rseq.
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
            "mov {area}, [{rings} + {AREA}]",
            "lea {at}, [rip + 9b]",
            "mov fs:[{area} + 8], {at}",
            "2:",
            "mov {result:e}, 3",
            "mov {cpu:e}, fs:[{area} + 4]",
            // Negative: this thread has no rseq.
            "test {cpu:e}, {cpu:e}",
            "js 8f",
            "mov {result:e}, 1",
            "mov {at}, [{rings} + {INDEX_AT}]",
            "mov {ring:e}, fs:[{at}]",
            "shl {ring}, 7",
            "add {ring}, [{rings} + {HEADERS}]",
            "mov {at}, [{ring} + {DATA}]",
            "test {at}, {at}",
            "jz 8f",
            "mov rdx, [{ring} + {HEAD}]",
            "lea {end}, [rdx + {len}]",
            "mov rax, {end}",
            "sub rax, [{ring} + {LIMIT}]",
            "jg 8f",
            "and rdx, [{rings} + {MASK}]",
            "add {at}, rdx",
            "rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            "mov [{at}], rax",
            "shl {cpu}, 48",
            "or {cpu}, {tag}",
            "mov [{at} + 8], {cpu}",
            "lea rdx, [{len} - 16]",
            "test rdx, rdx",
            "jz 6f",
            "5:",
            "mov rax, [{fields} + rdx - 8]",
            "mov [{at} + rdx + 8], rax",
            "sub rdx, 8",
            "jnz 5b",
            "6:",
            "mov [{ring} + {HEAD}], {end}",
            "3:",
            "xor {result:e}, {result:e}",
            "8:",
            "mov qword ptr fs:[{area} + 8], 0",
            ".pushsection __rseq_failure, \"ax\"",
            // The signature that the C library has registered.
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "4:",
            "mov {result:e}, 2",
            "jmp 8b",
            ".popsection",
            rings = in(reg) rings,
            fields = in(reg) fields,
            len = in(reg) len,
            tag = in(reg) tag,
            area = out(reg) _,
            cpu = out(reg) _,
            ring = out(reg) _,
            at = out(reg) _,
            end = out(reg) _,
            result = out(reg) result,
            out("rax") _,
            out("rdx") _,
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
