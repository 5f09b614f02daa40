// SPDX-License-Identifier: GPL-2.0

//! The functions that `.eh_frame` or `.debug_frame` describes.

use crate::elf::{ElfCode, Section};
use crate::rules::{self, Bytes};
use crate::Error;
use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame,
    FrameDescriptionEntry, LittleEndian, UnwindContext, UnwindOffset, UnwindSection, Vendor,
};
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::Rule;
use std::collections::HashMap;

/// Bytes to read for each byte of the section: an entry's own, and those of the common entry that it refers to. Real
/// files need less than 3.
const WORK: u64 = 64;
const WORK_ROOM: u64 = 64 << 10;

/// A function with its rules.
#[derive(Clone, Debug)]
pub struct Function {
    /// Address of the first byte.
    pub begin: u64,
    /// The address after the last byte.
    pub end: u64,
    /// Addresses in increasing order, each with the rule from there on.
    pub rows: Vec<(u64, Rule)>,
}

/// The functions, by address.
pub fn read(code: &ElfCode<'_>) -> Result<Vec<Function>, Error> {
    let is_arm = code.processor == Processor::Arm64;
    let mut functions = Vec::new();
    if let Some(section) = code.section(".eh_frame")? {
        let bases = BaseAddresses::default()
            .set_text(code.address_of(".text"))
            .set_got(code.address_of(".got"))
            .set_eh_frame(section.address);
        let mut frame = EhFrame::new(&section.bytes, LittleEndian);
        if is_arm {
            frame.set_vendor(Vendor::AArch64);
        }
        functions = entries(code.processor, &frame, &bases, &section)?;
    }
    if functions.is_empty() {
        if let Some(section) = code.section(".debug_frame")? {
            let mut frame = DebugFrame::new(&section.bytes, LittleEndian);
            frame.set_address_size(8);
            if is_arm {
                frame.set_vendor(Vendor::AArch64);
            }
            let bases = BaseAddresses::default();
            functions = entries(code.processor, &frame, &bases, &section)?;
        }
    }
    functions.sort_by_key(|function| function.begin);
    Ok(functions)
}

/// The functions in a section, in the section's order. Entries that cannot be read are left out.
fn entries<'a, S>(
    processor: Processor,
    frame: &S,
    bases: &BaseAddresses,
    section: &'a Section<'_>,
) -> Result<Vec<Function>, Error>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: UnwindOffset<usize> + std::hash::Hash,
{
    let mut context = UnwindContext::new();
    let mut common = HashMap::new();
    let mut functions = Vec::new();
    let size = section.bytes.len() as u64;
    let mut work = size.saturating_mul(WORK).saturating_add(WORK_ROOM);
    let mut entries = frame.entries(bases);
    // After an error there is no way to find the next entry.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let at: usize = UnwindOffset::into(partial.cie_offset());
        let bytes = (partial.entry_len() as u64).saturating_add(length(&section.bytes, at));
        work = work.checked_sub(bytes).ok_or(Error::Work)?;
        let parsed = partial.parse(|_, bases, offset| {
            let found = common
                .entry(offset)
                .or_insert_with(|| frame.cie_from_offset(bases, offset));
            found.clone()
        });
        let Ok(entry) = parsed else { continue };
        functions.extend(function(processor, frame, bases, &entry, &mut context));
    }
    Ok(functions)
}

/// Length of the entry at an offset, as it says itself, but at most that of the section.
fn length(section: &[u8], at: usize) -> u64 {
    let number = |at: usize| section.get(at..).and_then(|bytes| bytes.first_chunk());
    let short = number(at).map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let length = match short {
        // The length of an entry for 64-bit offsets is in the next 8 bytes.
        u32::MAX => {
            let long = section
                .get(at.saturating_add(4)..)
                .and_then(|bytes| bytes.first_chunk());
            long.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        }
        short => short.into(),
    };
    length.min(section.len() as u64)
}

/// The function of an entry. [`None`]: it has no code.
fn function<'a, S: UnwindSection<Bytes<'a>>>(
    processor: Processor,
    frame: &S,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<Bytes<'a>>,
    context: &mut UnwindContext<usize>,
) -> Option<Function> {
    let begin = entry.initial_address();
    let end = begin.checked_add(entry.len())?;
    // The linker sets the address of functions that it has dropped to 0.
    if begin == 0 || begin == end {
        return None;
    }
    let common: &CommonInformationEntry<_> = entry.cie();
    let place = rules::Place {
        processor,
        return_address: common.return_address_register(),
        encoding: common.encoding(),
        is_signal: entry.is_signal_trampoline(),
        end_of_stack: end_of_stack(processor, frame, bases, entry),
    };
    let mut rows: Vec<(u64, Rule)> = Vec::new();
    let mut add = |at: u64, rule: Rule| {
        if rows.last().is_none_or(|(_, last)| *last != rule) {
            rows.push((at, rule));
        }
    };
    // The rules from here on are not known after an error.
    let mut next = begin;
    let is_complete = entry
        .rows(frame, bases, context)
        .is_ok_and(|mut table| loop {
            match table.next_row() {
                Ok(Some(row)) => {
                    let (from, to) = (row.start_address(), row.end_address());
                    if from < to && (next..end).contains(&from) {
                        add(from, rules::of(frame, row, &place));
                        next = to;
                    }
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        });
    if !is_complete && next < end {
        add(next, Rule::Other);
    }
    Some(Function { begin, end, rows })
}

/// The address from which on arm64's link register is declared as undefined, which ends the stack.
///
/// gimli does not distinguish this from a register without a rule, which has the return address of a leaf function.
fn end_of_stack<'a, S: UnwindSection<Bytes<'a>>>(
    processor: Processor,
    frame: &S,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<Bytes<'a>>,
) -> Option<u64> {
    if processor != Processor::Arm64 {
        return None;
    }
    let mut at = entry.initial_address();
    let mut instructions = entry.instructions(frame, bases);
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            CallFrameInstruction::SetLoc { address } => at = address,
            CallFrameInstruction::AdvanceLoc { delta } => {
                let factor = entry.cie().code_alignment_factor();
                at = at.wrapping_add(u64::from(delta).wrapping_mul(factor));
            }
            CallFrameInstruction::Undefined { register }
                if register == entry.cie().return_address_register() =>
            {
                return Some(at)
            }
            _ => {}
        }
    }
    None
}
