// SPDX-License-Identifier: GPL-2.0

//! The unwind information of a program or library: an ELF file, or its call frame information in a file around it.

use crate::made_elf::{Elf, ALLOC, ARM64, COMPRESSED, X86_64};
use rtrace_unwind::rule::Rule;
use rtrace_unwind::table::UnwindTable;

/// Bits of the first byte. Without one of them, the other bytes are the file.
const EH_FRAME: u8 = 1;
const DEBUG_FRAME: u8 = 2;
const ARM: u8 = 4;
const ENTRY: u8 = 8;
const PACKED: u8 = 16;

pub fn check(data: &[u8]) {
    let [kind, rest @ ..] = data else { return };
    match kind & (EH_FRAME | DEBUG_FRAME) {
        0 => check_file(rest),
        _ => check_file(&around(*kind, rest)),
    }
}

/// A file with this call frame information, whose code has the addresses 0x1000 to 0x3000, and 0x41000 to 0x51000.
pub fn around(kind: u8, frame: &[u8]) -> Vec<u8> {
    let name = if kind & EH_FRAME != 0 {
        ".eh_frame"
    } else {
        ".debug_frame"
    };
    let packed = if kind & PACKED != 0 { COMPRESSED } else { 0 };
    let text = frame.iter().copied().cycle().take(0x100).collect();
    Elf {
        machine: if kind & ARM != 0 { ARM64 } else { X86_64 },
        entry: if kind & ENTRY != 0 { 0x1010 } else { 0 },
        segments: vec![(0x1000, 0x400, 0x2000), (0x4_1000, 0x2400, 0x1_0000)],
        sections: vec![
            (".text", 6, 0x1000, 0x400, text),
            (name, ALLOC | packed, 0x4000, 0x500, frame.to_vec()),
        ],
        exports: vec![],
    }
    .bytes()
}

fn check_file(file: &[u8]) {
    let table = match unwind::compile(file) {
        Ok(table) => table,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{text}");
            return;
        }
    };
    let checked = UnwindTable::check(&table).expect("what the compiler makes");
    let head = checked.head();
    assert_eq!(head.needed_size(), table.len() as u64);
    // A row needs two bytes of instructions.
    assert!(head.rows as usize <= 1000 + 1024 * file.len());
    let end = file.len() as u64;
    assert_eq!(checked.rule(end), Rule::None);
    for offset in (0..end).step_by(61) {
        let again = UnwindTable::of_checked(&table).expect("a checked table");
        assert_eq!(again.rule(offset), checked.rule(offset));
    }
}
