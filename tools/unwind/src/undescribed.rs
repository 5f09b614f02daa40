// SPDX-License-Identifier: GPL-2.0

//! Rules of code that programs have, and that `.eh_frame` does not describe.
//!
//! | code | of | rule |
//! | --- | --- | --- |
//! | `.init`, `.fini` | both | that of their instructions |
//! | begin and end of shared objects (crtstuff) | x86-64 | that of their instructions |
//! | code before the first function of `.text` | x86-64 | return address at the stack pointer |
//! | the function that `.init` calls | arm64 | return address in its register |
//! | code at the entry of a program | both | end of the stack |
//! | `.plt` | arm64 | that of its instructions |
//! | an instruction that the linker has moved | arm64 | that of its former place |
//! | the vDSO ([`vdso`]) | arm64 | that of its instructions |

use crate::elf::{ElfCode, Section};
use crate::frames::Function;
use crate::vdso::{self, CALL, JUMP, LEAF};
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};

/// Maximum size of code before the first function of `.text`.
const MAX_BEGIN: u64 = 1024;
/// Size of the first entry of a procedure linkage table of arm64.
const FIRST_OF_PLT: usize = 32;
/// Maximum size of the code at an entry, and of crtstuff.
const MAX_CODE: u64 = 512;

/// Adds rules to the functions of a file, which are in order.
pub fn add(code: &ElfCode<'_>, functions: &mut Vec<Function>) {
    let mut more = Vec::new();
    if code.processor == Processor::X86_64 && !functions.is_empty() {
        more.extend(fixed(code, functions, ".init"));
        more.extend(fixed(code, functions, ".fini"));
        if let Ok(Some(text)) = code.section(".text") {
            crtstuff(code, functions, &text, &mut more);
        }
    }
    if !functions.is_empty() {
        more.extend(entry(code, functions));
    }
    if code.processor == Processor::Arm64 {
        if functions.is_empty() {
            more.extend(vdso::functions(code));
        }
        more.extend(linkage_table(code, functions));
        more.extend(pushing(code, functions, ".init"));
        more.extend(pushing(code, functions, ".fini"));
        if let Ok(Some(text)) = code.section(".text") {
            more.extend(called(code, functions, &text));
            more.extend(moved(functions, &text));
        }
    }
    if !more.is_empty() {
        functions.extend(more);
        functions.sort_by_key(|function| function.begin);
    }
}

/// The caller's rule with the CFA at this distance from the stack pointer, and the return address in the word below it.
fn at(distance: i32, fp: FpRule) -> Rule {
    Rule::Caller(CallerRule {
        cfa: Cfa::Sp(distance),
        fp,
        ra: RaRule::AtCfa(-8),
        kept: 0,
    })
}

/// Whether a function has this address.
fn is_described(functions: &[Function], address: u64) -> bool {
    let after = functions.partition_point(|function| function.begin <= address);
    let before = after.checked_sub(1).and_then(|last| functions.get(last));
    before.is_some_and(|function| address < function.end)
}

/// The begin of the first function after an address, but at most `limit`.
fn next(functions: &[Function], address: u64, limit: u64) -> u64 {
    let after = functions.partition_point(|function| function.begin <= address);
    let next = functions.get(after).map_or(limit, |next| next.begin);
    next.min(limit)
}

/// The section `.init` or `.fini`: `[endbr64] sub $8, %rsp ... add $8, %rsp; ret`.
fn fixed(code: &ElfCode<'_>, functions: &[Function], name: &'static str) -> Option<Function> {
    let section = code.section(name).ok()??;
    let bytes = &*section.bytes;
    let body = bytes
        .strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa])
        .unwrap_or(bytes);
    let is_known =
        body.starts_with(&[0x48, 0x83, 0xec, 8]) && body.ends_with(&[0x48, 0x83, 0xc4, 8, 0xc3]);
    let begin = section.address;
    let end = begin.checked_add(bytes.len() as u64)?;
    if !is_known || is_described(functions, begin) {
        return None;
    }
    let pushed = end - body.len() as u64 + 4;
    let rule = |distance| at(distance, FpRule::Unchanged);
    Some(Function {
        begin,
        end: next(functions, begin, end),
        rows: vec![(begin, rule(8)), (pushed, rule(16)), (end - 1, rule(8))],
    })
}

/// The parts of a section between its functions, before the first and after the last one.
fn gaps(functions: &[Function], section: &Section<'_>) -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let mut last = section.address;
    let Some(end) = last.checked_add(section.bytes.len() as u64) else {
        return gaps;
    };
    let first = functions.partition_point(|function| function.begin < section.address);
    for function in functions.get(first..).unwrap_or_default() {
        if function.begin >= end {
            break;
        }
        if function.begin > last {
            gaps.push((last, function.begin));
        }
        last = last.max(function.end);
    }
    if last > section.address && last < end {
        gaps.push((last, end));
    }
    gaps
}

/// Adds the rules of the gaps of `.text` that have crtstuff's code, and of the code before the first function.
fn crtstuff(
    code: &ElfCode<'_>,
    functions: &[Function],
    text: &Section<'_>,
    more: &mut Vec<Function>,
) {
    let simple = at(8, FpRule::Unchanged);
    for (begin, end) in gaps(functions, text) {
        let size = end - begin;
        let bytes = text.bytes_at(begin).filter(|_| size < MAX_CODE);
        let code_of_gap = bytes.and_then(|bytes| bytes.get(..size as usize));
        let is_first = begin == text.address;
        let mut rows = vec![(begin, simple)];
        match code_of_gap.and_then(destructors) {
            Some((from, to)) => {
                rows.push((begin + from as u64, at(16, FpRule::AtCfa(-16))));
                rows.push((begin + to as u64, simple));
            }
            None if is_first && size < MAX_BEGIN && code.entry != begin => {}
            None => continue,
        }
        more.push(Function { begin, end, rows });
    }
}

/// The part of `__do_global_dtors_aux` that has pushed the frame pointer: offsets of its begin and end.
///
/// The code is `cmpb $0, completed(%rip); jne; push %rbp; ...; pop %rbp; ret`.
fn destructors(code: &[u8]) -> Option<(usize, usize)> {
    let compare = |bytes: &[u8]| matches!(bytes, [0x80, 0x3d, _, _, _, _, 0, 0x75, _, 0x55]);
    let from = code.windows(10).position(compare)? + 10;
    let rest = code.get(from..)?;
    let to = rest.windows(2).position(|bytes| bytes == [0x5d, 0xc3])?;
    Some((from, from + to + 1))
}

/// The code at the entry, which has no caller.
fn entry(code: &ElfCode<'_>, functions: &[Function]) -> Option<Function> {
    let begin = code.entry;
    let segment = code
        .segments
        .iter()
        .find(|segment| (segment.address..segment.end()).contains(&begin))?;
    if is_described(functions, begin) {
        return None;
    }
    let limit = segment.end().min(begin.saturating_add(MAX_CODE));
    Some(Function {
        begin,
        end: next(functions, begin, limit),
        rows: vec![(begin, Rule::End)],
    })
}

/// The procedure linkage table of arm64. Its first entry begins with `[bti c] stp x16, x30, [sp, #-16]!`, and ends with a
/// jump to the dynamic linker. The others jump to functions, and leave the return address in its register.
fn linkage_table(code: &ElfCode<'_>, functions: &[Function]) -> Option<Function> {
    let section = code.section(".plt").ok()??;
    let begin = section.address;
    let end = begin.checked_add(section.bytes.len() as u64)?;
    let pushed = behind(section.bytes.get(..FIRST_OF_PLT)?, 0xa9bf_7bf0)?;
    if is_described(functions, begin) {
        return None;
    }
    Some(Function {
        begin,
        end: next(functions, begin, end),
        rows: vec![
            (begin, LEAF),
            (begin + pushed, at(16, FpRule::Unchanged)),
            (begin + FIRST_OF_PLT as u64, LEAF),
        ],
    })
}

/// The section `.init` or `.fini` of arm64: `... stp x29, x30, [sp, #-16]! ... ldp x29, x30, [sp], #16 ...`.
fn pushing(code: &ElfCode<'_>, functions: &[Function], name: &'static str) -> Option<Function> {
    let section = code.section(name).ok()??;
    let begin = section.address;
    let end = begin.checked_add(section.bytes.len() as u64)?;
    let pushed = behind(&section.bytes, 0xa9bf_7bfd)?;
    let popped = behind(&section.bytes, 0xa8c1_7bfd).filter(|popped| *popped > pushed)?;
    if is_described(functions, begin) {
        return None;
    }
    Some(Function {
        begin,
        end: next(functions, begin, end),
        rows: vec![
            (begin, LEAF),
            (begin + pushed, at(16, FpRule::AtCfa(-16))),
            (begin + popped, LEAF),
        ],
    })
}

/// The function that `.init` of arm64 calls: `adrp; ldr; cbz; b __gmon_start__; ret`. It pushes nothing.
fn called(code: &ElfCode<'_>, functions: &[Function], text: &Section<'_>) -> Option<Function> {
    const SIZE: usize = 20;
    let init = code.section(".init").ok()??;
    let end = init.address.checked_add(init.bytes.len() as u64)?;
    let begin = (init.address..end)
        .step_by(4)
        .find_map(|address| jump(&init, address, CALL))?;
    let bytes = text.bytes_at(begin)?.get(..SIZE)?;
    let is_known = behind(bytes, 0xb400_0040) == Some(12) && behind(bytes, 0xd65f_03c0) == Some(20);
    (is_known && !is_described(functions, begin)).then(|| Function {
        begin,
        end: begin + SIZE as u64,
        rows: vec![(begin, LEAF)],
    })
}

/// The offset behind the first of these instructions of arm64 that is this one.
fn behind(code: &[u8], instruction: u32) -> Option<u64> {
    let mut instructions = code.chunks_exact(4);
    let at = instructions.position(|bytes| bytes == instruction.to_le_bytes())?;
    Some(4 * (at as u64 + 1))
}

/// The instructions that a linker has moved between functions, because of an erratum of the Cortex-A53.
///
/// Behind such an instruction is a jump to the one after its former place. At that place is a jump to it.
fn moved(functions: &[Function], text: &Section<'_>) -> Vec<Function> {
    let moved = |begin: u64| {
        let back = jump(text, begin.checked_add(4)?, JUMP)?;
        let former = back.checked_sub(4)?;
        let rule = rule(functions, former)?;
        if jump(text, former, JUMP) != Some(begin) {
            return None;
        }
        Some(Function {
            begin,
            end: begin + 8,
            rows: vec![(begin, rule)],
        })
    };
    let gaps = gaps(functions, text).into_iter();
    gaps.flat_map(|(begin, end)| (begin..end).step_by(4))
        .filter_map(moved)
        .collect()
}

/// Where the instruction of arm64 at an address leads, if its operation is this one.
fn jump(section: &Section<'_>, address: u64, operation: u32) -> Option<u64> {
    let instruction = section.instruction(address);
    let instruction = instruction.filter(|instruction| instruction >> 26 == operation)?;
    vdso::target(instruction, address)
}

/// The rule that a function has at an address.
fn rule(functions: &[Function], address: u64) -> Option<Rule> {
    let after = functions.partition_point(|function| function.begin <= address);
    let function = functions.get(after.checked_sub(1)?)?;
    let rows = function
        .rows
        .get(..function.rows.partition_point(|(at, _)| *at <= address))?;
    rows.last()
        .map(|(_, rule)| *rule)
        .filter(|_| address < function.end)
}
