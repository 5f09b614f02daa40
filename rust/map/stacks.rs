// SPDX-License-Identifier: GPL-2.0

//! Distinct call stacks, in a table that all CPUs share. A key of a map has the name of a stack.
//!
//! The name is the hash of the addresses. A stack is in one of a few adjacent slots, which its name gives. A
//! compare-and-exchange of a free slot's state makes the caller the owner of the slot. After the caller has stored
//! the stack, the slot never changes. If two contexts note a stack at the same time, two slots have it, with the same
//! name.

use super::hash::hash;
use super::word::SharedMapWord;
use core::marker::PhantomData;

/// Maximum number of addresses of a stack.
pub const STACK_WORDS: usize = 64;

/// Number of slots in which a stack may be.
const WINDOW: usize = 8;

/// Words of a slot: state, number of addresses, addresses.
const SLOT_WORDS: usize = 2 + STACK_WORDS;

/// State of a slot without a stack.
const FREE: u64 = 0;
/// State of a slot whose stack is being written.
const CLAIMED: u64 = 2;
/// Bit that a name has. The name is the state of a slot with a stack.
const READY: u64 = 1;

/// The stacks, in the words `M`, which are 0 at first.
#[derive(Debug)]
pub struct Stacks<W, M> {
    words: M,
    slot_bits: u32,
    word: PhantomData<W>,
}

impl<W: SharedMapWord, M: AsRef<[W]>> Stacks<W, M> {
    /// Number of words for this many slots, rounded up to a power of two.
    pub fn words(slots: usize) -> usize {
        Self::slots(slots).wrapping_mul(SLOT_WORDS)
    }

    fn slots(slots: usize) -> usize {
        slots.clamp(2, 1 << 20).next_power_of_two()
    }

    /// Makes a table without stacks, with this many slots, in as many words as [`words`](Self::words) returns. The words
    /// are 0.
    pub fn new(words: M, slots: usize) -> Self {
        Self {
            words,
            slot_bits: Self::slots(slots).trailing_zeros(),
            word: PhantomData,
        }
    }

    /// Returns the name of a stack of at most [`STACK_WORDS`] addresses, and notes the stack. [`None`]: there is no room,
    /// or another stack has the name. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn name(&self, stack: &[u64]) -> Option<u64> {
        let name = hash(stack) | READY;
        for step in 0..WINDOW {
            let (state, count, addresses) = self.slot(name, step)?;
            let mut found = state.load_acquire();
            if found == FREE {
                if state.compare_exchange(FREE, CLAIMED) {
                    for (word, address) in addresses.iter().zip(stack) {
                        word.store(*address);
                    }
                    count.store(stack.len() as u64);
                    state.store_release(name);
                    return Some(name);
                }
                // Another context has taken the slot, perhaps for the same stack.
                found = state.load_acquire();
            }
            if found == name {
                let mut both = addresses.iter().zip(stack);
                let is_same = count.load() == stack.len() as u64
                    && both.all(|(word, address)| word.load() == *address);
                return is_same.then_some(name);
            }
        }
        None
    }

    /// Whether a stack has this name. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn has(&self, name: u64) -> bool {
        for step in 0..WINDOW {
            match self.slot(name, step) {
                Some((state, ..)) if state.load_acquire() == name => return true,
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    /// The addresses of the stack with a name. Any CPU.
    pub fn find(&self, name: u64) -> Option<impl Iterator<Item = u64> + use<'_, W, M>> {
        let mut window = (0..WINDOW).filter_map(|step| self.slot(name, step));
        let (_, count, addresses) = window.find(|(state, ..)| state.load_acquire() == name)?;
        let count = count.load() as usize;
        Some(addresses.iter().take(count).map(W::load))
    }

    /// State, number of addresses and addresses of a slot in which the stack with a name may be.
    #[inline(always)]
    fn slot(&self, name: u64, step: usize) -> Option<(&W, &W, &[W])> {
        let first = name.wrapping_shr(u64::BITS.wrapping_sub(self.slot_bits)) as usize;
        let mask = 1_usize.wrapping_shl(self.slot_bits).wrapping_sub(1);
        let at = (first.wrapping_add(step) & mask).wrapping_mul(SLOT_WORDS);
        let slot = self.words.as_ref().get(at..at.wrapping_add(SLOT_WORDS))?;
        let [state, count, addresses @ ..] = slot else {
            return None;
        };
        Some((state, count, addresses))
    }
}
