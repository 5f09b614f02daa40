// SPDX-License-Identifier: GPL-2.0

//! An AUX area between a producer and a reader on two CPUs. Each byte is a `u64` here, whose value
//! is the byte's position.

use super::platform;
use super::ring::aux::Aux;
use super::ring::Mode;
use loom::cell::UnsafeCell;
use loom::sync::Arc;

const SIZE: u64 = 4;

struct Cpus {
    aux: Aux<platform::Cpus>,
    bytes: [UnsafeCell<u64>; SIZE as usize],
}

impl Cpus {
    fn byte(&self, position: u64) -> &UnsafeCell<u64> {
        &self.bytes[self.aux.offset(position) as usize]
    }

    fn write(&self, wanted: u64) {
        let Some(chunk) = self.aux.begin(wanted) else {
            return;
        };
        for at in chunk.position..chunk.position + chunk.len {
            // SAFETY: loom reports a concurrent access.
            self.byte(at).with_mut(|byte| unsafe { *byte = at });
        }
        self.aux.end(chunk, chunk.len);
    }

    /// Reads the unread bytes and frees them in two parts.
    fn read(&self) {
        let tail = self.aux.hold();
        let head = self.aux.head();
        assert!(tail <= head && head - tail <= SIZE);
        let middle = tail + (head - tail).div_ceil(2);
        for part in [tail..middle, middle..head] {
            for at in part.clone() {
                // SAFETY: As above.
                self.byte(at).with(|byte| assert_eq!(unsafe { *byte }, at));
            }
            self.aux.free(part.end);
        }
        self.aux.release();
    }
}

fn search(mode: Mode) {
    let mut search = loom::model::Builder::new();
    search.preemption_bound = Some(3);
    search.check(move || {
        let cpus = Arc::new(Cpus {
            aux: Aux::new(SIZE, mode).unwrap(),
            bytes: std::array::from_fn(|_| UnsafeCell::new(u64::MAX)),
        });
        cpus.write(3);
        let producer = {
            let cpus = cpus.clone();
            loom::thread::spawn(move || [2, 2, 3].map(|wanted| cpus.write(wanted)))
        };
        cpus.read();
        cpus.read();
        producer.join().unwrap();
        cpus.read();
        let counts = cpus.aux.counts();
        assert_eq!(cpus.aux.unread(), 0);
        assert_eq!(counts.collisions, 0);
        assert!(mode == Mode::Overwrite || counts.overwritten == 0);
    });
}

#[test]
fn discard() {
    search(Mode::Discard);
}

#[test]
fn overwrite() {
    search(Mode::Overwrite);
}
