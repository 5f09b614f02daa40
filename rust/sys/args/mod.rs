// SPDX-License-Identifier: GPL-2.0

//! What the kernel passes to probes, with safe getters.
//!
//! A reference to one of these types is what the tracepoint got as a pointer. It is valid
//! while the handler runs. Getters read single fields; they take no lock, call nothing, and
//! work in any context, NMI included.

mod address;
mod irq;
mod module;
mod signal;
mod syscall;
mod task;
mod text;
mod timer;

pub(crate) use address::Address;
pub(crate) use irq::IrqAction;
pub(crate) use module::Module;
pub(crate) use signal::{SigAction, SigInfo};
pub(crate) use syscall::{Register, Registers};
pub(crate) use task::{Pid, Task};
pub(crate) use text::{CharPointer, Program};
pub(crate) use timer::{jiffies, HrTimer, TimerList, TimerSetting};

/// The longest text that is taken from the kernel, in bytes; the rest is cut off.
const TEXT_MAX: usize = 255;

/// The bytes of a C string, without the NUL, eight at a time.
///
/// # Safety
///
/// `text` must be NULL or a NUL-terminated string that lives for `'a`.
#[inline(always)]
pub(super) unsafe fn c_text<'a>(text: *const u8) -> &'a [u8] {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    if text.is_null() {
        return &[];
    }
    // The bytes in front of the text in its first word are made not NUL.
    let before = text.addr() & 7;
    let mut word = text.wrapping_sub(before).cast::<u64>();
    // SAFETY: An aligned word does not cross a page, and its page has a byte of the text.
    let mut bytes = unsafe { word.read_volatile() } | !(u64::MAX << (8 * before));
    loop {
        // The lowest bit set is the top bit of the first NUL.
        let nul = bytes.wrapping_sub(LOW) & !bytes & HIGH;
        let scanned = word.addr().wrapping_sub(text.addr());
        if nul != 0 {
            let len = scanned.wrapping_add(nul.trailing_zeros() as usize / 8);
            // SAFETY: `len` bytes in front of the NUL.
            return unsafe { core::slice::from_raw_parts(text, len.min(TEXT_MAX)) };
        }
        word = word.wrapping_add(1);
        if scanned.wrapping_add(8) as isize >= TEXT_MAX as isize {
            // SAFETY: More than this many bytes without a NUL.
            return unsafe { core::slice::from_raw_parts(text, TEXT_MAX) };
        }
        // SAFETY: No NUL until here, so the text goes on in this word.
        bytes = unsafe { word.read_volatile() };
    }
}
