// SPDX-License-Identifier: GPL-2.0

//! The order of memory accesses: a writer and a reader on two CPUs, under loom.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use map::pairs::{BeginResult, Pairs};
use map::stacks::Stacks;
use map::table::{Column, MapShape, Table};
use map::word::{MapWord, SharedMapWord};

// The copies in tests/faults use maps of their own.
#[cfg(fault)]
use super::map;
#[cfg(not(fault))]
use rtrace_map as map;

/// A word that only the writer's CPU writes. For the other CPU its operations are a load and a
/// store. Without `ORDERED`, a release or an acquire orders nothing.
struct Word<const ORDERED: bool>(AtomicU64);

impl<const ORDERED: bool> Word<ORDERED> {
    fn change(&self, change: impl FnOnce(u64) -> u64) {
        let new = change(self.0.load(Ordering::Relaxed));
        self.0.store(new, Ordering::Relaxed);
    }
}

impl<const ORDERED: bool> MapWord for Word<ORDERED> {
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> u64 {
        self.0.load(match ORDERED {
            true => Ordering::Acquire,
            false => Ordering::Relaxed,
        })
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn store_release(&self, value: u64) {
        let order = match ORDERED {
            true => Ordering::Release,
            false => Ordering::Relaxed,
        };
        self.0.store(value, order);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let is_same = self.load() == old;
        if is_same {
            self.store(new);
        }
        is_same
    }

    fn add(&self, value: u64) {
        self.change(|old| old.wrapping_add(value));
    }
}

#[cfg_attr(not(fault), test)]
pub fn reader_beside_writer() {
    search::<true>();
}

/// The search fails if the words order nothing.
#[test]
#[should_panic(expected = "an incomplete key")]
fn a_missing_order_is_found() {
    search::<false>();
}

/// The reader sees complete keys and no update that did not begin, and sees no count decrease.
fn search<const ORDERED: bool>() {
    loom::model(|| {
        let shape = MapShape::new(2, &[Column::Sum], 2).unwrap();
        let words: Box<[Word<ORDERED>]> = (0..shape.words())
            .map(|_| Word(AtomicU64::new(0)))
            .collect();
        let table = Arc::new(Table::new(words, shape));
        // loom shows old values to the reader only if it is not the first thread.
        let reader = {
            let table = table.clone();
            loom::thread::spawn(move || {
                let (first, second) = (read(&table), read(&table));
                assert!(first[0] <= second[0] && first[1] <= second[1]);
            })
        };
        for key in [5, 6, 5] {
            table.update(&[key, !key], &[10]);
        }
        reader.join().unwrap();
        assert_eq!(read(&table), [2, 1]);
    });
}

/// Returns the counts of the keys 5 and 6.
fn read<const ORDERED: bool>(table: &Table<Word<ORDERED>, Box<[Word<ORDERED>]>>) -> [u64; 2] {
    let mut counts = [0_u64; 2];
    let result: Result<(), ()> = table.for_each(|entry| {
        let [key, inverse, ..] = entry.key;
        assert_eq!(inverse, !key, "an incomplete key");
        let most = if key == 5 { 2 } else { 1 };
        assert!(entry.count <= most && entry.columns[0] <= 10 * most);
        counts[(key - 5) as usize] += entry.count;
        Ok(())
    });
    result.unwrap();
    counts
}

/// A word that both CPUs write.
struct SharedWord(AtomicU64);

impl SharedMapWord for SharedWord {
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    fn compare_exchange(&self, old: u64, new: u64) -> bool {
        let exchanged = self
            .0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
        exchanged.is_ok()
    }
}

type SharedPairs = Pairs<SharedWord, Box<[SharedWord]>>;

fn pairs() -> Arc<SharedPairs> {
    let words = (0..SharedPairs::words(1, 0)).map(|_| SharedWord(AtomicU64::new(0)));
    Arc::new(Pairs::new(words.collect(), 1, 0))
}

/// Two CPUs end a begin: one of them gets it, with its time.
#[cfg_attr(not(fault), test)]
pub fn one_of_two_ends_gets_the_begin() {
    loom::model(|| {
        let pairs = pairs();
        assert_eq!(pairs.begin(&[1, 2], 5), BeginResult::New);
        let other = {
            let pairs = pairs.clone();
            loom::thread::spawn(move || pairs.end(&[1, 2]).since)
        };
        let mine = pairs.end(&[1, 2]).since;
        let theirs = other.join().unwrap();
        assert!(matches!((mine, theirs), (Some(5), None) | (None, Some(5))));
    });
}

/// A CPU ends and begins a key, while another CPU ends it: each begin has one end, or counts as repeated.
#[cfg_attr(not(fault), test)]
pub fn an_end_beside_a_begin() {
    loom::model(|| {
        let pairs = pairs();
        pairs.begin(&[1, 2], 5);
        let other = {
            let pairs = pairs.clone();
            loom::thread::spawn(move || pairs.end(&[1, 2]))
        };
        let mine = pairs.end(&[1, 2]);
        pairs.begin(&[1, 2], 6);
        let theirs = other.join().unwrap();
        let last = pairs.end(&[1, 2]);
        let all = [mine, theirs, last];
        let mut times: Vec<_> = all.iter().filter_map(|end| end.since).collect();
        times.sort_unstable();
        let repeated: u64 = all.iter().map(|end| end.repeated).sum();
        let is_right = match repeated {
            0 => times == [5, 6],
            _ => repeated == 1 && times == [6],
        };
        assert!(is_right, "{all:?}");
    });
}

type SharedStacks = Stacks<SharedWord, Box<[SharedWord]>>;

fn stacks() -> SharedStacks {
    let words = (0..SharedStacks::words(2, 2)).map(|_| SharedWord(AtomicU64::new(0)));
    Stacks::new(words.collect(), 2, 2)
}

/// Two CPUs name the same stack, and see the whole stack of each name.
#[cfg_attr(not(fault), test)]
pub fn two_cpus_name_a_stack() {
    let known = [8, 9];
    loom::model(move || {
        let stacks = Arc::new(stacks());
        let other = {
            let stacks = stacks.clone();
            loom::thread::spawn(move || stacks.name(&known, 1))
        };
        let mine = stacks.name(&known, 1);
        let found: Option<Vec<u64>> = mine
            .and_then(|name| stacks.find(name))
            .map(|found| found.addresses.collect());
        let theirs = other.join().unwrap();
        assert!(mine.is_some() && mine == theirs, "two names of a stack");
        assert_eq!(found.as_deref(), Some(&known[..]));
    });
}
