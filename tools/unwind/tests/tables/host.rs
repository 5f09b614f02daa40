// SPDX-License-Identifier: GPL-2.0

//! The programs and libraries of this machine, and those in `RTRACE_UNWIND_FILES` (names separated by colons).

use super::truth::{caller, Registers, Words, SP};
use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, LittleEndian, RegisterRule, UnwindContext,
    UnwindSection, Vendor,
};
use object::{Object, ObjectSection, ObjectSegment};
use rtrace_unwind::end::StackEnd;
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::{CallerRule, FpRule, Rule};
use rtrace_unwind::step::{step, UnwindFrame};
use rtrace_unwind::table::UnwindTable;

/// Files that most machines have. The dynamic linker and the C library have the rarest rules.
const FILES: [&str; 11] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib64/libc.so.6",
    "/usr/lib64/libcrypto.so.3",
    "/bin/bash",
    "/usr/bin/python3",
    "/usr/bin/perl",
];

fn files() -> Vec<(String, Vec<u8>)> {
    let more = std::env::var("RTRACE_UNWIND_FILES").unwrap_or_default();
    let own = std::env::current_exe().unwrap_or_default();
    let own = own.to_string_lossy();
    FILES
        .into_iter()
        .chain([&*own])
        .chain(more.split(':').filter(|name| !name.is_empty()))
        .filter_map(|name| Some((name.to_owned(), std::fs::read(name).ok()?)))
        .collect()
}

/// Numbers of addresses.
#[derive(Debug, Default)]
struct Counts {
    rows: u64,
    asked: u64,
    /// Rules that tables cannot express.
    other: u64,
    /// Frame pointers that tables lose.
    lost: u64,
}

/// Compares each row at its first, middle and last address. gimli finds the row through `.eh_frame_hdr`, which the
/// compiler does not read.
fn compare(bytes: &[u8]) -> Counts {
    let elf = object::File::parse(bytes).unwrap();
    let processor = match elf.architecture() {
        object::Architecture::Aarch64 => Processor::Arm64,
        _ => Processor::X86_64,
    };
    let blob = unwind::compile(bytes).unwrap();
    let table = UnwindTable::check(&blob).unwrap();
    assert_eq!(table.processor(), processor);

    let mut bases = BaseAddresses::default();
    let mut data = |name: &str, set: fn(BaseAddresses, u64) -> BaseAddresses| {
        let section = elf.section_by_name(name)?;
        bases = set(bases.clone(), section.address());
        section.data().ok()
    };
    data(".text", BaseAddresses::set_text);
    data(".got", BaseAddresses::set_got);
    let frame = data(".eh_frame", BaseAddresses::set_eh_frame).unwrap();
    let header = data(".eh_frame_hdr", BaseAddresses::set_eh_frame_hdr).unwrap();
    let mut frame = EhFrame::new(frame, LittleEndian);
    if processor == Processor::Arm64 {
        frame.set_vendor(Vendor::AArch64);
    }
    let header = EhFrameHdr::new(header, LittleEndian)
        .parse(&bases, 8)
        .unwrap();
    let search = header.table().unwrap();
    let offset = |address: u64| {
        elf.segments().find_map(|segment| {
            let inside = address.checked_sub(segment.address())?;
            let (offset, size) = segment.file_range();
            (inside < size).then_some(offset + inside)
        })
    };

    let mut counts = Counts::default();
    let (mut context, mut again) = (UnwindContext::new(), UnwindContext::new());
    let mut entries = frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let entry = partial.parse(EhFrame::cie_from_offset).unwrap();
        let mut rows = entry.rows(&frame, &bases, &mut context).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            let (from, to) = (row.start_address(), row.end_address());
            if from >= to {
                continue;
            }
            counts.rows += 1;
            for address in [from, from + (to - from) / 2, to - 1] {
                counts.asked += 1;
                let row = search
                    .unwind_info_for_address(
                        &frame,
                        &bases,
                        &mut again,
                        address,
                        EhFrame::cie_from_offset,
                    )
                    .unwrap();
                let rule = table.rule(offset(address).unwrap());
                let registers = Registers {
                    processor,
                    ip: address,
                };
                let truth = caller(&frame, row, entry.cie(), &registers);
                let expected = truth.unwrap_or_else(|| panic!("no answer at {address:#x}"));
                let frame = UnwindFrame {
                    ip: address,
                    sp: SP,
                    fp: registers.value(if processor == Processor::Arm64 { 29 } else { 6 }),
                    kept: registers.value(processor.kept().into()),
                    is_exact: true,
                };
                let found = step(processor, &rule, &frame, Some(&registers), &mut Words);
                let found = match found {
                    // The dynamic linker of arm64 has a function whose CFA is below the stack pointer.
                    Err(StackEnd::UnsupportedRule) if rule == Rule::Other || expected.cfa < SP => {
                        counts.other += 1;
                        continue;
                    }
                    // gimli does not say that arm64's return address is undefined.
                    Err(StackEnd::Whole) if processor == Processor::Arm64 => continue,
                    Err(StackEnd::Whole) if expected.ip.is_none() => continue,
                    Ok(found) => found,
                    Err(end) => panic!("{end:?} at {address:#x}, not {expected:?}"),
                };
                assert_eq!(Some(found.ip), expected.ip, "{address:#x}: {rule:?}");
                // The words that a linkage table of arm64 has pushed.
                let pushed = match row.register(entry.cie().return_address_register()) {
                    RegisterRule::Offset(8) if processor == Processor::Arm64 => 16,
                    _ => 0,
                };
                assert_eq!(found.sp, expected.cfa + pushed, "{address:#x}: {rule:?}");
                let fp_is_lost = matches!(
                    rule,
                    Rule::Caller(CallerRule {
                        fp: FpRule::Lost,
                        ..
                    })
                );
                if fp_is_lost {
                    counts.lost += 1;
                } else {
                    assert_eq!(Some(found.fp), expected.fp, "{address:#x}: {rule:?}");
                }
                let has_kept = match rule {
                    Rule::Caller(rule) => rule.kept != 0,
                    _ => true,
                };
                if has_kept {
                    assert_eq!(Some(found.kept), expected.kept, "{address:#x}: {rule:?}");
                }
            }
        }
    }
    counts
}

#[test]
fn agree_with_gimli() {
    let mut all = 0;
    for (name, bytes) in files() {
        let counts = compare(&bytes);
        println!("{name}: {counts:?}");
        all += counts.asked;
        assert!(counts.other * 500 <= counts.asked, "{name}: {counts:?}");
        assert!(counts.lost * 1000 <= counts.asked, "{name}: {counts:?}");
    }
    // This test itself is one of the files.
    assert!(all > 10_000);
}

/// A row has two bytes, and the index of 256 bytes of code has two.
#[test]
fn are_small() {
    for (name, bytes) in files() {
        let elf = object::File::parse(&*bytes).unwrap();
        let frame = elf.section_by_name(".eh_frame").unwrap().size();
        let blob = unwind::compile(&bytes).unwrap();
        let rows = UnwindTable::check(&blob).unwrap().head().rows as usize;
        let size = blob.len();
        assert!(size <= 4 * rows + 4096, "{name}: {size} bytes, {rows} rows");
        assert!(size as u64 <= frame, "{name}: {size} of {frame} bytes");
    }
}

/// The compiler uses no order of a hash table.
#[test]
fn are_reproducible() {
    let (name, bytes) = files().swap_remove(0);
    let first = unwind::compile(&bytes).unwrap();
    assert_eq!(unwind::compile(&bytes).unwrap(), first, "{name}");
}
