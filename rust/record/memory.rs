// SPDX-License-Identifier: GPL-2.0

//! A buffer's memory: the only file that accesses the bytes of a trace.
//!
//! The ring decides which context owns which bytes. The functions here trust the positions that
//! the ring gave to their callers, because a check of each store would cost more than the store.

pub use super::abi::schema::CUT;
use super::ring::consume::Reader;
use super::ring::exchange::{Bank, Vacated};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::{size_of, MaybeUninit};
use core::ptr::{with_exposed_provenance_mut, NonNull};

/// A value that can be written to a record as it is.
///
/// # Safety
///
/// All bytes of a value are initialised: there is no padding.
pub unsafe trait Payload: Copy {
    /// Writes the value at any address, one integer after the other.
    ///
    /// # Safety
    ///
    /// `at` is valid for writes of the value's bytes.
    unsafe fn store(self, at: *mut u8);
}

/// Writes a value at any address.
///
/// # Safety
///
/// `at` is valid for writes of the value's bytes.
#[inline(always)]
unsafe fn write<T: Payload>(value: T, at: *mut u8) {
    // SAFETY: By the contract.
    unsafe {
        if u64::IS_COMPILED {
            at.cast::<T>().write_unaligned(value);
        } else {
            value.store(at);
        }
    }
}

/// An integer, which the processor accesses at any address. In the module `arch` implements it, because for some
/// processors the kernel forbids the compiler to use accesses that are not aligned.
///
/// # Safety
///
/// The type is an integer.
pub unsafe trait UnalignedInteger: Copy {
    /// Whether the compiler accesses an integer at any address by one instruction.
    const IS_COMPILED: bool = true;

    /// Writes the integer at any address.
    ///
    /// # Safety
    ///
    /// `at` is valid for writes of the integer's bytes.
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: By the contract.
        unsafe { at.cast::<Self>().write_unaligned(self) };
    }

    /// Reads the integer at any address.
    ///
    /// # Safety
    ///
    /// `at` is valid for reads of the integer's bytes.
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        // SAFETY: By the contract. An integer has any bits.
        unsafe { at.cast::<Self>().read_unaligned() }
    }
}

#[cfg(not(MODULE))]
macro_rules! integers {
    ($($t:ty),*) => { $(
        // SAFETY: An integer.
        unsafe impl UnalignedInteger for $t {}
    )* };
}
#[cfg(not(MODULE))]
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

// SAFETY: An integer has no padding.
unsafe impl<T: UnalignedInteger> Payload for T {
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: By the contract.
        unsafe { UnalignedInteger::store(self, at) };
    }
}

// SAFETY: `()` has no bytes.
unsafe impl Payload for () {
    #[inline(always)]
    unsafe fn store(self, _at: *mut u8) {}
}

// SAFETY: An array has no padding between its items.
unsafe impl<T: Payload, const N: usize> Payload for [T; N] {
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        // SAFETY: By the contract; the array is another object.
        unsafe { copy((&raw const self).cast(), at, size_of::<Self>()) };
    }
}

/// Defines a struct whose fields are adjacent, as in a record. [`Payload`] must be in scope.
macro_rules! payload {
    (
        $(#[$attr:meta])*
        $vis:vis struct $name:ident { $($field_vis:vis $field:ident: $ty:ty),* $(,)? }
    ) => {
        $(#[$attr])*
        #[repr(C, packed)]
        #[derive(Clone, Copy)]
        $vis struct $name { $($field_vis $field: $ty),* }

        // SAFETY: Packed, so there is no padding between fields, and each field has none.
        unsafe impl Payload for $name where $($ty: Payload),* {
            #[inline(always)]
            unsafe fn store(self, at: *mut u8) {
                $(
                    // SAFETY: By the contract: the field's bytes are among those of the struct.
                    unsafe { { self.$field }.store(at.add(core::mem::offset_of!(Self, $field))) };
                )*
            }
        }
    };
}
pub(crate) use payload;

/// The variable part of a record, after the fixed part. Its size is known when it is recorded.
#[allow(clippy::len_without_is_empty)] // Not needed.
pub trait Tail {
    /// Size in bytes.
    fn len(&self) -> usize;
    /// Writes `len` bytes. If it writes fewer, the other bytes keep their old content.
    fn write(&self, space: Space<'_>);
}

/// The unwritten rest of the bytes that a record has for its tail.
pub struct Space<'a> {
    at: NonNull<u8>,
    left: usize,
    memory: PhantomData<&'a u8>,
}

impl<'a> Space<'a> {
    /// Splits off the next `len` bytes, for a caller that writes all of them. [`None`]: fewer are left.
    #[inline(always)]
    pub fn split_off(&mut self, len: usize) -> Option<RecordWriter<'a>> {
        if len > self.left {
            return None;
        }
        let to = RecordWriter {
            to: self.at,
            memory: PhantomData,
        };
        // SAFETY: At least `len` bytes are left.
        unsafe { self.skip(len) };
        Some(to)
    }

    /// Writes a value; writes nothing if there is no room for it.
    #[inline(always)]
    pub fn put<T: Payload>(&mut self, value: T) {
        if size_of::<T>() > self.left {
            return;
        }
        // SAFETY: At least `size_of::<T>()` bytes are left.
        unsafe {
            write(value, self.at.as_ptr());
            self.skip(size_of::<T>());
        }
    }

    /// Writes bytes; writes nothing if there is no room for all.
    #[inline(always)]
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > self.left {
            return;
        }
        // SAFETY: At least `bytes.len()` bytes are left, and no other code accesses them.
        unsafe {
            copy(bytes.as_ptr(), self.at.as_ptr(), bytes.len());
            self.skip(bytes.len());
        }
    }

    /// # Safety
    ///
    /// At least `len` bytes are left.
    #[inline(always)]
    unsafe fn skip(&mut self, len: usize) {
        // SAFETY: At most one past the end.
        self.at = unsafe { self.at.add(len) };
        self.left = self.left.wrapping_sub(len);
    }
}

/// An empty tail.
impl Tail for () {
    #[inline(always)]
    fn len(&self) -> usize {
        0
    }
    #[inline(always)]
    fn write(&self, _space: Space<'_>) {}
}

/// A tail of a string and its NUL.
#[derive(Clone, Copy)]
pub struct NulTerminated<'a>(pub &'a [u8]);

impl Tail for NulTerminated<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len().wrapping_add(1)
    }
    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        space.put_bytes(self.0);
        space.put(0u8);
    }
}

/// Maximum length in bytes of a text that an event reads; a longer one ends in [`CUT`].
pub const TEXT_MAX: usize = 255;

/// A tail of a string of [`TEXT_MAX`] bytes at most and its NUL.
#[derive(Clone, Copy)]
pub struct CutText<'a>(pub &'a [u8]);

impl Tail for CutText<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len().min(TEXT_MAX).wrapping_add(1)
    }
    #[inline(always)]
    fn write(&self, mut space: Space<'_>) {
        if self.0.len() > TEXT_MAX {
            return self.write_cut(space);
        }
        space.put_bytes(self.0);
        space.put(0u8);
    }
}

impl CutText<'_> {
    #[cold]
    #[inline(never)]
    fn write_cut(&self, mut space: Space<'_>) {
        let kept = self.0.get(..TEXT_MAX.wrapping_sub(CUT.len()));
        space.put_bytes(kept.unwrap_or_default());
        space.put_bytes(&CUT);
        space.put(0u8);
    }
}

/// Memory on the stack for a record of up to `N` bytes, which filters read before it is recorded.
///
/// # Invariants
///
/// `len` is at most `N`. Unless it is 0, the word after `len` bytes is 0.
#[repr(C)]
pub struct Capture<const N: usize> {
    bytes: [MaybeUninit<u8>; N],
    /// Room for the word after the longest record.
    after: MaybeUninit<[u8; size_of::<u64>()]>,
    len: usize,
}

impl<const N: usize> Capture<N> {
    /// Makes an empty capture.
    #[inline(always)]
    #[allow(clippy::new_without_default)] // Not needed.
    pub fn new() -> Self {
        Self {
            bytes: [const { MaybeUninit::uninit() }; N],
            after: MaybeUninit::uninit(),
            len: 0,
        }
    }

    /// Captures the payload that [`Buffer::record_open`](super::buffer::Buffer::record_open) would
    /// record: `len` bytes, all of which `write` writes. [`None`]: there is no room for them.
    #[inline(always)]
    pub fn fill(&mut self, len: u64, write: impl FnOnce(RecordWriter<'_>)) -> Option<Captured<'_>> {
        write(self.begin(len)?);
        Some(self.end())
    }

    /// Returns the place for `len` bytes. [`None`]: there is no room for them.
    #[inline(always)]
    pub fn begin(&mut self, len: u64) -> Option<RecordWriter<'_>> {
        let len = len as usize;
        if len > N {
            return None;
        }
        // INVARIANT: `len` is checked above; the word is written below.
        self.len = len;
        let to = NonNull::from(&mut *self).cast::<u8>();
        // SAFETY: `self` has N bytes and those of a word.
        unsafe { write(0_u64, to.as_ptr().add(len)) };
        let memory = PhantomData;
        Some(RecordWriter { to, memory })
    }

    /// Returns the captured bytes. The caller has written all bytes of the last
    /// [`begin`](Self::begin).
    #[inline(always)]
    pub fn end(&mut self) -> Captured<'_> {
        // INVARIANT: The caller has written the bytes; the word follows by the invariant of `self`.
        Captured {
            len: self.len,
            first: NonNull::from(&mut *self).cast::<u8>(),
            memory: PhantomData,
        }
    }
}

/// A captured payload.
///
/// # Invariants
///
/// At `first` are `len` bytes and, unless `len` is 0, a word that is 0. All are initialised, and no code changes them.
#[derive(Clone, Copy)]
pub struct Captured<'a> {
    first: NonNull<u8>,
    len: usize,
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: The bytes are only read.
unsafe impl Send for Captured<'_> {}

impl<'a> Captured<'a> {
    /// The captured bytes.
    #[inline(always)]
    pub fn fields(self) -> &'a [u8] {
        // SAFETY: By the invariants.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    /// The little-endian number at an offset, of eight bytes or of the rest if the rest is shorter.
    /// [`None`]: no byte is left.
    #[inline(always)]
    pub fn number(self, at: usize) -> Option<u64> {
        // SAFETY: By the invariants these are bytes of the payload and of the word after it, which adds no bits.
        (at < self.len).then(|| unsafe { u64::from_le(u64::load(self.first.as_ptr().add(at))) })
    }
}

/// Returns the bytes of a value as a number, the upper bits 0. [`None`]: the size is not 1, 2, 4 or 8.
#[inline(always)]
pub fn word<T: Payload>(value: T) -> Option<u64> {
    // SAFETY: The pointer is to `size_of::<T>()` bytes, all of which are initialised because a `T` has
    // no padding. Only these bytes are read.
    unsafe {
        let at = &raw const value;
        Some(match size_of::<T>() {
            1 => at.cast::<u8>().read().into(),
            2 => at.cast::<u16>().read_unaligned().into(),
            4 => at.cast::<u32>().read_unaligned().into(),
            8 => at.cast::<u64>().read_unaligned(),
            _ => return None,
        })
    }
}

/// Returns the payload of a record that is only a tail: the number of bytes, and a function that
/// writes them.
#[inline(always)]
pub fn tail_alone<T: Tail>(tail: &T) -> (u64, impl FnOnce(RecordWriter<'_>) + '_) {
    (
        tail.len() as u64,
        #[inline(always)]
        move |to| to.put_tail(tail),
    )
}

/// Contiguous memory. A clone refers to the same bytes.
///
/// # Safety
///
/// [`base`](Self::base) always returns the same value: the address of [`size`](Self::size) bytes.
/// No other code uses these bytes until this value and all its clones are dropped, wherever they
/// are moved.
pub unsafe trait Pages: Clone {
    /// Address of the first byte.
    fn base(&self) -> NonNull<u8>;
    /// Size in bytes.
    fn size(&self) -> usize;
}

/// Address of the first byte, in the form that writers use.
pub(super) fn address(pages: &impl Pages) -> u64 {
    pages.base().as_ptr().expose_provenance() as u64
}

/// The sub-buffers of one CPU: one for each slot, and one for the reader. They are in one bank or two.
#[derive(Debug)]
pub struct Memory<G> {
    /// Read with the ring's one [`Reader`] borrowed; changed with it borrowed mutably.
    banks: [UnsafeCell<Option<G>>; 2],
}

// SAFETY: Plain memory, see `Pages`.
unsafe impl<G: Send> Send for Memory<G> {}
// SAFETY:
// - Writers and the reader never access the same bytes at the same time (ring, I4).
// - A bank is changed only while the one reader is borrowed mutably, see `banks`.
unsafe impl<G: Send + Sync> Sync for Memory<G> {}

impl<G: Pages> Memory<G> {
    /// Makes memory with one bank, the first, of pages that are all zero.
    pub(super) fn new(pages: G) -> Self {
        Self {
            banks: [UnsafeCell::new(Some(pages)), UnsafeCell::new(None)],
        }
    }

    fn cell(&self, bank: Bank) -> &UnsafeCell<Option<G>> {
        let [first, second] = &self.banks;
        match bank {
            Bank::First => first,
            Bank::Second => second,
        }
    }

    /// The pages of a bank, if it has any.
    pub(super) fn pages(&self, _: &Reader, bank: Bank) -> Option<G> {
        // SAFETY: The ring's one reader is borrowed, so no code changes the bank.
        unsafe { (*self.cell(bank).get()).clone() }
    }

    /// Gives pages to a bank that has none. They stay until the bank is [freed](Self::free).
    pub(super) fn add(&self, _: &mut Reader, bank: Bank, pages: G) {
        // SAFETY: The ring's one reader is borrowed mutably, so no other code accesses the bank.
        let bank = unsafe { &mut *self.cell(bank).get() };
        debug_assert!(bank.is_none());
        bank.get_or_insert(pages);
    }

    /// Returns the pages of a bank, which has none afterwards.
    pub(super) fn free(&self, _: &mut Reader, vacated: Vacated) -> Option<G> {
        // SAFETY:
        // - The ring's one reader is borrowed mutably, so no other code accesses the bank.
        // - No slot has memory of the bank, so no writer has an address in it.
        unsafe { (*self.cell(vacated.bank()).get()).take() }
    }

    /// Writes `value` at `at`, a writers' address.
    ///
    /// The caller has reserved these bytes and not committed them.
    #[inline(always)]
    pub(super) fn write<T: Payload>(&self, at: u64, value: T) {
        // SAFETY:
        // - The ring gives positions inside the memory: the index of an existing sub-buffer, and an
        //   offset below the sub-buffer size. A reservation does not cross the sub-buffer's end (I1).
        // - No other context accesses reserved bytes until they are committed (I4).
        unsafe { write(value, with_exposed_provenance_mut(at as usize)) };
    }

    /// Returns a writer for the record at `at`. The contract is that of [`write`](Self::write), for
    /// all its bytes.
    #[inline(always)]
    pub(super) fn record(&self, mut at: u64) -> RecordWriter<'_> {
        // SAFETY: The asm has no effect. It prevents the compiler from keeping the two parts of a
        // sum separate and adding them at each store.
        unsafe {
            asm!("/* {at} */", at = inout(reg) at, options(pure, nomem, nostack, preserves_flags))
        };
        RecordWriter {
            // SAFETY: A position inside the memory, as for `write`; so it is not NULL.
            to: unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(at as usize)) },
            memory: PhantomData,
        }
    }
}

/// The memory of a packet that the reader holds: its pages, and the offset of its first byte. The
/// pages stay allocated while this value exists.
#[derive(Clone, Debug)]
pub struct PacketMemory<G> {
    pages: G,
    at: usize,
}

impl<G: Pages> PacketMemory<G> {
    /// A sub-buffer in these pages, which the reader owns.
    pub(super) fn new(pages: G, at: u64) -> Self {
        Self {
            pages,
            at: at as usize,
        }
    }

    /// The pages, for splice.
    pub fn pages(&self) -> &G {
        &self.pages
    }

    /// Offset of the packet in the pages.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Reads a word of the header.
    pub fn word(&self, at: usize) -> u64 {
        // SAFETY: The bytes of a held packet are in the memory, and no context writes them (I4).
        unsafe { self.first().add(at).cast::<u64>().read_unaligned() }
    }

    /// Returns bytes of the packet.
    pub fn bytes(&self, from: usize, len: usize) -> &[u8] {
        // SAFETY: The bytes of a held packet are in the memory, and no context writes them (I4).
        unsafe { core::slice::from_raw_parts(self.first().add(from).as_ptr(), len) }
    }

    fn first(&self) -> NonNull<u8> {
        // SAFETY: `at` is the offset of a sub-buffer in the pages.
        unsafe { self.pages.base().add(self.at) }
    }

    /// Copies the first `len` bytes to another sub-buffer that the reader owns.
    pub(super) fn copy_to(&self, to: &Self, len: usize) {
        let (from, to) = (self.first(), to.first());
        // SAFETY: Both are in the memory, and are different sub-buffers that the reader owns. No
        // other code accesses them now.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), len) };
    }
}

/// Writes a reserved record, one part after the other. The sizes of the parts add up to the
/// reserved size.
pub struct RecordWriter<'a> {
    to: NonNull<u8>,
    memory: PhantomData<&'a u8>,
}

impl RecordWriter<'_> {
    /// Writes a value.
    #[inline(always)]
    pub fn put<T: Payload>(self, value: T) -> Self {
        // SAFETY: As for `Memory::write`: the value is inside the reserved bytes.
        unsafe {
            write(value, self.to.as_ptr());
            Self {
                to: self.to.add(size_of::<T>()),
                ..self
            }
        }
    }

    /// Writes a value without advancing: the next part overwrites the value or skips it.
    #[inline(always)]
    pub fn put_here<T: Payload>(&self, value: T) {
        // SAFETY: As for `put`.
        unsafe { write(value, self.to.as_ptr()) };
    }

    /// Leaves out `len` bytes, which another part writes.
    #[inline(always)]
    pub fn skip(self, len: usize) -> Self {
        self.split(len).1
    }

    /// Splits into the next `len` bytes and the bytes after them.
    #[inline(always)]
    pub fn split(self, len: usize) -> (Self, Self) {
        // SAFETY: As for `put`: at most one past the end of the reserved bytes.
        let to = unsafe { self.to.add(len) };
        let rest = Self { to, ..self };
        (self, rest)
    }

    /// Address of the next part, for a caller that writes it without this type.
    #[inline(always)]
    pub fn address(&self) -> NonNull<u8> {
        self.to
    }

    /// Writes the tail.
    #[inline(always)]
    pub fn put_tail(self, tail: &impl Tail) {
        let len = tail.len();
        if len == 0 {
            return;
        }
        tail.write(Space {
            at: self.to,
            left: len,
            memory: PhantomData,
        });
    }
}

/// Copies `len` bytes, in steps of eight if there are at least eight. The last step may then overlap
/// the step before it.
///
/// Not a call of memcpy(), because records' tails are short.
///
/// # Safety
///
/// Both pointers are valid for `len` bytes, which do not overlap.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: Each access is of bytes below `len`.
    unsafe {
        if len >= 8 {
            let last = len.wrapping_sub(8);
            copy_word::<u64>(from, to, 0);
            let mut at = 8;
            while at < last {
                copy_word::<u64>(from, to, at);
                at = at.wrapping_add(8);
                // Prevents the compiler from unrolling the loop, which mostly has one or two
                // iterations.
                asm!("", options(nostack, preserves_flags));
            }
            copy_word::<u64>(from, to, last);
            return;
        }
        let mut at = 0;
        if len & 4 != 0 {
            copy_word::<u32>(from, to, at);
            at = 4;
        }
        if len & 2 != 0 {
            copy_word::<u16>(from, to, at);
            at = at.wrapping_add(2);
        }
        if len & 1 != 0 {
            copy_word::<u8>(from, to, at);
        }
    }
}

/// Copies one `T` at offset `at`.
///
/// # Safety
///
/// Both pointers are valid for a `T` at `at`.
#[inline(always)]
unsafe fn copy_word<T: UnalignedInteger>(from: *const u8, to: *mut u8, at: usize) {
    // SAFETY: By the contract.
    unsafe { T::load(from.add(at)).store(to.add(at)) };
}
