// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Records an event: by a ring, or by write(2).

use crate::process::{
    begin_again, descriptor, header_count, map_ring, request, rings, KeptErrno, WORD_WRITE,
};
use crate::record::Record;
use crate::ring::{Rings, Written};
use libc::c_ulong;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Number of times that a record is tried again in a ring before write(2) records it.
const ATTEMPTS: u32 = 100;

thread_local! {
    /// The life in which this thread got its number, and the number.
    static THREAD: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Records an event by a ring or by write(2). `word` is the event's word.
#[inline(always)]
pub(crate) fn emit(index: u32, word: u32, record: &mut Record) {
    if let Some(rings) = rings() {
        if rings.life() == 0 {
            begin_again(rings);
        }
        let Some((fields, _)) = record.padded() else {
            rings.count_lost(0);
            return;
        };
        if word & WORD_WRITE == 0 && rings.headers().is_some() && by_ring(rings, index, fields) {
            return;
        }
    }
    by_write(index, record);
}

/// Writes a record into a ring, or counts it as lost there. Returns whether it did one of both.
#[inline(always)]
fn by_ring(rings: &Rings, index: u32, fields: &[MaybeUninit<u8>]) -> bool {
    let (mut life, mut number) = THREAD.get();
    if life != rings.life() {
        (life, number) = number_thread(rings);
        THREAD.set((life, number));
    }
    let tag = (u64::from(index) << 10) | (number << 26);
    for _ in 0..ATTEMPTS {
        match rings.write(fields, tag) {
            Written::Done => return true,
            Written::Aborted => {}
            Written::NoRseq => return false,
            Written::Full => match make_room(rings) {
                Room::Made => {}
                Room::None => {
                    rings.count_lost(rings.index());
                    return true;
                }
                Room::NoRing => return false,
            },
        }
    }
    false
}

/// The life, and the number of this thread in it. 0: too many threads have a number.
#[cold]
#[inline(never)]
fn number_thread(rings: &Rings) -> (u64, u64) {
    let _errno = KeptErrno::new();
    // SAFETY: The request has no argument.
    let number = unsafe { libc::ioctl(descriptor(), request::NUMBER_THREAD as _) };
    (rings.life(), u64::try_from(number).unwrap_or(0))
}

/// Whether a ring has room now.
enum Room {
    Made,
    None,
    NoRing,
}

/// Makes room in the ring of this thread, if that is possible.
#[cold]
#[inline(never)]
fn make_room(rings: &Rings) -> Room {
    let _errno = KeptErrno::new();
    let index = rings.index();
    let asked = |request: u32| {
        // SAFETY: The argument is a number.
        unsafe { libc::ioctl(descriptor(), request as _, c_ulong::from(index)) == 0 }
    };
    let header = match rings.header(index) {
        Some(header) if index < header_count() && !header.is_refused() => header,
        _ => return Room::NoRing,
    };
    if header.has_ring() {
        // Once for each half of the ring.
        return match header.may_wake() {
            false => Room::None,
            true if asked(request::WAKE) => Room::Made,
            true => Room::NoRing,
        };
    }
    // Another thread, or the code that this handler of a signal has interrupted, makes a ring.
    if !rings.try_lock() {
        return Room::NoRing;
    }
    if !header.has_ring() {
        let is_added = asked(request::ADD_RING);
        header.set_ring(is_added.then(|| map_ring(index)).flatten());
    }
    rings.unlock();
    match header.has_ring() {
        true => Room::Made,
        false => Room::NoRing,
    }
}

/// Records an event by a call.
#[inline(never)]
fn by_write(index: u32, record: &mut Record) {
    let _errno = KeptErrno::new();
    record.head[1] = index;
    let Some((_, len)) = record.padded() else {
        return;
    };
    // EBADF: nobody records the event any more.
    // SAFETY: The index and the fields follow one another, and were written.
    unsafe {
        let from: *const Record = record;
        let from = from.cast::<u8>().add(size_of::<u32>());
        libc::write(descriptor(), from.cast(), size_of::<u32>() + len);
    }
}

/// Number of records that had no room in a ring.
pub fn lost() -> u64 {
    rings().map_or(0, |rings| rings.lost(header_count()))
}

/// The bytes of fields that [`Record::padded`] has returned.
#[cfg(test)]
pub(crate) fn initialised(fields: &[MaybeUninit<u8>]) -> &[u8] {
    // SAFETY: The record was padded, so all of them were written.
    unsafe { std::slice::from_raw_parts(fields.as_ptr().cast(), fields.len()) }
}
