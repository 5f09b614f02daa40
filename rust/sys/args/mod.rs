// SPDX-License-Identifier: GPL-2.0

//! Arguments that the kernel passes to handlers, with safe getters.
//!
//! A reference to one of these types is a pointer that the tracepoint got. It is valid while the handler runs.
//! Getters read single fields. They take no lock, call no other function, and work in any context, NMI
//! included.

mod address;
mod irq;
mod module;
mod signal;
mod syscall;
mod task;
mod text;
mod timer;
mod word;

pub(crate) use crate::sys::old::CloneFlags;
pub(crate) use address::Address;
pub(crate) use irq::IrqAction;
pub(crate) use module::ModuleArg;
pub(crate) use signal::{SigAction, SigInfo};
pub(crate) use syscall::Registers;
pub(crate) use task::ids::IdInNamespace;
pub(crate) use task::number::{TaskNumber, TaskWord};
pub(crate) use task::{Pid, Task};
pub(crate) use text::{CharPointer, ExecutedProgram, NewName};
pub(crate) use timer::{jiffies, DueTime, HrTimer, TimerList, TimerSetting};
pub(crate) use word::{FarWord, NamespaceWord};

use crate::arch::word::read_word;
use crate::record::memory::TEXT_MAX;
use crate::sys::pages::PAGE_SIZE;

/// The lowest bit of each byte.
const LOW: u64 = 0x0101_0101_0101_0101;
/// The top bit of each byte.
const HIGH: u64 = LOW << 7;

/// The bytes of a C string, without the NUL. Read eight at a time. At most [`TEXT_MAX`] + 1 bytes, which tell that the
/// text is longer than [`TEXT_MAX`].
///
/// # Safety
///
/// `text` must be NULL or a NUL-terminated string that lives for `'a`.
#[inline(always)]
pub(super) unsafe fn c_text<'a>(text: *const u8) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: By the contract. The NUL follows after this number of bytes, or later.
    unsafe { core::slice::from_raw_parts(text, c_text_len(text)) }
}

/// Length of a C string in bytes, [`TEXT_MAX`] + 1 at most.
///
/// # Safety
///
/// `text` must be a NUL-terminated string.
#[inline(always)]
unsafe fn c_text_len(text: *const u8) -> usize {
    // Most texts are short, and most do not end near the end of a page.
    if text.addr() % PAGE_SIZE <= PAGE_SIZE - 16 {
        // SAFETY: These bytes are in the page in which the text begins.
        let (first, second) = unsafe { (read_word::<0>(text), read_word::<8>(text)) };
        if may_have_nul(first) && nuls(first) != 0 {
            return nuls(first).trailing_zeros() as usize / 8;
        }
        if nuls(second) != 0 {
            return nuls(second).trailing_zeros() as usize / 8 + 8;
        }
    }
    // From here on by aligned words, which do not cross pages. In the first word, the bytes before the text are
    // set to values other than NUL.
    let before = text.addr() % 8;
    let mut word = text.wrapping_sub(before);
    // SAFETY: The page of the word has a byte of the text.
    let mut bytes = unsafe { read_word::<0>(word) } | !(u64::MAX << (8 * before));
    loop {
        let nul = nuls(bytes);
        let scanned = word.addr().wrapping_sub(text.addr());
        if nul != 0 {
            let len = scanned.wrapping_add(nul.trailing_zeros() as usize / 8);
            return len.min(TEXT_MAX + 1);
        }
        if scanned.wrapping_add(8) as isize > TEXT_MAX as isize {
            return TEXT_MAX + 1;
        }
        word = word.wrapping_add(8);
        // SAFETY: No NUL was found so far, so the text continues in this word.
        bytes = unsafe { read_word::<0>(word) };
    }
}

/// Whether a byte may be NUL: a fast test before [`nuls`]. It is also true for bytes that are not ASCII.
#[inline(always)]
fn may_have_nul(bytes: u64) -> bool {
    bytes.wrapping_sub(LOW) & HIGH != 0
}

/// A mask whose lowest bit is the top bit of the first NUL byte; 0 if no byte is NUL.
#[inline(always)]
fn nuls(bytes: u64) -> u64 {
    bytes.wrapping_sub(LOW) & !bytes & HIGH
}
