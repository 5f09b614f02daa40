// SPDX-License-Identifier: GPL-2.0

//! The rule of a row of call frame information.

use gimli::{
    CfaRule, Encoding, EndianSlice, LittleEndian, Operation, Register, RegisterRule,
    UnwindExpression, UnwindSection, UnwindTableRow,
};
use rtrace_unwind::processor::Processor;
use rtrace_unwind::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};

/// The bytes of a section.
pub type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Maximum number of operations of an expression that a rule can express: that of a procedure linkage table, plus one.
const MAX_OPERATIONS: usize = 10;

/// DWARF's numbers of registers on x86-64.
const RBX: Register = Register(3);
const RSP: u16 = 7;
const RIP: u16 = 16;

/// A function, as far as its rules depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The processor.
    pub processor: Processor,
    /// The register that stands for the return address.
    pub return_address: Register,
    /// How expressions are encoded.
    pub encoding: Encoding,
    /// Whether the function returns from a signal.
    pub is_signal: bool,
    /// The address from which on the stack ends, on arm64.
    pub end_of_stack: Option<u64>,
}

/// The rule of a row.
pub fn of<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize>,
    place: &Place,
) -> Rule {
    rule(section, row, place).unwrap_or(Rule::Other)
}

/// [`None`]: tables cannot express the rule.
fn rule<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize>,
    place: &Place,
) -> Option<Rule> {
    let operations = |expression: &UnwindExpression<usize>| {
        let expression = expression.get(section).ok()?;
        let mut operations = expression.operations(place.encoding);
        let mut all = Vec::new();
        while let Some(operation) = operations.next().ok()? {
            all.push(operation);
            if all.len() > MAX_OPERATIONS {
                return None;
            }
        }
        Some(all)
    };
    let (sp, fp) = match place.processor {
        Processor::X86_64 => (Register(7), Register(6)),
        Processor::Arm64 => (Register(31), Register(29)),
    };
    let is_arm = place.processor == Processor::Arm64;

    let ra = match row.register(place.return_address) {
        RegisterRule::Undefined
            if !is_arm
                || place
                    .end_of_stack
                    .is_some_and(|at| at <= row.start_address()) =>
        {
            return Some(Rule::End);
        }
        // Leaf functions of arm64 leave the return address in its register.
        RegisterRule::Undefined | RegisterRule::SameValue if is_arm => {
            RaRule::Register(short(place.return_address)?)
        }
        RegisterRule::Offset(offset) => RaRule::AtCfa(offset.try_into().ok()?),
        RegisterRule::Register(register) => RaRule::Register(short(register)?),
        // The word is in the interrupted program's registers.
        RegisterRule::Expression(_) if place.is_signal => RaRule::AtCfa(0),
        _ => return None,
    };
    if place.is_signal && is_arm {
        return Some(Rule::Signal);
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let offset = (*offset).try_into().ok()?;
            match *register {
                register if register == sp => Cfa::Sp(offset),
                register if register == fp => Cfa::Fp(offset),
                register => Cfa::Register {
                    number: short(register)?,
                    offset,
                },
            }
        }
        CfaRule::Expression(expression) => {
            let operations = operations(expression)?;
            if !is_arm && place.is_signal {
                return is_signal(&operations).then_some(Rule::Signal);
            }
            cfa(&operations, sp, fp, is_arm)?
        }
    };
    if place.is_signal && !matches!(ra, RaRule::AtCfa(-8)) {
        return None;
    }
    // longjmp and setcontext of arm64 have a return address above their CFA, or in a register that the code has set. The
    // CFA, the address of what they load, is not the stack pointer after the return.
    let is_above = match row.register(place.return_address) {
        RegisterRule::Undefined => false,
        RegisterRule::Offset(offset) => offset >= 0,
        _ => true,
    };
    if is_arm && is_above && matches!(cfa, Cfa::Register { .. }) {
        return None;
    }
    let fp = match row.register(fp) {
        RegisterRule::Undefined | RegisterRule::SameValue => FpRule::Unchanged,
        RegisterRule::Offset(offset) => offset.try_into().map_or(FpRule::Lost, FpRule::AtCfa),
        RegisterRule::Expression(expression) => {
            match *operations(&expression).unwrap_or_default() {
                [Operation::RegisterOffset {
                    register, offset, ..
                }] if register == fp => offset.try_into().map_or(FpRule::Lost, FpRule::AtFp),
                _ => FpRule::Lost,
            }
        }
        _ => FpRule::Lost,
    };
    let kept = match row.register(RBX) {
        RegisterRule::Offset(offset) if !is_arm => offset.try_into().unwrap_or_default(),
        _ => 0,
    };
    // Before a procedure linkage table of arm64 jumps to the dynamic linker, it pushes two words, and the second is the
    // return address. The linker's rules do not count these words: their CFA is not the caller's stack pointer.
    let (cfa, ra) = match (cfa, ra) {
        (Cfa::Sp(offset), RaRule::AtCfa(8)) if is_arm && fp == FpRule::Unchanged => {
            (Cfa::Sp(offset.checked_add(16)?), RaRule::AtCfa(-8))
        }
        others => others,
    };
    Some(Rule::Caller(CallerRule { cfa, fp, ra, kept }))
}

fn short(register: Register) -> Option<u8> {
    register.0.try_into().ok()
}

/// The CFA of an expression.
fn cfa(
    operations: &[Operation<Bytes<'_>>],
    sp: Register,
    fp: Register,
    is_arm: bool,
) -> Option<Cfa> {
    let [Operation::RegisterOffset {
        register, offset, ..
    }, rest @ ..] = operations
    else {
        return None;
    };
    let offset = i32::try_from(*offset).ok()?;
    match rest {
        [Operation::Deref {
            size: 8,
            space: false,
            ..
        }] if *register == fp => Some(Cfa::FpDeref(offset)),
        [Operation::Deref {
            size: 8,
            space: false,
            ..
        }] if *register == sp => Some(Cfa::SpDeref { offset, add: 0 }),
        [Operation::Deref {
            size: 8,
            space: false,
            ..
        }, Operation::PlusConstant { value }]
            if *register == sp =>
        {
            // A negative addend is a large number.
            let add = i16::try_from(*value as i64).ok()?;
            Some(Cfa::SpDeref { offset, add })
        }
        _ if !is_arm && register.0 == RSP && offset == 8 => plt(rest),
        _ => None,
    }
}

/// The CFA of a procedure linkage table, from the operations after `rsp + 8`: `((rip & 15) >= threshold) << 3`, plus
/// that.
fn plt(operations: &[Operation<Bytes<'_>>]) -> Option<Cfa> {
    let [Operation::RegisterOffset {
        register: Register(RIP),
        offset: 0,
        ..
    }, mask, Operation::And, threshold, Operation::Ge, shift, Operation::Shl, Operation::Plus] =
        operations
    else {
        return None;
    };
    let is_plt = constant(mask)? == 15 && constant(shift)? == 3;
    let threshold = constant(threshold)?.try_into().ok()?;
    is_plt.then_some(Cfa::Plt(threshold))
}

fn constant(operation: &Operation<Bytes<'_>>) -> Option<u64> {
    match operation {
        Operation::UnsignedConstant { value } => Some(*value),
        Operation::SignedConstant { value } => (*value).try_into().ok(),
        _ => None,
    }
}

/// Whether these are the operations of a signal's frame on x86-64: the stack pointer of `struct ucontext`.
fn is_signal(operations: &[Operation<Bytes<'_>>]) -> bool {
    matches!(
        operations,
        [
            Operation::RegisterOffset {
                register: Register(RSP),
                offset: 160,
                ..
            },
            Operation::Deref { .. }
        ]
    )
}
