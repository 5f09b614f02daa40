// SPDX-License-Identifier: GPL-2.0

//! One step of a walk: from a frame to the frame of its caller.

use super::end::StackEnd;
use super::processor::Processor;
use super::rule::{CallerRule, Cfa, FpRule, RaRule, Rule};

/// Reads words of the stack.
pub trait StackWords {
    /// The word of 8 bytes at an address, which may be any number. [`None`]: it cannot be read.
    fn word(&mut self, at: u64) -> Option<u64>;
}

/// All registers of the program, which are known in the innermost frame only.
pub trait InnermostRegisters {
    /// The register with this DWARF number. [`None`]: there is no such register, or its value is not known.
    fn register(&self, number: u8) -> Option<u64>;
}

/// The registers of a function that is being executed or has called another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindFrame {
    /// The instruction pointer, which is the address of the stack that a trace records.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer; 0 if it is not known.
    pub fp: u64,
    /// The register that [`Processor::kept`] names. On arm64 only valid if the frame is exact.
    pub kept: u64,
    /// Whether the rule is that of the instruction pointer itself: in the innermost function, and in a function that a
    /// signal has interrupted. In other frames it is the rule of the call, before the return address.
    pub is_exact: bool,
}

impl UnwindFrame {
    /// The address whose rule applies.
    #[inline(always)]
    pub fn lookup(&self) -> u64 {
        self.ip.wrapping_sub(u64::from(!self.is_exact))
    }

    /// The frame of a caller, which is not exact.
    #[inline(always)]
    fn caller(ip: u64, sp: u64, fp: u64, kept: u64) -> Self {
        Self {
            ip,
            sp,
            fp,
            kept,
            is_exact: false,
        }
    }
}

/// Returns the frame of the caller by the rule of [`UnwindFrame::lookup`], or the reason for the end of the stack.
///
/// `innermost` has the registers of the innermost frame if the frame is that one, or its caller by a rule. For
/// [`Rule::None`] the step is [`step_by_frame_pointer()`], and its address is a guess.
///
/// A stack pointer that is returned is above that of the frame, with two exceptions. At a signal it may be any number.
/// If the frame is exact, it may be equal, on x86-64 only if the return address is in a register. It may also be equal if
/// the return address is in a register of the innermost frame. So the caller must limit the number of steps.
#[inline]
pub fn step<R: InnermostRegisters>(
    processor: Processor,
    rule: &Rule,
    frame: &UnwindFrame,
    innermost: Option<&R>,
    words: &mut impl StackWords,
) -> Result<UnwindFrame, StackEnd> {
    match rule {
        Rule::Caller(rule) => step_to_caller(processor, rule, frame, innermost, words),
        Rule::End => Err(StackEnd::Whole),
        Rule::Signal => step_over_signal(processor, frame, words).ok_or(StackEnd::Unreadable),
        Rule::None => step_by_frame_pointer(processor, frame, words),
        Rule::Other => Err(StackEnd::UnsupportedRule),
    }
}

/// Returns the frame of the caller by the frame pointer, or [`StackEnd::NoRules`] if it leads to no frame.
///
/// The frame pointer must be aligned and not below the stack pointer. It is the address of the caller's frame pointer,
/// and the return address is in the word after that.
///
/// On x86-64 these two words are the last of the frame. On arm64 they are the first, so the size of the frame is not known.
/// The caller's stack pointer is then taken to be the caller's frame pointer, because that is at the begin of its frame.
#[inline]
pub fn step_by_frame_pointer(
    processor: Processor,
    frame: &UnwindFrame,
    words: &mut impl StackWords,
) -> Result<UnwindFrame, StackEnd> {
    let fp = frame.fp;
    let is_valid = fp >= frame.sp && fp & 7 == 0;
    let sp = fp.checked_add(16).filter(|_| is_valid);
    let sp = sp.ok_or(StackEnd::NoRules)?;
    let word = |words: &mut _, at| StackWords::word(words, at).ok_or(StackEnd::NoRules);
    let ip = word(words, fp.wrapping_add(8))?;
    if ip == 0 {
        return Err(StackEnd::NoRules);
    }
    let outer = word(words, fp)?;
    let sp = match processor {
        Processor::X86_64 => sp,
        Processor::Arm64 => sp.max(outer),
    };
    Ok(UnwindFrame::caller(ip, sp, outer, frame.kept))
}

#[inline]
fn step_to_caller<R: InnermostRegisters>(
    processor: Processor,
    rule: &CallerRule,
    frame: &UnwindFrame,
    innermost: Option<&R>,
    words: &mut impl StackWords,
) -> Result<UnwindFrame, StackEnd> {
    let word = |words: &mut _, at| StackWords::word(words, at).ok_or(StackEnd::Unreadable);
    let plus = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
    let register = |number: u8, is_known: bool| {
        let own = (is_known && number == processor.kept()).then_some(frame.kept);
        let all = innermost.filter(|_| frame.is_exact);
        let value = all.map_or(own, |all| all.register(number));
        value.ok_or(StackEnd::UnsupportedRule)
    };
    // A function that calls another one with its own return address in a register knows that the other one keeps it.
    let is_kept = |number: u8| number != processor.kept() && innermost.is_some();

    let cfa = match rule.cfa {
        Cfa::Sp(offset) => plus(frame.sp, offset),
        Cfa::Fp(offset) => plus(frame.fp, offset),
        Cfa::Register { number, offset } => {
            // The link register of arm64 is no base of frames.
            let is_known = processor == Processor::X86_64;
            plus(register(number, is_known)?, offset)
        }
        Cfa::Plt(threshold) => {
            let is_pushed = frame.ip & 15 >= u64::from(threshold);
            plus(frame.sp, if is_pushed { 16 } else { 8 })
        }
        Cfa::FpDeref(offset) => word(words, plus(frame.fp, offset))?,
        Cfa::SpDeref { offset, add } => plus(word(words, plus(frame.sp, offset))?, i32::from(add)),
    };
    // The stack of a function whose return address is in a register may be empty. On arm64 the rule may give the address
    // where the register was saved before.
    let may_be_empty = match rule.ra {
        RaRule::Register(number) => frame.is_exact || is_kept(number),
        RaRule::AtCfa(_) => frame.is_exact && processor == Processor::Arm64,
    };
    let is_above = cfa > frame.sp || (cfa == frame.sp && may_be_empty);
    if !is_above {
        return Err(StackEnd::UnsupportedRule);
    }

    let at_cfa = |offset: i16| plus(cfa, i32::from(offset));
    let ip = match rule.ra {
        RaRule::AtCfa(offset) => word(words, at_cfa(offset))?,
        RaRule::Register(number) if frame.is_exact => register(number, true)?,
        // A call has overwritten other registers.
        RaRule::Register(number) => {
            let kept = innermost.filter(|_| is_kept(number));
            let kept = kept.and_then(|all| all.register(number));
            kept.ok_or(StackEnd::UnsupportedRule)?
        }
    };
    let fp = match rule.fp {
        FpRule::Unchanged => frame.fp,
        FpRule::AtCfa(offset) => word(words, at_cfa(offset))?,
        FpRule::AtFp(offset) => word(words, plus(frame.fp, i32::from(offset)))?,
        FpRule::Lost => 0,
    };
    let kept = match rule.kept {
        0 => frame.kept,
        offset => word(words, at_cfa(offset))?,
    };
    Ok(UnwindFrame::caller(ip, cfa, fp, kept))
}

/// Returns the frame that the signal has interrupted. [`None`]: a word cannot be read.
#[cold]
fn step_over_signal(
    processor: Processor,
    frame: &UnwindFrame,
    words: &mut impl StackWords,
) -> Option<UnwindFrame> {
    let layout = processor.signal_frame();
    let mut at = |offset| words.word(frame.sp.wrapping_add(offset));
    Some(UnwindFrame {
        ip: at(layout.ip)?,
        sp: at(layout.sp)?,
        fp: at(layout.fp)?,
        kept: at(layout.kept)?,
        is_exact: true,
    })
}
