// SPDX-License-Identifier: GPL-2.0

//! Equations (1) to (4), against the same equations with numbers that never wrap.

use super::model::platform::Narrow;
use super::ring::geometry::Geometry;
use proptest::prelude::*;

/// A position since the beginning of time.
type Unbounded = u128;

struct Spec<const BITS: u32> {
    geometry: Geometry<Narrow<BITS>>,
    size: Unbounded,
    buffer: Unbounded,
}

impl<const BITS: u32> Spec<BITS> {
    const MODULUS: Unbounded = 1 << BITS;

    fn new(size: u64, count: u64) -> Self {
        Self {
            geometry: Geometry::new(size, count).expect("valid sizes"),
            size: size.into(),
            buffer: Unbounded::from(size) * Unbounded::from(count),
        }
    }

    fn word(position: Unbounded) -> u64 {
        (position % Self::MODULUS) as u64
    }

    /// Number of bytes after which a commit counter repeats: its value when positions wrap once.
    fn commits(&self) -> Unbounded {
        Self::MODULUS / (self.buffer / self.size)
    }

    fn check_position(&self, at: Unbounded) {
        let word = Self::word(at);
        let offset = at % self.size;
        let sequence = at / self.size;
        assert_eq!(Unbounded::from(self.geometry.offset(word)), offset);
        assert_eq!(self.geometry.start(word), Self::word(at - offset));
        assert_eq!(
            Unbounded::from(self.geometry.index(word)),
            at % self.buffer / self.size
        );
        assert_eq!(
            Unbounded::from(self.geometry.buffer_offset(word)),
            at % self.buffer
        );
        assert_eq!(
            Unbounded::from(self.geometry.sequence(0, word)),
            sequence % (Self::MODULUS / self.size)
        );
        assert_eq!(
            Unbounded::from(self.geometry.lap(word)),
            at / self.buffer % (Self::MODULUS / self.buffer)
        );
    }

    /// Checks equations (1) and (4): `write` is not before `read`, nor a whole word after it.
    fn check_pair(&self, write: Unbounded, read: Unbounded) {
        let (w, r) = (Self::word(write), Self::word(read));
        let ahead = (write / self.size - read / self.size) * self.size;
        assert_eq!(
            self.geometry.is_full(w, r),
            ahead >= self.buffer,
            "(1) {write} {read}"
        );
        assert_eq!(
            self.geometry.is_being_written(w, r),
            ahead == 0,
            "(4) {write} {read}"
        );
    }

    /// Checks equations (2) and (3), after `commit` bytes were committed in the slot of `at`.
    fn check_commit(&self, at: Unbounded, commit: Unbounded) {
        let word = Self::word(at);
        let before = at / self.buffer * self.size;
        assert_eq!(
            self.geometry.is_ready(word, Self::word(commit)),
            commit == before + self.size,
            "(2) {at} {commit}"
        );
        assert_eq!(
            self.geometry.is_fully_committed(word, Self::word(commit)),
            commit == before,
            "(3) {at} {commit}"
        );
    }

    /// All distinguishable commit counts around that of `at`.
    fn commits_around(&self, at: Unbounded) -> std::ops::Range<Unbounded> {
        let before = at / self.buffer * self.size;
        let first = before.saturating_sub((self.commits() - 1) / 2);
        // One of the two counts compared is `size` greater.
        first..first + self.commits()
    }
}

fn all_sizes(bits: u32) -> impl Iterator<Item = (u64, u64)> {
    (0..bits).flat_map(move |size| (1..bits - size).map(move |count| (1 << size, 1 << count)))
}

#[test]
fn all_positions_8_bits() {
    for (size, count) in all_sizes(8) {
        let spec = Spec::<8>::new(size, count);
        for at in 0..3 * 256 {
            spec.check_position(at);
        }
    }
}

#[test]
fn full_and_being_written_8_bits() {
    for (size, count) in all_sizes(8) {
        let spec = Spec::<8>::new(size, count);
        for read in 0..2 * 256 {
            let start = read - read % spec.size;
            for write in read..start + 256 {
                spec.check_pair(write, read);
            }
        }
    }
}

#[test]
fn ready_and_committed_8_bits() {
    for (size, count) in all_sizes(8) {
        let spec = Spec::<8>::new(size, count);
        for at in 0..3 * 256 {
            for commit in spec.commits_around(at) {
                spec.check_commit(at, commit);
            }
        }
    }
}

#[test]
fn all_positions_16_bits() {
    for (size, count) in all_sizes(16) {
        let spec = Spec::<16>::new(size, count);
        for at in 0..2 << 16 {
            spec.check_position(at);
        }
    }
}

/// All sub-buffers of writer and reader, with all commit counts that a slot can have.
#[test]
fn all_sub_buffers_16_bits() {
    // Smaller sub-buffers give the same results with more bits of the packet number, and take
    // minutes.
    for (size, count) in all_sizes(16).filter(|&(size, _)| size >= 16) {
        let spec = Spec::<16>::new(size, count);
        let step = size as usize;
        for read in (0..2 << 16).step_by(step) {
            for write in (read..read + (1 << 16)).step_by(step) {
                spec.check_pair(write, read);
            }
            let before = read / spec.buffer * spec.size;
            let around = spec.commits_around(read);
            let first = around.start.next_multiple_of(spec.size);
            assert!(around.contains(&before));
            for commit in (first..around.end).step_by(step) {
                spec.check_commit(read, commit);
            }
        }
    }
}

#[test]
fn sampled_16_bits() {
    for (size, count) in all_sizes(16) {
        let spec = Spec::<16>::new(size, count);
        // The step has no common factor with a size.
        for read in (0..2 << 16).step_by(1009) {
            spec.check_position(read);
            let start = read - read % spec.size;
            for write in (read..start + (1 << 16)).step_by(257) {
                spec.check_pair(write, read);
            }
            let near = start + spec.buffer;
            for write in near.saturating_sub(2).max(read)..(near + 2).min(start + (1 << 16)) {
                spec.check_pair(write, read);
            }
            let before = read / spec.buffer * spec.size;
            let around = spec.commits_around(read);
            let near = [before, before + spec.size];
            for commit in around.clone().step_by(509).chain(near) {
                if around.contains(&commit) {
                    spec.check_commit(read, commit);
                }
            }
        }
    }
}

/// The top bits of commit counters have no meaning (Figure 6).
#[test]
fn top_bits_of_commits_do_not_matter() {
    for (size, count) in all_sizes(8) {
        let geometry = Geometry::<Narrow<8>>::new(size, count).expect("valid sizes");
        let top = 256 / count;
        for at in 0..=255 {
            for commit in 0..=255 {
                let same = |a: u64, b: u64| {
                    geometry.is_ready(at, a) == geometry.is_ready(at, b)
                        && geometry.is_fully_committed(at, a) == geometry.is_fully_committed(at, b)
                };
                assert!(same(commit, (commit + top) % 256), "{at} {commit}");
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit() {
    for size in 0..=256 {
        for count in 0..=256 {
            let valid = size > 0
                && count >= 2
                && (size & (size - 1)) == 0
                && (count & (count - 1)) == 0
                && size * count <= 128;
            let geometry = Geometry::<Narrow<8>>::new(size, count);
            assert_eq!(geometry.is_some(), valid, "{size} x {count}");
            if let Some(geometry) = geometry {
                assert_eq!((geometry.size(), geometry.count()), (size, count));
            }
        }
    }
}

proptest! {
    #[test]
    fn random_64_bits(
        size_bits in 0u32..62,
        count_bits in 1u32..62,
        laps in 0u128..4,
        read in any::<u64>(),
        ahead in any::<u64>(),
        near in -3i64..4,
    ) {
        prop_assume!(size_bits + count_bits < 64);
        let spec = Spec::<64>::new(1 << size_bits, 1 << count_bits);
        let read = (laps << 64) + Unbounded::from(read);
        spec.check_position(read);

        let start = read - read % spec.size;
        let last = start + (1 << 64) - 1;
        let edge = start + spec.buffer;
        for write in [
            read + Unbounded::from(ahead),
            edge.wrapping_add_signed(near.into()),
        ] {
            if (read..=last).contains(&write) {
                spec.check_pair(write, read);
            }
        }

        let before = read / spec.buffer * spec.size;
        let around = spec.commits_around(read);
        for commit in [
            before.saturating_add_signed(near.into()),
            (before + spec.size).saturating_add_signed(near.into()),
            around.start + Unbounded::from(ahead) % spec.commits(),
        ] {
            if around.contains(&commit) {
                spec.check_commit(read, commit);
            }
        }
    }
}
