// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The rings of this process, and the restartable sequence that writes a record into one of them.

use std::ffi::c_void;
use std::mem::{offset_of, MaybeUninit};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

/// The header of a ring.
#[repr(C)]
pub(crate) struct Header {
    /// Written by the program: number of bytes ever written, number of lost records.
    head: AtomicU64,
    lost: AtomicU64,
    /// Any use of the program: the ring's mapping, and whether the program cannot have this ring.
    data: AtomicPtr<c_void>,
    is_refused: AtomicU64,
    unused: [u64; 4],
    /// Written by the module: the program may write up to this head; whether the request `WAKE` raises the limit.
    limit: AtomicU64,
    may_wake: AtomicU64,
    unused_too: [u64; 6],
}

const _: () = assert!(size_of::<Header>() == 128 && offset_of!(Header, limit) == 64);

impl Header {
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn has_ring(&self) -> bool {
        !self.data.load(Ordering::Acquire).is_null()
    }

    pub(crate) fn may_wake(&self) -> bool {
        self.may_wake.load(Ordering::Relaxed) != 0
    }

    /// Sets the mapping of the ring. [`None`]: the program cannot have this ring.
    pub(crate) fn set_ring(&self, data: Option<*mut c_void>) {
        match data {
            Some(data) => self.data.store(data, Ordering::Release),
            None => self.is_refused.store(1, Ordering::Relaxed),
        }
    }
}

/// The rings of this process, in a page that a child of fork(2) finds all zero.
#[repr(C)]
pub(crate) struct Rings {
    /// The headers, by index. Null: there are no rings.
    headers: AtomicPtr<Header>,
    /// Size of a ring, minus 1.
    mask: AtomicU64,
    /// Offsets of the C library's rseq area, and of the ring's index, from the thread pointer.
    area: AtomicI64,
    index_at: AtomicI64,
    /// Number of the process's life.
    life: AtomicU64,
    /// 1 while a thread makes a ring, or, in a child, all of this.
    lock: AtomicU64,
}

/// Result of one attempt to write a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a processor without rings has one of them")]
pub(crate) enum Written {
    /// The record is in the ring.
    Done,
    /// There is no ring, or no room in it.
    Full,
    /// The kernel has interrupted the sequence.
    Aborted,
    /// This thread has no rseq area.
    NoRseq,
}

impl Rings {
    /// Whether the C library has rseq areas, and this processor has a sequence.
    pub(crate) fn are_possible() -> bool {
        sequence::area().is_some()
    }

    /// Begins a life. The rings themselves are made later.
    pub(crate) fn begin(&self, headers: Option<*mut c_void>, ring_size: u64, life: u64) {
        if let (Some(headers), Some((area, index_at))) = (headers, sequence::area()) {
            self.mask.store(ring_size - 1, Ordering::Relaxed);
            self.area.store(area, Ordering::Relaxed);
            self.index_at.store(index_at, Ordering::Relaxed);
            self.headers.store(headers.cast(), Ordering::Release);
        }
        self.life.store(life, Ordering::Release);
    }

    /// Number of the process's life. 0: this is a child of the process that began it.
    #[inline(always)]
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn headers(&self) -> Option<*mut Header> {
        let headers = self.headers.load(Ordering::Acquire);
        (!headers.is_null()).then_some(headers)
    }

    /// The header with this index, which is below the layout's count.
    pub(crate) fn header(&self, index: u32) -> Option<&Header> {
        let headers = self.headers()?;
        // SAFETY: The mapping has this many headers, and stays as long as the rings.
        Some(unsafe { &*headers.add(index as usize) })
    }

    /// Index of the ring that this thread would use now.
    pub(crate) fn index(&self) -> u32 {
        sequence::index(self.index_at.load(Ordering::Relaxed))
    }

    /// Counts a record that is lost, in the ring with this index.
    pub(crate) fn count_lost(&self, index: u32) {
        if let Some(header) = self.header(index) {
            header.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of lost records in `count` rings.
    pub(crate) fn lost(&self, count: u32) -> u64 {
        let headers = (0..count).filter_map(|index| self.header(index));
        headers
            .map(|header| header.lost.load(Ordering::Relaxed))
            .sum()
    }

    /// Calls `each` with the mapping of each of `count` rings.
    pub(crate) fn for_each_mapping(&self, count: u32, mut each: impl FnMut(*mut c_void)) {
        for header in (0..count).filter_map(|index| self.header(index)) {
            let data = header.data.swap(null_mut(), Ordering::Relaxed);
            if !data.is_null() {
                each(data);
            }
        }
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.lock.swap(1, Ordering::Acquire) == 0
    }

    pub(crate) fn unlock(&self) {
        self.lock.store(0, Ordering::Release);
    }

    /// Tries once to write a record: fields, a multiple of 8 bytes, and the second word of its header without length and
    /// CPU. There must be headers.
    #[inline(always)]
    pub(crate) fn write(&self, fields: &[MaybeUninit<u8>], tag: u64) -> Written {
        let len = fields.len() as u64 + 16;
        // SAFETY:
        // - The headers are mapped, and those that have a ring point to its mapping, which shows the ring twice.
        // - The length is a multiple of 8, and the fields are as long as it says.
        match unsafe { sequence::attempt(self, fields.as_ptr().cast(), len, tag | (len / 8)) } {
            0 => Written::Done,
            1 => Written::Full,
            2 => Written::Aborted,
            _ => Written::NoRseq,
        }
    }
}

/// Processors and C libraries with a restartable sequence.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod sequence;

/// Others: without rings.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "none.rs"]
mod sequence;

/// Offsets of the rseq area and of the ring's index, from the C library's variables. Null: it does not have them.
#[allow(dead_code, reason = "for processors with rings")]
fn area_at(offset: *const i64, size: *const u32) -> Option<(i64, i64)> {
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: These are the addresses of variables that the C library has set before it starts the program.
    let (offset, size) = unsafe { (*offset, *size) };
    if size == 0 {
        return None;
    }
    // SAFETY: Has no precondition.
    let features = unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) };
    // The kernel keeps the concurrency id (mm_cid). If not, there is a ring for each CPU.
    let index = if features >= MM_CID + 4 { MM_CID } else { CPU };
    Some((offset, offset + index as i64))
}

/// Key of the auxiliary vector: the size of the rseq area that the kernel knows.
const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;

/// Offsets in the rseq area.
const CPU: u64 = 4;
const MM_CID: u64 = 24;

#[cfg(all(test, target_env = "gnu", target_arch = "x86_64"))]
mod tests;
