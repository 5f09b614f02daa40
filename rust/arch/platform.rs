// SPDX-License-Identifier: GPL-2.0

//! Implementations of the traits of ring, maps and write side for the words.

use super::chosen::{Chosen, Items};
use super::map::word::{MapWord, SharedMapWord};
use super::record::gate::GateState;
use super::record::gate::Passage;
use super::ring::platform::{Local, Platform, Shared};
use super::ring::slot::{Slot, Slots};
use super::word::{full_barrier, CountAndFlags, LocalWord, SharedWord};

/// Implements a trait for a word by the word's own functions of the same names.
macro_rules! by_own_functions {
    ($trait:ident for $word:ident {
        $(Self::$constructor:ident;)?
        $(fn $name:ident($($arg:ident),*) $(-> $result:ty)?;)*
    }) => {
        impl $trait for $word {
            $(
                #[inline(always)]
                fn $constructor(value: u64) -> Self {
                    Self::$constructor(value)
                }
            )?
            $(
                #[inline(always)]
                fn $name(&self $(, $arg: u64)*) $(-> $result)? {
                    self.$name($($arg),*)
                }
            )*
        }
    };
}

by_own_functions!(Local for LocalWord {
    Self::new;
    fn load() -> u64;
    fn store(value);
    fn compare_exchange(old, new) -> bool;
    fn subtract(value) -> bool;
    fn add(value);
    fn increment();
});

by_own_functions!(Shared for SharedWord {
    Self::new;
    fn load() -> u64;
    fn load_acquire() -> u64;
    fn store(value);
    fn compare_exchange(old, new) -> bool;
});

by_own_functions!(MapWord for LocalWord {
    fn load() -> u64;
    fn load_acquire() -> u64;
    fn store(value);
    fn store_release(value);
    fn compare_exchange(old, new) -> bool;
    fn add(value);
    fn increment();
});

by_own_functions!(SharedMapWord for SharedWord {
    fn load() -> u64;
    fn load_acquire() -> u64;
    fn store(value);
    fn store_release(value);
    fn compare_exchange(old, new) -> bool;
});

impl<P: Platform<Local = LocalWord>, I: Items<Slot<P>>> Slots<P> for Chosen<Slot<P>, I> {
    #[inline(always)]
    fn all(&self) -> &[Slot<P>] {
        self.all()
    }
    #[inline(always)]
    fn open(&self) -> &Slot<P> {
        self.get()
    }
    fn set_open(&self, index: u64) {
        self.choose(index as usize);
    }
}

// SAFETY: The number is 0 until `set_open`, which is a release. All functions that read it are
// acquires.
unsafe impl GateState for CountAndFlags {
    fn new() -> Self {
        // One context may enter before the count is negative.
        Self::new(1)
    }
    #[inline(always)]
    fn enter(&self) -> bool {
        self.take_if_one()
    }
    #[inline(always)]
    fn leave(&self) {
        self.put_back();
    }
    #[inline(always)]
    fn is_nested(&self) -> bool {
        self.count().is_negative()
    }
    #[inline(always)]
    fn is_open(&self) -> bool {
        // `Passage::Open`.
        self.is_one()
    }
    #[inline(always)]
    fn passage(&self) -> Passage {
        match self.number() {
            0 => Passage::Closed,
            1 => Passage::Open,
            2 => Passage::Fenced,
            _ => Passage::Held,
        }
    }
    fn set_open(&self, open: bool) {
        self.set_number(open.into());
    }
    fn change(&self, from: Passage, to: Passage) -> bool {
        self.change_number(from as u32, to as u32)
    }
    fn fence(&self) {
        full_barrier();
    }
    fn is_empty(&self) -> bool {
        self.count().load_acquire() == 1
    }
    #[inline(always)]
    fn set_watched(&self, watched: bool) {
        self.set_flag(watched);
    }
}
