// SPDX-License-Identifier: GPL-2.0

//! Rules: where a function has the registers of its caller.
//!
//! The base of all locations is the canonical frame address (CFA): the caller's stack pointer after the return.
//!
//! Bytes of a rule in a table, in this order:
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 1 | kind: a rule without a CFA, or the kind of the CFA |
//! | 1 | location of the frame pointer: 0 unchanged, 1 at CFA + n, 2 at fp + n, 3 lost |
//! | 1 | location of the return address: 0 at CFA + n, 1 in register n |
//! | 1 | register or threshold of the CFA |
//! | 4 | offset of the CFA |
//! | 2 | n of the frame pointer |
//! | 2 | n of the return address |
//! | 2 | offset of the kept register's slot from the CFA; 0: unchanged |
//! | 2 | addend of [`Cfa::SpDeref`] |
//!
//! Bytes without a meaning for the rule are 0. So a rule has one form only.

/// Size of a rule in a table.
pub const RULE_SIZE: usize = 16;

const NONE: u8 = 0;
const END: u8 = 1;
const SP: u8 = 2;
const FP: u8 = 3;
const REGISTER: u8 = 4;
const PLT: u8 = 5;
const SIGNAL: u8 = 6;
const FP_DEREF: u8 = 7;
const SP_DEREF: u8 = 8;
const OTHER: u8 = 9;

/// The rule of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The table does not describe the code. Its functions may have frame pointers.
    None,
    /// The function has no caller.
    End,
    /// The function returns from a signal. The interrupted program's registers are on the stack.
    Signal,
    /// The rule exists, but tables cannot express it.
    Other,
    /// The function has a caller.
    Caller(CallerRule),
}

/// Locations of the caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerRule {
    /// The CFA, which is the caller's stack pointer.
    pub cfa: Cfa,
    /// The caller's frame pointer.
    pub fp: FpRule,
    /// The return address.
    pub ra: RaRule,
    /// Offset of the slot with the caller's kept register from the CFA; 0: the register is unchanged.
    ///
    /// Only files with a rule whose CFA needs the kept register have these slots.
    pub kept: i16,
}

/// Value of the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cfa {
    /// Stack pointer + offset.
    Sp(i32),
    /// Frame pointer + offset.
    Fp(i32),
    /// Another register + offset. The register is known in the innermost frame only, except for the kept register.
    Register {
        /// DWARF's number of the register.
        number: u8,
        /// Added to its value.
        offset: i32,
    },
    /// The procedure linkage table of x86-64: stack pointer + 8, or + 16 if the low four bits of the instruction
    /// pointer are at least this threshold.
    Plt(u8),
    /// The word at frame pointer + offset.
    FpDeref(i32),
    /// The word at stack pointer + offset, plus another offset.
    SpDeref {
        /// Added to the stack pointer.
        offset: i32,
        /// Added to the word.
        add: i16,
    },
}

/// Location of the caller's frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FpRule {
    /// The register still has it.
    Unchanged,
    /// In the word at CFA + offset.
    AtCfa(i16),
    /// In the word at frame pointer + offset. The frame pointer here is that of the function itself.
    AtFp(i16),
    /// Not known.
    Lost,
}

/// Location of the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RaRule {
    /// In the word at CFA + offset.
    AtCfa(i16),
    /// In the register with this DWARF number.
    Register(u8),
}

impl Rule {
    /// Decodes a rule. [`None`]: the bytes are not those of a rule.
    #[inline]
    pub fn decode(bytes: &[u8; RULE_SIZE]) -> Option<Self> {
        let rule = Self::decode_any(bytes);
        (rule.encode() == *bytes).then_some(rule)
    }

    /// Decodes a rule whose bytes were checked. Any other bytes give some rule.
    #[inline(always)]
    pub(super) fn decode_any(bytes: &[u8; RULE_SIZE]) -> Self {
        let [kind, fp, ra, register, c0, c1, c2, c3, f0, f1, r0, r1, k0, k1, a0, a1] = *bytes;
        let offset = i32::from_le_bytes([c0, c1, c2, c3]);
        let cfa = match kind {
            NONE => return Self::None,
            END => return Self::End,
            SIGNAL => return Self::Signal,
            SP => Cfa::Sp(offset),
            FP => Cfa::Fp(offset),
            REGISTER => Cfa::Register {
                number: register,
                offset,
            },
            PLT => Cfa::Plt(register),
            FP_DEREF => Cfa::FpDeref(offset),
            SP_DEREF => Cfa::SpDeref {
                offset,
                add: i16::from_le_bytes([a0, a1]),
            },
            _ => return Self::Other,
        };
        let at = i16::from_le_bytes([f0, f1]);
        Self::Caller(CallerRule {
            cfa,
            fp: match fp {
                0 => FpRule::Unchanged,
                1 => FpRule::AtCfa(at),
                2 => FpRule::AtFp(at),
                _ => FpRule::Lost,
            },
            ra: match ra {
                0 => RaRule::AtCfa(i16::from_le_bytes([r0, r1])),
                _ => RaRule::Register(r0),
            },
            kept: i16::from_le_bytes([k0, k1]),
        })
    }

    /// Encodes the rule.
    pub fn encode(&self) -> [u8; RULE_SIZE] {
        let simple = |kind| [kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let caller = match self {
            Self::None => return simple(NONE),
            Self::End => return simple(END),
            Self::Signal => return simple(SIGNAL),
            Self::Other => return simple(OTHER),
            Self::Caller(caller) => caller,
        };
        let (kind, register, offset, add) = match caller.cfa {
            Cfa::Sp(offset) => (SP, 0, offset, 0),
            Cfa::Fp(offset) => (FP, 0, offset, 0),
            Cfa::Register { number, offset } => (REGISTER, number, offset, 0),
            Cfa::Plt(threshold) => (PLT, threshold, 0, 0),
            Cfa::FpDeref(offset) => (FP_DEREF, 0, offset, 0),
            Cfa::SpDeref { offset, add } => (SP_DEREF, 0, offset, add),
        };
        let (fp, fp_at) = match caller.fp {
            FpRule::Unchanged => (0, 0),
            FpRule::AtCfa(at) => (1, at),
            FpRule::AtFp(at) => (2, at),
            FpRule::Lost => (3, 0),
        };
        let (ra, ra_at) = match caller.ra {
            RaRule::AtCfa(at) => (0, at.to_le_bytes()),
            RaRule::Register(number) => (1, [number, 0]),
        };
        let ([c0, c1, c2, c3], [f0, f1]) = (offset.to_le_bytes(), fp_at.to_le_bytes());
        let ([r0, r1], [k0, k1], [a0, a1]) = (ra_at, caller.kept.to_le_bytes(), add.to_le_bytes());
        [
            kind, fp, ra, register, c0, c1, c2, c3, f0, f1, r0, r1, k0, k1, a0, a1,
        ]
    }
}
