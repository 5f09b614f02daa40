// SPDX-License-Identifier: GPL-2.0

//! Files with code that a test chooses.

use super::made::{frame, Elf, Made, ALLOC, ARM64, COMPRESSED, X86_64};
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};
use rtrace_unwind::table::UnwindTable;
use std::io::Write;
use unwind::{compile, Error};

/// DW_CFA_def_cfa rsp, 8; DW_CFA_offset RA at CFA - 8.
const COMMON: &[u8] = &[0x0c, 7, 8, 0x90, 1];
/// DW_CFA_def_cfa sp, 0.
const COMMON_ARM: &[u8] = &[0x0c, 31, 0];

fn at(distance: i32, fp: FpRule) -> Rule {
    Rule::Caller(CallerRule {
        cfa: Cfa::Sp(distance),
        fp,
        ra: RaRule::AtCfa(-8),
        kept: 0,
    })
}

fn sp(distance: i32) -> Rule {
    at(distance, FpRule::Unchanged)
}

/// The rule of a function of arm64 that has pushed nothing.
const LEAF: Rule = Rule::Caller(CallerRule {
    cfa: Cfa::Sp(0),
    fp: FpRule::Unchanged,
    ra: RaRule::Register(30),
    kept: 0,
});

/// The bytes of these instructions.
fn code(instructions: &[u32]) -> Vec<u8> {
    let bytes = instructions.iter().map(|one| one.to_le_bytes());
    bytes.flatten().collect()
}

/// A file whose code has address 0x401000 to 0x403000 and is at offset 0x1000.
fn elf(machine: u16, functions: &[Made<'_>]) -> Elf {
    let common = if machine == ARM64 { COMMON_ARM } else { COMMON };
    let frame = frame(true, machine, common, functions);
    Elf {
        machine,
        entry: 0,
        segments: vec![(0x40_1000, 0x1000, 0x2000)],
        sections: vec![(".eh_frame", ALLOC, 0x40_3000, 0x3000, frame)],
        exports: vec![],
    }
}

/// The first offset and the rule of each range of equal rules from 0 to 0x4000.
fn ranges(elf: &Elf) -> Vec<(u64, Rule)> {
    let blob = compile(&elf.bytes()).unwrap();
    let table = UnwindTable::check(&blob).unwrap();
    let mut last = Rule::None;
    let mut ranges = Vec::new();
    for offset in 0..0x4000 {
        let rule = table.rule(offset);
        if rule != last {
            ranges.push((offset, rule));
        }
        last = rule;
    }
    ranges
}

#[test]
fn has_offsets_of_the_file() {
    let elf = elf(
        X86_64,
        &[(0x40_1100, 0x80, &[0x44, 0x0e, 16, 0x48, 0x0e, 8])],
    );
    let expected = [
        (0x1100, sp(8)),
        (0x1104, sp(16)),
        (0x110c, sp(8)),
        (0x1180, Rule::None),
    ];
    assert_eq!(ranges(&elf), expected);
}

#[test]
fn has_several_segments() {
    let functions: [Made<'_>; 4] = [
        (0x40_1100, 0x80, &[]),
        (0x50_0100, 0x80, &[0x0e, 16]),
        // Outside all segments, and beyond the end of one.
        (0x60_0100, 0x80, &[0x0e, 24]),
        (0x50_0ff0, 0x80, &[0x0e, 32]),
    ];
    let mut elf = elf(X86_64, &functions);
    // The higher address is at the lower offset.
    elf.segments = vec![(0x40_1000, 0x2000, 0x1000), (0x50_0000, 0x1000, 0x1000)];
    let expected = [
        (0x1100, sp(16)),
        (0x1180, Rule::None),
        (0x1ff0, sp(32)),
        (0x2000, Rule::None),
        (0x2100, sp(8)),
        (0x2180, Rule::None),
    ];
    assert_eq!(ranges(&elf), expected);
}

#[test]
fn takes_the_first_of_segments_that_overlap() {
    let mut elf = elf(X86_64, &[(0x40_1100, 0x80, &[])]);
    elf.segments.push((0x40_1000, 0x1800, 0x1000));
    elf.segments.push((0x50_1000, 0x1000, u64::MAX));
    assert_eq!(ranges(&elf), [(0x1100, sp(8)), (0x1180, Rule::None)]);
}

#[test]
fn continues_over_padding() {
    let functions: [Made<'_>; 4] = [
        (0x40_1100, 0x60, &[]),
        (0x40_1180, 0x1f, &[0x0e, 16]),
        (0x40_11c0, 0x10, &[0x0e, 24]),
        // A function inside another one does not count.
        (0x40_1184, 0x10, &[0x0e, 32]),
    ];
    let expected = [
        (0x1100, sp(8)),
        (0x1180, sp(16)),
        (0x119f, Rule::None),
        (0x11c0, sp(24)),
        (0x11d0, Rule::None),
    ];
    assert_eq!(ranges(&elf(X86_64, &functions)), expected);
}

#[test]
fn ends_where_the_return_address_is_undefined() {
    // DW_CFA_undefined.
    let elf86 = elf(X86_64, &[(0x40_1100, 0x80, &[0x07, 16])]);
    assert_eq!(ranges(&elf86), [(0x1100, Rule::End), (0x1180, Rule::None)]);
    let arm = elf(ARM64, &[(0x40_1100, 0x80, &[0x44, 0x07, 30])]);
    let expected = [(0x1100, LEAF), (0x1104, Rule::End), (0x1180, Rule::None)];
    assert_eq!(ranges(&arm), expected);
}

#[test]
fn knows_frames_of_arm64() {
    // stp x29, x30, [sp, #-32]!; mov x29, sp.
    let code = &[0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x0d, 29];
    let elf = elf(ARM64, &[(0x40_1100, 0x80, code)]);
    let rule = |cfa| {
        Rule::Caller(CallerRule {
            cfa,
            fp: FpRule::AtCfa(-32),
            ra: RaRule::AtCfa(-24),
            kept: 0,
        })
    };
    let ranges = ranges(&elf);
    assert_eq!(
        ranges[1..3],
        [(0x1104, rule(Cfa::Sp(32))), (0x1108, rule(Cfa::Fp(32)))]
    );
    let blob = compile(&elf.bytes()).unwrap();
    let table = UnwindTable::check(&blob).unwrap();
    assert_eq!(table.processor(), Processor::Arm64);
}

#[test]
fn does_not_take_what_longjmp_of_arm64_loads_for_a_stack() {
    // DW_CFA_def_cfa x0, 0; then x30 at CFA + 88, in x13, and in itself.
    let code = [
        0x44, 0x0c, 0, 0, 0x11, 30, 0x75, 0x44, 0x09, 30, 13, 0x44, 0x08, 30,
    ];
    let found = ranges(&elf(ARM64, &[(0x40_1100, 0x80, &code)]));
    assert_eq!(found[1..], [(0x1104, Rule::Other), (0x1180, Rule::None)]);
    // A register that has the stack pointer, before x30 is saved and after that.
    let code = [0x44, 0x0c, 12, 32, 0x44, 0x9e, 2];
    let rule = |ra| {
        Rule::Caller(CallerRule {
            cfa: Cfa::Register {
                number: 12,
                offset: 32,
            },
            fp: FpRule::Unchanged,
            ra,
            kept: 0,
        })
    };
    let expected = [
        (0x1104, rule(RaRule::Register(30))),
        (0x1108, rule(RaRule::AtCfa(-16))),
    ];
    let found = ranges(&elf(ARM64, &[(0x40_1100, 0x80, &code)]));
    assert_eq!(found[1..3], expected);
}

#[test]
fn counts_the_words_that_arm64_pushes_before_lazy_binding() {
    // DW_CFA_offset_extended_sf RA at CFA + 8; str x8, [sp, #-208]!.
    let code = &[0x11, 30, 0x7f, 0x44, 0x0e, 0xd0, 1];
    let expected = [(0x1100, sp(16)), (0x1104, sp(224)), (0x1180, Rule::None)];
    assert_eq!(ranges(&elf(ARM64, &[(0x40_1100, 0x80, code)])), expected);
}

#[test]
fn adds_the_linkage_table_of_arm64() {
    // bti c, or another instruction; stp x16, x30, [sp, #-16]!.
    let mut plt = vec![0x5f, 0x24, 3, 0xd5, 0xf0, 0x7b, 0xbf, 0xa9];
    plt.resize(64, 0x90);
    let mut elf = elf(ARM64, &[(0x40_1100, 0x80, &[])]);
    elf.sections.push((".plt", 6, 0x40_1000, 0x1000, plt));
    let expected = [
        (0x1000, LEAF),
        (0x1008, sp(16)),
        (0x1020, LEAF),
        (0x1040, Rule::None),
        (0x1100, LEAF),
        (0x1180, Rule::None),
    ];
    assert_eq!(ranges(&elf), expected);
    // Without the instruction that pushes, and for another processor.
    elf.sections[1].4[4] ^= 1;
    assert_eq!(ranges(&elf), expected[4..]);
    elf.sections[1].4[4] ^= 1;
    elf.machine = X86_64;
    assert_eq!(ranges(&elf)[0].0, 0x1100);
}

#[test]
fn finds_the_instructions_that_a_linker_of_arm64_has_moved() {
    let own = |distance| match LEAF {
        Rule::Caller(rule) => Rule::Caller(CallerRule {
            cfa: Cfa::Sp(distance),
            ..rule
        }),
        other => other,
    };
    let mut text = vec![0; 0x180];
    let mut put_jump = |from: usize, to: usize| {
        let distance = (to as i32 - from as i32) / 4;
        let jump = 0x1400_0000 | (distance as u32 & 0x3ff_ffff);
        text[from..from + 4].copy_from_slice(&jump.to_le_bytes());
    };
    // The instruction at 0xc is now at 0xc0. There is no jump to the one at 0xd0; the one at 0x90 is of no function.
    put_jump(0xc, 0xc0);
    put_jump(0xc4, 0x10);
    put_jump(0xd4, 0x14);
    put_jump(0x88, 0x90);
    put_jump(0x94, 0x8c);
    let functions: [Made<'_>; 2] = [
        (0x40_1100, 0x80, &[0x48, 0x0e, 32, 0x48, 0x0e, 16]),
        (0x40_1200, 0x80, &[]),
    ];
    let mut elf = elf(ARM64, &functions);
    elf.sections.push((".text", 6, 0x40_1100, 0x1100, text));
    let expected = [
        (0x1100, own(0)),
        (0x1108, own(32)),
        (0x1110, own(16)),
        (0x1180, Rule::None),
        (0x11c0, own(32)),
        (0x11c8, Rule::None),
        (0x1200, own(0)),
        (0x1280, Rule::None),
    ];
    assert_eq!(ranges(&elf), expected);
    elf.machine = X86_64;
    assert!(!ranges(&elf).iter().any(|(at, _)| *at == 0x11c0));
}

/// Instructions of arm64: stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16; ret.
const PUSH: u32 = 0xa9bf_7bfd;
const POP: u32 = 0xa8c1_7bfd;
const RET: u32 = 0xd65f_03c0;
const NOP: u32 = 0xd503_201f;

#[test]
fn adds_what_runs_at_begin_and_end_of_a_program_of_arm64() {
    let mut elf = elf(ARM64, &[(0x40_1100, 0x80, &[])]);
    // nop; push; mov x29, sp; bl 0x401080; pop; nop; ret.
    let init = [NOP, PUSH, 0x9100_03fd, 0x9400_001d, POP, NOP, RET];
    // adrp; ldr; cbz x0, +8; b; ret.
    let called = [0xb000_0000, 0xf944_0000, 0xb400_0040, 0x1700_0000, RET];
    elf.sections
        .push((".init", 6, 0x40_1000, 0x1000, code(&init)));
    elf.sections
        .push((".text", 6, 0x40_1080, 0x1080, code(&called)));
    let pushed = at(16, FpRule::AtCfa(-16));
    let expected = [
        (0x1000, LEAF),
        (0x1008, pushed),
        (0x1014, LEAF),
        (0x101c, Rule::None),
        (0x1080, LEAF),
        (0x1094, Rule::None),
        (0x1100, LEAF),
        (0x1180, Rule::None),
    ];
    assert_eq!(ranges(&elf), expected);
    // Other code is called.
    elf.sections[2].4[8] ^= 0x20;
    assert_eq!(ranges(&elf), [&expected[..4], &expected[6..]].concat());
    // It pops first.
    elf.sections[1].4 = code(&[POP, PUSH]);
    assert_eq!(ranges(&elf), expected[6..]);
}

#[test]
fn reads_the_instructions_of_the_vdso_of_arm64() {
    let mut text = vec![NOP; 0x100];
    let mut put = |at: usize, code: &[u32]| text[at / 4..at / 4 + code.len()].copy_from_slice(code);
    // cbz x0, 0x18; push; bl 0x80; pop; ret; (never runs); 0x18: tbnz w0, #0, 0x24; nop; ret; 0x24: b.eq 0x4; b 0x8.
    let branches = [
        0xb400_00c0,
        PUSH,
        0x9400_001e,
        POP,
        RET,
        NOP,
        0x3700_0060,
        NOP,
        RET,
        0x54ff_ff00,
        0x17ff_fff8,
    ];
    put(0, &branches);
    // sub sp, sp, #32; ret.
    put(0x80, &[NOP, 0xd100_83ff, RET]);
    // The return from a signal: mov x8, #139; svc #0.
    put(0xc0, &[0xd280_1168, 0xd400_0001]);
    let elf = Elf {
        machine: ARM64,
        entry: 0,
        segments: vec![(0, 0x1000, 0x1000)],
        sections: vec![(".text", 6, 0x100, 0x1100, code(&text))],
        exports: vec![("__kernel_rt_sigreturn", 0x1c0), ("__kernel_one", 0x100)],
    };
    let pushed = at(16, FpRule::AtCfa(-16));
    let expected = [
        (0x1100, LEAF),
        // After the push, and with the way from 0x28, which has pushed nothing.
        (0x1108, Rule::None),
        (0x1118, LEAF),
        (0x112c, Rule::None),
        (0x1180, LEAF),
        (0x1188, Rule::None),
        (0x11bc, Rule::Signal),
        (0x11cc, Rule::None),
    ];
    let mut elf = elf;
    assert_eq!(ranges(&elf), expected);
    // b 0x20 instead: the ways agree.
    elf.sections[0].4[0x28..0x2c].copy_from_slice(&0x17ff_fffe_u32.to_le_bytes());
    let found = ranges(&elf);
    assert_eq!(found[1..3], [(0x1108, pushed), (0x1110, LEAF)]);
    // Without the function by which the vDSO is known.
    elf.exports.remove(0);
    assert_eq!(ranges(&elf), []);
}

#[test]
fn stops_at_what_it_cannot_express() {
    // DW_CFA_def_cfa_expression of three constants; then one that gimli does not know.
    let code = &[0x44, 0x0f, 3, 0x30, 0x30, 0x22, 0x44, 0x0e, 16, 0x44, 0x3f];
    let elf = elf(X86_64, &[(0x40_1100, 0x80, code)]);
    let expected = [
        (0x1100, sp(8)),
        (0x1104, Rule::Other),
        (0x1108, sp(16)),
        (0x110c, Rule::Other),
        (0x1180, Rule::None),
    ];
    // DW_CFA_def_cfa_offset after an expression is an error, which ends the rules.
    assert_eq!(ranges(&elf), [&expected[..2], &expected[4..]].concat());
}

#[test]
fn follows_a_register_only_where_a_rule_needs_it() {
    // rbx at CFA - 16.
    let saved: Made<'_> = (0x40_1100, 0x20, &[0x83, 2]);
    assert_eq!(ranges(&elf(X86_64, &[saved]))[0], (0x1100, sp(8)));
    // DW_CFA_def_cfa rbx, 8.
    let needs: Made<'_> = (0x40_1120, 0x20, &[0x0c, 3, 8]);
    let kept = Rule::Caller(CallerRule {
        cfa: Cfa::Sp(8),
        fp: FpRule::Unchanged,
        ra: RaRule::AtCfa(-8),
        kept: -16,
    });
    assert_eq!(ranges(&elf(X86_64, &[saved, needs]))[0], (0x1100, kept));
}

#[test]
fn reads_debug_frame_too() {
    let functions: [Made<'_>; 1] = [(0x40_1100, 0x80, &[0x0e, 16])];
    let contents = frame(false, X86_64, COMMON, &functions);
    let expected = [(0x1100, sp(16)), (0x1180, Rule::None)];
    let mut elf = elf(X86_64, &[]);
    elf.sections = vec![(".debug_frame", 0, 0, 0x3000, contents.clone())];
    assert_eq!(ranges(&elf), expected);

    let size = contents.len() as u64;
    let mut packed: Vec<u8> = [1_u64, size, 1]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    let level = flate2::Compression::default();
    let mut encoder = flate2::write::ZlibEncoder::new(&mut packed, level);
    encoder.write_all(&contents).unwrap();
    encoder.finish().unwrap();
    elf.sections = vec![(".debug_frame", COMPRESSED, 0, 0x3000, packed.clone())];
    assert_eq!(ranges(&elf), expected);

    // A size that no compression reaches.
    packed[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    elf.sections = vec![(".debug_frame", COMPRESSED, 0, 0x3000, packed)];
    let error = compile(&elf.bytes()).unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text,
        "cannot read the section .debug_frame: it is too large"
    );
}

#[test]
fn is_empty_without_rules() {
    let blob = compile(&elf(X86_64, &[]).bytes()).unwrap();
    let table = UnwindTable::check(&blob).unwrap();
    assert_eq!((table.head().rows, table.head().rules), (0, 0));
    assert_eq!(table.rule(0x1100), Rule::None);
}

#[test]
fn adds_the_sections_of_the_c_library() {
    let init = [
        &[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8][..],
        &[0x90; 16],
        &[0x48, 0x83, 0xc4, 8, 0xc3],
    ]
    .concat();
    let fini = init[4..].to_vec();
    let mut elf = elf(X86_64, &[(0x40_1100, 0x80, &[])]);
    elf.sections.push((".init", 6, 0x40_1000, 0x1000, init));
    elf.sections.push((".fini", 6, 0x40_2000, 0x2000, fini));
    let expected = [
        (0x1000, sp(8)),
        (0x1008, sp(16)),
        (0x101c, sp(8)),
        (0x101d, Rule::None),
        (0x1100, sp(8)),
        (0x1180, Rule::None),
        (0x2000, sp(8)),
        (0x2004, sp(16)),
        (0x2018, sp(8)),
        (0x2019, Rule::None),
    ];
    assert_eq!(ranges(&elf), expected);
    // Other instructions.
    for (at, section) in [(7, 1), (28, 1), (3, 2)] {
        elf.sections[section].4[at] ^= 1;
    }
    assert_eq!(ranges(&elf), [(0x1100, sp(8)), (0x1180, Rule::None)]);
}

/// Code as that of crtstuff: 32 bytes, and then `__do_global_dtors_aux`.
fn crtstuff() -> Vec<u8> {
    let mut code = vec![0x90; 32];
    code.extend([
        0x80, 0x3d, 1, 2, 3, 4, 0, 0x75, 0x2b, 0x55, 0x48, 0x89, 0xe5,
    ]);
    code.extend([0x90; 16]);
    code.extend([0x5d, 0xc3]);
    code.resize(128, 0x90);
    code
}

#[test]
fn adds_the_code_of_shared_objects() {
    let rows = |base: u64| {
        [
            (base, sp(8)),
            (base + 42, at(16, FpRule::AtCfa(-16))),
            (base + 62, sp(8)),
        ]
    };
    // Before the first function.
    let mut text = crtstuff();
    text.resize(0x1000, 0);
    let mut elf = elf(X86_64, &[(0x40_1080, 0x80, &[0x0e, 16])]);
    elf.sections
        .push((".text", 6, 0x40_1000, 0x1000, text.clone()));
    let after = [(0x1080, sp(16)), (0x1100, Rule::None)];
    assert_eq!(ranges(&elf), [&rows(0x1000)[..], &after].concat());

    // Other code there.
    elf.sections[1].4[32] = 0;
    assert_eq!(ranges(&elf), [&[(0x1000, sp(8))][..], &after].concat());
    // The entry ends the stack.
    elf.entry = 0x40_1000;
    assert_eq!(ranges(&elf), [&[(0x1000, Rule::End)][..], &after].concat());
    // Too much code.
    elf.entry = 0;
    elf.sections[0].4 = frame(true, X86_64, COMMON, &[(0x40_1400, 0x80, &[0x0e, 16])]);
    assert_eq!(ranges(&elf), [(0x1400, sp(16)), (0x1480, Rule::None)]);

    // Between functions only if it is crtstuff.
    let functions: [Made<'_>; 2] = [
        (0x40_0f80, 0x80, &[0x0e, 24]),
        (0x40_1080, 0x80, &[0x0e, 16]),
    ];
    elf.segments = vec![(0x40_0f80, 0xf80, 0x2000)];
    elf.sections[0].4 = frame(true, X86_64, COMMON, &functions);
    elf.sections[1] = (".text", 6, 0x40_0f80, 0xf80, [vec![0; 128], text].concat());
    let before = [(0xf80, sp(24))];
    assert_eq!(ranges(&elf), [&before[..], &rows(0x1000), &after].concat());
    elf.sections[1].4[128 + 32] = 0;
    let without = [&before[..], &[(0x1000, Rule::None)], &after].concat();
    assert_eq!(ranges(&elf), without);
}

#[test]
fn ends_at_the_entry() {
    for machine in [X86_64, ARM64] {
        let mut elf = elf(machine, &[(0x40_1100, 0x80, &[])]);
        elf.entry = 0x40_10f0;
        assert_eq!(ranges(&elf)[0], (0x10f0, Rule::End));
        assert_eq!(ranges(&elf)[1].0, 0x1100);
        // The code at the entry has 512 bytes at most.
        elf.entry = 0x40_1800;
        let ranges_after = ranges(&elf);
        assert_eq!(
            ranges_after[2..],
            [(0x1800, Rule::End), (0x1a00, Rule::None)]
        );
        // The entry has a rule, or is in no segment.
        for entry in [0x40_1110, 0x50_0000] {
            elf.entry = entry;
            assert_eq!(ranges(&elf).len(), 2);
        }
    }
}

#[test]
fn refuses_other_files() {
    let text = |bytes: &[u8]| compile(bytes).unwrap_err().to_string();
    assert!(text(&[]).starts_with("this is no valid ELF file: "));
    assert!(text(&[0; 64]).starts_with("this is no valid ELF file: "));
    let mut bytes = elf(X86_64, &[]).bytes();
    bytes[4] = 1;
    assert_eq!(text(&bytes), "32-bit programs have no unwind tables");
    bytes[4] = 2;
    bytes[5] = 2;
    assert!(text(&bytes).starts_with("this is no valid ELF file: "));
    bytes[5] = 1;
    bytes[18] = 22;
    assert_eq!(
        text(&bytes),
        "the file is for a processor without unwind tables"
    );
    bytes[18] = 62;
    assert!(compile(&bytes).is_ok());
    assert!(text(&bytes[..100]).starts_with("this is no valid ELF file: "));
}

/// Many functions that refer to one long common entry would take a long time.
#[test]
fn refuses_endless_work() {
    let common = [COMMON, &[0; 1 << 16]].concat();
    let functions: Vec<Made<'_>> = (0..1000)
        .map(|number| (0x40_1000 + number, 1, &[][..]))
        .collect();
    let mut elf = elf(X86_64, &[]);
    let mut with = |functions: &[Made<'_>]| {
        elf.sections[0].4 = frame(true, X86_64, &common, functions);
        compile(&elf.bytes()).map(|_| ())
    };
    assert!(with(&functions[..10]).is_ok());
    assert!(matches!(with(&functions), Err(Error::Work)));
}
