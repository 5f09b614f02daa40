// SPDX-License-Identifier: GPL-2.0

//! The order of memory accesses: a writer and a reader on two CPUs, under loom.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use rtrace_map::pairs::{BeginResult, Pairs};
use rtrace_map::table::{Column, MapShape, Table};
use rtrace_map::word::{MapWord, SharedMapWord};

/// A word that only the writer's CPU writes. For the other CPU its operations are a load and a
/// store.
struct Word(AtomicU64);

impl Word {
    fn change(&self, change: impl FnOnce(u64) -> u64) {
        let new = change(self.0.load(Ordering::Relaxed));
        self.0.store(new, Ordering::Relaxed);
    }
}

impl MapWord for Word {
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

/// The reader sees complete keys and no update that did not begin, and sees no count decrease.
#[test]
fn reader_beside_writer() {
    static IS_SEEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    loom::model(|| {
        let shape = MapShape::new(2, &[Column::Sum], 2).unwrap();
        let words: Box<[Word]> = (0..shape.words())
            .map(|_| Word(AtomicU64::new(0)))
            .collect();
        let table = Arc::new(Table::new(words, shape));
        let writer = {
            let table = table.clone();
            loom::thread::spawn(move || {
                for key in [5, 6, 5] {
                    table.update(&[key, !key], &[10]);
                }
            })
        };
        let read = || {
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
        };
        // Without it, loom runs no reader after the writer's first update.
        loom::thread::yield_now();
        let (first, second) = (read(), read());
        IS_SEEN.fetch_or(first != [0, 0], std::sync::atomic::Ordering::Relaxed);
        assert!(first[0] <= second[0] && first[1] <= second[1]);
        writer.join().unwrap();
        assert_eq!(read(), [2, 1]);
    });
    assert!(
        IS_SEEN.load(std::sync::atomic::Ordering::Relaxed),
        "no reader ran beside the writer"
    );
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
    let words = (0..SharedPairs::words(1)).map(|_| SharedWord(AtomicU64::new(0)));
    Arc::new(Pairs::new(words.collect(), 1))
}

/// Two CPUs end a begin: one of them gets it, with its time.
#[test]
fn one_of_two_ends_gets_the_begin() {
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
#[test]
fn an_end_beside_a_begin() {
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
