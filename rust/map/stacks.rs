// SPDX-License-Identifier: GPL-2.0

//! Distinct call stacks, in a table that all CPUs share. A key of a map has the name of a stack.
//!
//! The name is the hash of the addresses, and of the reason why the stack ends. A stack is in one of a few adjacent slots, which its name gives. A
//! compare-and-exchange of a free slot's state makes the caller the owner of the slot. After the caller has stored
//! the stack, the slot never changes. If two contexts note a stack at the same time, two slots have it, with the same
//! name.

use super::hash::hash;
use super::word::SharedMapWord;
use core::marker::PhantomData;

/// Number of slots in which a stack may be.
const WINDOW: usize = 8;

/// Words of a slot without the addresses: state, and [head](head).
const SLOT_WORDS: usize = 2;

/// State of a slot without a stack.
const FREE: u64 = 0;
/// State of a slot whose stack is being written.
const CLAIMED: u64 = 2;
/// Bit that a name has. The name is the state of a slot with a stack.
const READY: u64 = 1;

/// A stack of a table.
#[derive(Debug)]
pub struct NamedStack<A> {
    /// Why it ends: a number of the caller.
    pub end: u8,
    /// The addresses.
    pub addresses: A,
}

/// Number of addresses of a stack, and why it ends.
#[inline(always)]
fn head(stack: &[u64], end: u8) -> u64 {
    ((stack.len() as u64) << 8) | u64::from(end)
}

/// The stacks, in the words `M`, which are 0 at first.
#[derive(Debug)]
pub struct Stacks<W, M> {
    words: M,
    slot_bits: u32,
    /// Maximum number of addresses of a stack.
    room: usize,
    word: PhantomData<W>,
}

impl<W: SharedMapWord, M: AsRef<[W]>> Stacks<W, M> {
    /// Number of words for this many slots, rounded up to a power of two, with `room` for addresses in each.
    pub fn words(slots: usize, room: usize) -> usize {
        Self::slots(slots).saturating_mul(SLOT_WORDS.saturating_add(room))
    }

    fn slots(slots: usize) -> usize {
        slots.clamp(2, 1 << 20).next_power_of_two()
    }

    /// Makes a table without stacks, in as many words as [`words`](Self::words) returns for the same numbers. The words
    /// are 0.
    pub fn new(words: M, slots: usize, room: usize) -> Self {
        Self {
            words,
            slot_bits: Self::slots(slots).trailing_zeros(),
            room,
            word: PhantomData,
        }
    }

    /// Returns the name of a stack, and notes the stack. `end`: why it ends. [`None`]: there is no room, or another stack
    /// has the name. Any context, NMI included, of any CPU.
    #[inline(always)]
    pub fn name(&self, stack: &[u64], end: u8) -> Option<u64> {
        let (name, head) = (
            (hash(stack) ^ hash(&[end.into()])) | READY,
            head(stack, end),
        );
        for step in 0..WINDOW {
            let (state, known, addresses) = self.slot(name, step)?;
            if addresses.len() < stack.len() {
                return None;
            }
            let mut found = state.load_acquire();
            if found == FREE {
                if state.compare_exchange(FREE, CLAIMED) {
                    for (word, address) in addresses.iter().zip(stack) {
                        word.store(*address);
                    }
                    known.store(head);
                    state.store_release(name);
                    return Some(name);
                }
                // Another context has taken the slot, perhaps for the same stack.
                found = state.load_acquire();
            }
            if found == name {
                let mut both = addresses.iter().zip(stack);
                let is_same =
                    known.load() == head && both.all(|(word, address)| word.load() == *address);
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

    /// The stack with a name. Any CPU.
    pub fn find(&self, name: u64) -> Option<NamedStack<impl Iterator<Item = u64> + use<'_, W, M>>> {
        let mut window = (0..WINDOW).filter_map(|step| self.slot(name, step));
        let (_, head, addresses) = window.find(|(state, ..)| state.load_acquire() == name)?;
        let head = head.load();
        let count = head.wrapping_shr(8) as usize;
        Some(NamedStack {
            end: head as u8,
            addresses: addresses.iter().take(count).map(W::load),
        })
    }

    /// State, [head](head) and addresses of a slot in which the stack with a name may be.
    #[inline(always)]
    fn slot(&self, name: u64, step: usize) -> Option<(&W, &W, &[W])> {
        let first = name.wrapping_shr(u64::BITS.wrapping_sub(self.slot_bits)) as usize;
        let mask = 1_usize.wrapping_shl(self.slot_bits).wrapping_sub(1);
        let size = SLOT_WORDS.wrapping_add(self.room);
        let at = (first.wrapping_add(step) & mask).wrapping_mul(size);
        let slot = self.words.as_ref().get(at..)?.get(..size)?;
        let [state, head, addresses @ ..] = slot else {
            return None;
        };
        Some((state, head, addresses))
    }
}
