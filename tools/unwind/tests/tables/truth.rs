// SPDX-License-Identifier: GPL-2.0

//! The caller of a function by gimli: it evaluates the rules and expressions of a row on made-up registers and words.

use gimli::{
    CfaRule, CommonInformationEntry, EndianSlice, EvaluationResult, LittleEndian, Location,
    Register, RegisterRule, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use rtrace_unwind::processor::Processor;
use rtrace_unwind::step::{InnermostRegisters, StackWords};

pub type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The stack pointer.
pub const SP: u64 = 0x7000_0000_0000;

/// Words that are addresses far above the stack pointer. Each address has another one.
pub struct Words;

impl StackWords for Words {
    fn word(&mut self, at: u64) -> Option<u64> {
        Some(word(at))
    }
}

fn word(at: u64) -> u64 {
    at.wrapping_sub(SP)
        .wrapping_mul(16)
        .wrapping_add(SP + 0x1000_0000)
}

/// Registers with different values above the stack pointer.
pub struct Registers {
    pub processor: Processor,
    pub ip: u64,
}

impl Registers {
    pub fn value(&self, number: u16) -> u64 {
        let (sp, ip) = match self.processor {
            Processor::X86_64 => (7, 16),
            Processor::Arm64 => (31, 32),
        };
        match number {
            number if number == sp => SP,
            number if number == ip => self.ip,
            number => SP + 0x10_0000 + 0x1_0000 * u64::from(number),
        }
    }
}

impl InnermostRegisters for Registers {
    fn register(&self, number: u8) -> Option<u64> {
        Some(self.value(number.into()))
    }
}

/// The caller's registers, as far as the row says.
#[derive(Debug)]
pub struct Caller {
    pub cfa: u64,
    /// [`None`]: the stack ends.
    pub ip: Option<u64>,
    /// [`None`]: not known.
    pub fp: Option<u64>,
    pub kept: Option<u64>,
}

/// [`None`]: gimli cannot evaluate the row.
pub fn caller<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize>,
    common: &CommonInformationEntry<Bytes<'a>>,
    registers: &Registers,
) -> Option<Caller> {
    let encoding = common.encoding();
    let evaluate = |expression: &UnwindExpression<usize>, initial: Option<u64>| {
        let mut evaluation = expression.get(section).ok()?.evaluation(encoding);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(registers.value(register.0));
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory { address, .. } => {
                    let value = Value::Generic(word(address));
                    evaluation.resume_with_memory(value).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            registers.value(register.0).wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => evaluate(expression, None)?,
    };
    let restore = |number: u16| match row.register(Register(number)) {
        RegisterRule::Undefined | RegisterRule::SameValue => Some(registers.value(number)),
        RegisterRule::Offset(offset) => Some(word(cfa.wrapping_add_signed(offset))),
        RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
        RegisterRule::Register(register) => Some(registers.value(register.0)),
        RegisterRule::Expression(expression) => Some(word(evaluate(&expression, Some(cfa))?)),
        RegisterRule::ValExpression(expression) => evaluate(&expression, Some(cfa)),
        _ => None,
    };
    let return_address = common.return_address_register();
    let (fp, kept, is_last) = match registers.processor {
        Processor::X86_64 => (
            6,
            3,
            row.register(return_address) == RegisterRule::Undefined,
        ),
        // The return address of a leaf function has no rule, too.
        Processor::Arm64 => (29, 30, false),
    };
    Some(Caller {
        cfa,
        ip: match is_last {
            true => None,
            false => Some(restore(return_address.0)?),
        },
        fp: restore(fp),
        kept: restore(kept),
    })
}
