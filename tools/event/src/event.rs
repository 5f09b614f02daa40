// SPDX-License-Identifier: GPL-2.0 OR MIT

//! An event of the program.

use crate::record::Record;
use crate::{emit, process};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The word of an event that rtrace does not know.
static OFF: AtomicU32 = AtomicU32::new(0);

/// An event of the program. [`event!`](crate::event!) makes it.
#[derive(Debug)]
pub struct Event {
    /// The word is nonzero while the event is recorded.
    word: AtomicPtr<AtomicU32>,
    /// The text that registers the event.
    text: &'static CStr,
    index: AtomicU32,
}

impl Event {
    /// The event of a text that [`register`](Self::register) registers: `PROVIDER:NAME TYPE FIELD; ...`, with a NUL at its
    /// end.
    pub const fn new(text: &'static str) -> Self {
        let Ok(text) = CStr::from_bytes_with_nul(text.as_bytes()) else {
            panic!("the text of an event has one NUL, at its end");
        };
        assert!(
            text.count_bytes() <= process::TEXT_MAX,
            "name and fields of the event have more than 512 bytes"
        );
        Self::of(text)
    }

    /// As [`new`](Self::new). A text that is wrong is not registered.
    pub(crate) const fn of(text: &'static CStr) -> Self {
        Self {
            word: AtomicPtr::new((&raw const OFF).cast_mut()),
            text,
            index: AtomicU32::new(0),
        }
    }

    /// Registers the event. Without rtrace, or if it refuses the event, the event is never recorded.
    pub fn register(&'static self) {
        if let Some((index, word)) = process::register(self.text) {
            self.index.store(index, Ordering::Relaxed);
            self.word
                .store(std::ptr::from_ref(word).cast_mut(), Ordering::Release);
        }
    }

    /// Whether the event is recorded now.
    #[inline(always)]
    pub fn is_recorded(&self) -> bool {
        self.word() != 0
    }

    /// Records the event with these fields, which must be those of the event.
    #[inline]
    pub fn record(&self, record: &mut Record) {
        emit::emit(self.index.load(Ordering::Relaxed), self.word(), record);
    }

    #[inline(always)]
    fn word(&self) -> u32 {
        // SAFETY: The pointer is that of a static, or of a word that stays mapped: `process::register` returns it for ever.
        unsafe { (*self.word.load(Ordering::Acquire)).load(Ordering::Relaxed) }
    }
}
