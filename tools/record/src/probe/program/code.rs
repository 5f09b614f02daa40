// SPDX-License-Identifier: GPL-2.0

//! The machine code of a program or library: its instructions, one after the other.

use anyhow::{bail, Context};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use object::elf::PF_X;
use object::{Architecture, Object, ObjectSegment, SegmentFlags};
use std::ops::Range;

/// The code of a file.
pub struct Code<'d> {
    processor: Processor,
    segments: Vec<Segment<'d>>,
}

/// The instruction set.
#[derive(Clone, Copy)]
enum Processor {
    /// x86, with this number of bits.
    X86(u32),
    Arm64,
}

/// A piece of a file that programs execute.
struct Segment<'d> {
    address: u64,
    /// Offset in the file.
    offset: u64,
    bytes: &'d [u8],
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The address of the first byte after it.
    pub end: u64,
    /// The next instruction to be executed.
    pub flow: Flow,
}

/// The instruction that follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one.
    Next,
    /// The next one, after a call that may not return.
    Call,
    /// The one at this address.
    Jump(u64),
    /// The next one, or the one at this address.
    Branch(u64),
    /// The one at the return address.
    Return,
    /// One at an address that the program computes.
    Computed,
    /// None: it raises a signal.
    Trap,
}

impl<'d> Code<'d> {
    /// The code of `object`.
    pub fn new(object: &object::File<'d>) -> anyhow::Result<Self> {
        let processor = match object.architecture() {
            Architecture::X86_64 | Architecture::X86_64_X32 => Processor::X86(64),
            Architecture::I386 => Processor::X86(32),
            Architecture::Aarch64 => Processor::Arm64,
            other => bail!("rtrace cannot read the instructions of {other:?}"),
        };
        let executable = object.segments().filter(
            |segment| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0),
        );
        let segments = executable.map(|segment| {
            Ok(Segment {
                address: segment.address(),
                offset: segment.file_range().0,
                bytes: segment.data().context("its code is not in the file")?,
            })
        });
        let segments = segments.collect::<anyhow::Result<_>>()?;
        Ok(Self {
            processor,
            segments,
        })
    }

    /// The offset in the file of an address. [`None`]: there is no code.
    pub fn in_file(&self, address: u64) -> Option<u64> {
        let (segment, inside) = self.find(address)?;
        segment.offset.checked_add(inside)
    }

    /// The instruction at an address. [`None`]: there is none.
    pub fn instruction(&self, at: u64) -> Option<Instruction> {
        let (segment, inside) = self.find(at)?;
        let bytes = segment.bytes.get(usize::try_from(inside).ok()?..)?;
        match self.processor {
            Processor::X86(bits) => Some(x86(&decode(bits, at, bytes)?)),
            Processor::Arm64 => Some(arm64(at, word(bytes)?)),
        }
    }

    /// The beginnings of all instructions in `range`, the first of which begins there. They end where bytes are no
    /// instruction.
    pub fn beginnings(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let found = self.instruction(at).filter(|_| at < range.end)?;
            Some(std::mem::replace(&mut at, found.end))
        })
    }

    /// The addresses of code that the instructions in `range` compute, as the addresses of functions are.
    pub fn code_addresses(&self, range: Range<u64>) -> Vec<u64> {
        let mut pages = [None; 32];
        let mut found = Vec::new();
        for at in self.beginnings(range) {
            let address = self.find(at).and_then(|(segment, inside)| {
                let bytes = segment.bytes.get(usize::try_from(inside).ok()?..)?;
                match self.processor {
                    Processor::X86(bits) => x86_address(&decode(bits, at, bytes)?),
                    Processor::Arm64 => arm64_address(at, word(bytes)?, &mut pages),
                }
            });
            found.extend(address.filter(|address| self.in_file(*address).is_some()));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn find(&self, address: u64) -> Option<(&Segment<'d>, u64)> {
        self.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            (inside < segment.bytes.len() as u64).then_some((segment, inside))
        })
    }
}

fn decode(bits: u32, at: u64, bytes: &[u8]) -> Option<iced_x86::Instruction> {
    let mut decoder = Decoder::with_ip(bits, bytes, at, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

fn x86(instruction: &iced_x86::Instruction) -> Instruction {
    let is_direct = matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    let target = instruction.near_branch_target();
    let flow = match instruction.mnemonic() {
        Mnemonic::Call => Flow::Call,
        Mnemonic::Jmp if is_direct => Flow::Jump(target),
        Mnemonic::Ret => Flow::Return,
        Mnemonic::Jmp
        | Mnemonic::Jmpe
        | Mnemonic::Retf
        | Mnemonic::Iret
        | Mnemonic::Iretd
        | Mnemonic::Iretq
        | Mnemonic::Sysret
        | Mnemonic::Sysretq
        | Mnemonic::Sysexit
        | Mnemonic::Sysexitq => Flow::Computed,
        Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2 | Mnemonic::Hlt | Mnemonic::Int3 => {
            Flow::Trap
        }
        _ if is_direct => Flow::Branch(target),
        _ => Flow::Next,
    };
    let end = instruction.next_ip();
    Instruction { end, flow }
}

/// The address that an instruction of x86 computes from its own, or has as a constant.
fn x86_address(instruction: &iced_x86::Instruction) -> Option<u64> {
    match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Lea, _) if instruction.is_ip_rel_memory_operand() => {
            Some(instruction.ip_rel_memory_address())
        }
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) => {
            Some(instruction.immediate(1))
        }
        _ => None,
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn arm64(at: u64, word: u32) -> Instruction {
    // The number in `bits` bits from bit `from` on, times 4, as the distance of a branch.
    let target = |from: u32, bits: u32| {
        let distance = (word << (32 - from - bits)) as i32 >> (32 - bits);
        at.wrapping_add_signed(i64::from(distance) * 4)
    };
    let flow = if word & 0xfc00_0000 == 0x1400_0000 {
        Flow::Jump(target(0, 26)) // b
    } else if word & 0xfc00_0000 == 0x9400_0000 || word & 0xfee0_0000 == 0xd620_0000 {
        Flow::Call // bl; blr, with or without authentication
    } else if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 {
        Flow::Branch(target(5, 19)) // b.cond, bc.cond; cbz, cbnz
    } else if word & 0x7e00_0000 == 0x3600_0000 {
        Flow::Branch(target(5, 14)) // tbz, tbnz
    } else if word & 0xffff_fc1f == 0xd65f_0000 {
        Flow::Return
    } else if word & 0xfe00_0000 == 0xd600_0000 || word & 0x7e00_0000 == 0x7400_0000 {
        // br; returns that authenticate, where the kernel allows no probe; comparisons that branch, which it does not know.
        Flow::Computed
    } else if word & 0xffe0_001f == 0xd420_0000 || word & 0xffff_0000 == 0 {
        Flow::Trap // brk, udf
    } else {
        Flow::Next
    };
    let end = at.wrapping_add(4);
    Instruction { end, flow }
}

/// The address that an instruction of arm64 computes. `pages` has the addresses that `adrp` has put into registers.
fn arm64_address(at: u64, word: u32, pages: &mut [Option<u64>; 32]) -> Option<u64> {
    let register = |from: u32| ((word >> from) & 31) as usize;
    let distance = || {
        let high = (word << 8) as i32 >> 13 << 2;
        i64::from(high | ((word >> 29) & 3) as i32)
    };
    if word & 0x9f00_0000 == 0x9000_0000 {
        // adrp
        pages[register(0)] = Some((at & !0xfff).wrapping_add_signed(distance() << 12));
        None
    } else if word & 0x9f00_0000 == 0x1000_0000 {
        // adr
        Some(at.wrapping_add_signed(distance()))
    } else if word & 0xffc0_0000 == 0x9100_0000 {
        // add of a constant
        pages[register(5)].map(|page| page.wrapping_add(u64::from((word >> 10) & 0xfff)))
    } else {
        None
    }
}

#[cfg(test)]
impl<'d> Code<'d> {
    /// Code of x86-64 at an address.
    pub fn of(address: u64, bytes: &'d [u8]) -> Self {
        let segment = Segment {
            address,
            offset: 0x400,
            bytes,
        };
        Self {
            processor: Processor::X86(64),
            segments: vec![segment],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x1000;

    /// The length and the flow of each instruction.
    fn flows(code: &Code<'_>) -> Vec<(u64, Flow)> {
        let beginnings = code.beginnings(ADDRESS..ADDRESS + 0x100);
        let instructions = beginnings.filter_map(|at| {
            let found = code.instruction(at)?;
            Some((found.end - at, found.flow))
        });
        instructions.collect()
    }

    #[test]
    fn instructions_of_x86_are_known() {
        let bytes = [
            &[0xf3, 0x0f, 0x1e, 0xfa][..],               // endbr64
            &[0x48, 0x8d, 0x05, 0xf5, 0xff, 0xff, 0xff], // lea -11(%rip),%rax
            &[0x74, 0x02],                               // je
            &[0xeb, 0xf1],                               // jmp to the beginning
            &[0xe8, 0, 0, 0, 0],                         // call
            &[0x3e, 0xff, 0xe0],                         // notrack jmp *%rax
            &[0x0f, 0x0b],                               // ud2
            &[0xf3, 0xc3],                               // repz ret
            &[0x06],                                     // none in 64 bits
        ];
        let bytes = bytes.concat();
        let code = Code::of(ADDRESS, &bytes);
        assert_eq!(
            flows(&code),
            [
                (4, Flow::Next),
                (7, Flow::Next),
                (2, Flow::Branch(ADDRESS + 15)),
                (2, Flow::Jump(ADDRESS)),
                (5, Flow::Call),
                (3, Flow::Computed),
                (2, Flow::Trap),
                (2, Flow::Return),
            ]
        );
        let addresses = code.code_addresses(ADDRESS..ADDRESS + 0x100);
        assert_eq!(addresses, [ADDRESS]);
        assert_eq!(code.in_file(ADDRESS + 2), Some(0x402));
        assert_eq!(code.in_file(ADDRESS + bytes.len() as u64), None);
    }

    #[test]
    fn instructions_of_arm64_are_known() {
        let words = [
            0xd503_233f,     // paciasp
            0x9000_0000,     // adrp x0, this page
            0x9100_4000,     // add x0, x0, #16
            0x5400_0040,     // b.eq +8
            0xb4ff_ffe0,     // cbz x0, -4
            0x3607_ffc0,     // tbz w0, #0, -8
            0x17ff_fffa,     // b -24
            0x9400_0001,     // bl +4
            0xd63f_0000,     // blr x0
            0xd61f_0000,     // br x0
            0xd420_0020,     // brk #1
            0xd65f_0bff,     // retaa
            0xd65f_03c0_u32, // ret
        ];
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Code {
            processor: Processor::Arm64,
            ..Code::of(ADDRESS, &bytes)
        };
        let expected = [
            Flow::Next,
            Flow::Next,
            Flow::Next,
            Flow::Branch(ADDRESS + 20),
            Flow::Branch(ADDRESS + 12),
            Flow::Branch(ADDRESS + 12),
            Flow::Jump(ADDRESS),
            Flow::Call,
            Flow::Call,
            Flow::Computed,
            Flow::Trap,
            Flow::Computed,
            Flow::Return,
        ];
        assert_eq!(flows(&code), expected.map(|flow| (4, flow)));
        let addresses = code.code_addresses(ADDRESS..ADDRESS + 0x100);
        assert_eq!(addresses, [ADDRESS + 16]);
    }
}
