// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The sequence against the module's reader of rings. Memory of this process stands for that of the module.

use super::*;
use crate::record::Record;
use rtrace_program::reader::{Checks, RingReader};
use rtrace_program::shape::ShapePart;
use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::thread;

const SIZE: usize = 64 << 10;

/// Maps `size` bytes of `fd` `times` times in a row; -1: new memory.
fn mapped(fd: i32, size: usize, times: usize) -> *mut c_void {
    let all = libc::PROT_READ | libc::PROT_WRITE;
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: New mappings; the second and later ones replace parts of the first.
    unsafe {
        let at = libc::mmap(null_mut(), size * times, all, private, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        for n in (0..times).filter(|_| fd >= 0) {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            let part = libc::mmap(at.byte_add(n * size), size, all, flags, fd, 0);
            assert_ne!(part, libc::MAP_FAILED);
        }
        at
    }
}

/// Rings for each concurrency id or CPU.
fn rings() -> (&'static Rings, u32) {
    // SAFETY: Has no precondition.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) } as u32;
    // SAFETY: Zeros are valid headers and valid rings.
    let rings = unsafe { &*mapped(-1, size_of::<Rings>(), 1).cast::<Rings>() };
    let headers = mapped(-1, count as usize * size_of::<Header>(), 1);
    rings.begin(Some(headers), SIZE as u64, 1);
    for header in (0..count).filter_map(|index| rings.header(index)) {
        // SAFETY: Makes a file.
        let fd = unsafe { libc::memfd_create(c"ring".as_ptr(), 0) };
        // SAFETY: As above.
        assert_eq!(unsafe { libc::ftruncate(fd, SIZE as i64) }, 0);
        header.set_ring(Some(mapped(fd, SIZE, 2)));
        header.limit.store(SIZE as u64, Ordering::Relaxed);
    }
    (rings, count)
}

/// Thread, number, and a text whose length depends on the number.
fn fields(record: &mut Record, thread: u32, number: u64) {
    record.put(&thread.to_ne_bytes());
    record.put(&number.to_ne_bytes());
    record.put_text(&[b'x'; 100][..(number % 100) as usize]);
}

/// The rings of the test.
static RINGS: AtomicPtr<Rings> = AtomicPtr::new(null_mut());

/// Number of signals that were handled.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// A number of records, each of which is written or lost.
#[derive(Clone, Copy, Default)]
struct Made {
    all: u64,
    written: u64,
}

thread_local! {
    /// Number of this thread, and the records that its handler of signals has made.
    static HANDLER: Cell<(u32, Made)> = const { Cell::new((0, Made { all: 0, written: 0 })) };
}

/// Makes the next record of a thread.
fn write(thread: u32, made: &mut Made) {
    // SAFETY: The test has set it, and it stays.
    let rings = unsafe { &*RINGS.load(Ordering::Relaxed) };
    let mut record = Record::new();
    fields(&mut record, thread, made.all);
    made.all += 1;
    let tag = (3 << 10) | (u64::from(thread) << 26);
    loop {
        match rings.write(record.padded().unwrap().0, tag) {
            Written::Done => break made.written += 1,
            Written::Aborted => {}
            Written::Full => break rings.count_lost(rings.index()),
            Written::NoRseq => panic!("this thread has no rseq"),
        }
    }
}

/// Records in the middle of what the thread does.
extern "C" fn on_signal(_: libc::c_int) {
    let (thread, mut made) = HANDLER.get();
    write(thread, &mut made);
    HANDLER.set((thread, made));
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

struct Any;

impl Checks for Any {
    fn shape(&mut self, _: u32) -> Option<&[ShapePart]> {
        Some(&[ShapePart::Fixed(12), ShapePart::Text])
    }
    fn is_cpu(&self, _: u32) -> bool {
        true
    }
}

/// Checks and counts the records of a ring, and frees their room.
fn read(header: &Header, reader: &mut RingReader, next: &mut [u64]) -> u64 {
    let head = header.head.load(Ordering::Acquire);
    let mut count = 0;
    let Some(piece) = reader.take(head, u64::MAX, SIZE) else {
        return 0;
    };
    let data: *const u8 = header.data.load(Ordering::Relaxed).cast();
    // SAFETY: The ring is mapped twice; no thread writes these bytes before the limit is raised.
    let copy = unsafe { std::slice::from_raw_parts(data.add(piece.from), piece.len) };
    reader.copied(copy, piece, head, u64::MAX);
    while let Some(valid) = reader.peek(copy, &mut Any) {
        let thread = u32::from_ne_bytes(valid.fields[..4].try_into().unwrap());
        let number = u64::from_ne_bytes(valid.fields[4..12].try_into().unwrap());
        let mut expected = Record::new();
        fields(&mut expected, thread, number);
        let (expected, len) = expected.padded().unwrap();
        assert_eq!(valid.fields, &crate::emit::initialised(expected)[..len]);
        assert_eq!((valid.event, valid.thread), (3, thread));
        // The ring has the records of a thread in their order.
        let next = &mut next[thread as usize];
        assert!(number >= *next, "{thread}: {number} after {next}");
        *next = number + 1;
        count += 1;
        reader.advance(&valid);
    }
    header.limit.store(reader.limit(), Ordering::Release);
    count
}

#[test]
fn records_of_many_threads_are_whole() {
    const THREADS: u32 = 4;
    if !Rings::are_possible() {
        eprintln!("the C library has no rseq area here");
        return;
    }
    let (rings, count) = rings();
    RINGS.store(std::ptr::from_ref(rings).cast_mut(), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: The handler does only what a handler may do.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let (is_interrupting, is_done) = (AtomicBool::new(true), AtomicBool::new(false));
    let threads = [const { AtomicU64::new(0) }; THREADS as usize];
    let (made, found) = thread::scope(|scope| {
        let (is_interrupting, is_done, threads) = (&is_interrupting, &is_done, &threads);
        let work = move |thread: u32| {
            HANDLER.set((THREADS + thread, Made::default()));
            // SAFETY: Has no precondition.
            let me = unsafe { libc::pthread_self() };
            threads[thread as usize].store(me, Ordering::Release);
            let mut made = Made::default();
            while is_interrupting.load(Ordering::Acquire) {
                let before = made.written;
                write(thread, &mut made);
                if made.written == before {
                    // The reader shall run.
                    thread::yield_now();
                }
            }
            [made, HANDLER.get().1]
        };
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let reader = scope.spawn(move || {
            let mut readers: Vec<_> = (0..count).map(|_| RingReader::new(SIZE).unwrap()).collect();
            let mut next = vec![[0; 2 * THREADS as usize]; count as usize];
            let mut found = 0;
            loop {
                let is_last = is_done.load(Ordering::Acquire);
                for (index, reader) in (0..count).zip(&mut readers) {
                    let header = rings.header(index).unwrap();
                    found += read(header, reader, &mut next[index as usize]);
                    assert_eq!(
                        (reader.garbage(), reader.bad_heads(), reader.late()),
                        (0, 0, 0)
                    );
                }
                if is_last {
                    break found;
                }
                thread::yield_now();
            }
        });
        for n in 0_u32.. {
            if HANDLED.load(Ordering::Relaxed) >= 10_000 {
                break;
            }
            match threads[(n % THREADS) as usize].load(Ordering::Acquire) {
                0 => {}
                // SAFETY: The thread waits for the end of this loop.
                thread => assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0),
            }
            thread::yield_now();
        }
        is_interrupting.store(false, Ordering::Release);
        let made: Vec<_> = writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect();
        is_done.store(true, Ordering::Release);
        (made, reader.join().unwrap())
    });
    let sum = |each: fn(&Made) -> u64| made.iter().map(each).sum::<u64>();
    assert_eq!(found, sum(|made| made.written));
    assert_eq!(found + rings.lost(count), sum(|made| made.all));
    assert!(found > 0);
}
