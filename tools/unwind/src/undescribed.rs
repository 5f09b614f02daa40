// SPDX-License-Identifier: GPL-2.0

//! Rules of code that programs have, and that `.eh_frame` does not describe.
//!
//! | code | of | rule |
//! | --- | --- | --- |
//! | `.init`, `.fini` | x86-64 | that of their instructions |
//! | begin and end of shared objects (crtstuff) | x86-64 | that of their instructions |
//! | code before the first function of `.text` | x86-64 | return address at the stack pointer |
//! | code at the entry of a program | both | end of the stack |
//! | `.plt` | arm64 | that of its instructions |
//! | `__kernel_rt_sigreturn` of the vDSO | arm64 | signal |

use crate::elf::{ElfCode, Section};
use crate::frames::Function;
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
        more.extend(vdso(code, functions));
        more.extend(linkage_table(code, functions));
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

/// Adds the rules of the gaps of `.text` that have crtstuff's code, and of the code before the first function.
fn crtstuff(
    code: &ElfCode<'_>,
    functions: &[Function],
    text: &Section<'_>,
    more: &mut Vec<Function>,
) {
    let Some(end) = text.address.checked_add(text.bytes.len() as u64) else {
        return;
    };
    let simple = at(8, FpRule::Unchanged);
    let mut add = |begin: u64, end: u64, is_first: bool| {
        let size = end - begin;
        let inside = |address: u64| usize::try_from(address - text.address).ok();
        let (Some(from), Some(to)) = (inside(begin), inside(end)) else {
            return;
        };
        let code_of_gap = text.bytes.get(from..to).filter(|_| size < MAX_CODE);
        let mut rows = vec![(begin, simple)];
        match code_of_gap.and_then(destructors) {
            Some((from, to)) => {
                rows.push((begin + from as u64, at(16, FpRule::AtCfa(-16))));
                rows.push((begin + to as u64, simple));
            }
            None if is_first && size < MAX_BEGIN && code.entry != begin => {}
            None => return,
        }
        more.push(Function { begin, end, rows });
    };
    let mut last = text.address;
    let first = functions.partition_point(|function| function.begin < text.address);
    for function in functions.get(first..).unwrap_or_default() {
        if function.begin >= end {
            break;
        }
        if function.begin > last {
            add(last, function.begin, last == text.address);
        }
        last = last.max(function.end);
    }
    if last > text.address && last < end {
        add(last, end, false);
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
    const PUSH: [u8; 4] = 0xa9bf_7bf0_u32.to_le_bytes();
    let section = code.section(".plt").ok()??;
    let begin = section.address;
    let end = begin.checked_add(section.bytes.len() as u64)?;
    let mut instructions = section.bytes.get(..FIRST_OF_PLT)?.chunks_exact(4);
    let push = instructions.position(|instruction| instruction == PUSH)?;
    if is_described(functions, begin) {
        return None;
    }
    let jump = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(0),
        fp: FpRule::Unchanged,
        ra: RaRule::Register(30),
        kept: 0,
    });
    let pushed = begin + 4 * (push as u64 + 1);
    Some(Function {
        begin,
        end: next(functions, begin, end),
        rows: vec![
            (begin, jump),
            (pushed, at(16, FpRule::Unchanged)),
            (begin + FIRST_OF_PLT as u64, jump),
        ],
    })
}

/// The return from a signal, two instructions of the vDSO. The address before it counts too: it is looked up for a
/// return address.
fn vdso(code: &ElfCode<'_>, functions: &[Function]) -> Option<Function> {
    let address = code.exported("__kernel_rt_sigreturn")?;
    let (begin, end) = (address.checked_sub(4)?, address.checked_add(8)?);
    if is_described(functions, address) {
        return None;
    }
    Some(Function {
        begin,
        end,
        rows: vec![(begin, Rule::Signal)],
    })
}
