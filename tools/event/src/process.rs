// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The state of this program or library: the file `program` of rtrace, the registered events, the rings.
//!
//! A child of fork(2) finds the page of [`Rings`] all zero, at its first record. It then opens the file itself, registers the
//! same events in the same order, so that they have the same indexes, and puts its own file and words in the place of its
//! parent's. So no thread of the child sees another descriptor or another address. If that is not possible, it goes on
//! with write(2) to its parent's file.

use crate::ring::Rings;
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Maximum size in bytes of the text of an event.
pub(crate) const TEXT_MAX: usize = 512;

/// Bit of an event's word: write(2) must record it.
pub(crate) const WORD_WRITE: u32 = 2;

/// Maximum number of events of an open file.
const EVENTS_MAX: usize = 1024;

/// The module's interface: `Documentation/abi-programs.md`.
pub(crate) mod request {
    use super::Layout;

    /// The number of a request, like `_IOC()` of the kernel.
    const fn number(direction: u32, number: u32, size: usize) -> u32 {
        (direction << 30) | ((size as u32) << 16) | (0xF7 << 8) | number
    }

    pub(crate) const REGISTER: u32 = number(1, 9, super::TEXT_MAX + 1);
    pub(crate) const SHARE: u32 = number(2, 10, size_of::<Layout>());
    pub(crate) const ADD_RING: u32 = number(0, 11, 0);
    pub(crate) const NUMBER_THREAD: u32 = number(0, 12, 0);
    pub(crate) const WAKE: u32 = number(0, 13, 0);
}

/// Where the shared memory is, for mmap(2).
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Layout {
    words: u64,
    words_size: u64,
    headers: u64,
    headers_size: u64,
    data: u64,
    ring_size: u64,
    count: u32,
    version: u32,
}

/// The layout, for the slow paths. It is the same in a child.
static LAYOUT: LayoutWords = LayoutWords([const { AtomicU64::new(0) }; 7]);

struct LayoutWords([AtomicU64; 7]);

impl LayoutWords {
    fn store(&self, layout: &Layout) {
        let Layout {
            words,
            words_size,
            headers,
            headers_size,
            data,
            ring_size,
            count,
            version: _,
        } = *layout;
        let all = [words, words_size, headers, headers_size, data, ring_size];
        for (to, from) in self.0.iter().zip(all.into_iter().chain([count.into()])) {
            to.store(from, Ordering::Relaxed);
        }
    }

    fn load(&self) -> Layout {
        let [words, words_size, headers, headers_size, data, ring_size, count] =
            self.0.each_ref().map(|word| word.load(Ordering::Relaxed));
        Layout {
            words,
            words_size,
            headers,
            headers_size,
            data,
            ring_size,
            count: count as u32,
            version: 1,
        }
    }
}

/// The rings. Null: without the file.
static RINGS: AtomicPtr<Rings> = AtomicPtr::new(null_mut());

/// The words of the events. Null: write(2) records all of them.
static WORDS: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());

/// The word of an event if the program has no words: write(2) says whether it is recorded.
static ALWAYS_WRITE: AtomicU32 = AtomicU32::new(WORD_WRITE);

/// The file's descriptor; negative: none.
static FD: AtomicI32 = AtomicI32::new(-1);

/// Whether the file was looked for.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The text of each registered event, by its index.
static TEXTS: [AtomicPtr<c_char>; EVENTS_MAX] = [const { AtomicPtr::new(null_mut()) }; EVENTS_MAX];

/// The process that has a thread which registers an event; 0: none.
static REGISTERING: AtomicI32 = AtomicI32::new(0);

/// Number of lives: a child has another one than its parent.
static LIVES: AtomicU64 = AtomicU64::new(0);

/// Keeps `errno`: the interrupted code may be about to read it.
pub(crate) struct KeptErrno(c_int);

impl KeptErrno {
    pub(crate) fn new() -> Self {
        // SAFETY: The C library returns the address of this thread's variable.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeptErrno {
    fn drop(&mut self) {
        // SAFETY: As above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The right to register events.
struct Turn;

impl Turn {
    /// Waits for it. [`None`]: a thread of the parent had it at the fork.
    fn take() -> Option<Self> {
        // SAFETY: Has no precondition.
        let me = unsafe { libc::getpid() };
        loop {
            match REGISTERING.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Self),
                Err(holder) if holder == me => std::thread::yield_now(),
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        REGISTERING.store(0, Ordering::Release);
    }
}

/// Registers an event. Returns its index and its word.
pub(crate) fn register(text: &'static CStr) -> Option<(u32, &'static AtomicU32)> {
    let _errno = KeptErrno::new();
    let _turn = Turn::take()?;
    if !IS_BEGUN.swap(true, Ordering::Relaxed) {
        begin();
    }
    let index = register_at(FD.load(Ordering::Relaxed), text.as_ptr())?;
    TEXTS
        .get(index)?
        .store(text.as_ptr().cast_mut(), Ordering::Release);
    let words = WORDS.load(Ordering::Relaxed);
    let word = match words.is_null() {
        true => &ALWAYS_WRITE,
        // SAFETY:
        // - The mapping has a word for each index.
        // - It stays until this library is unloaded.
        false => unsafe { &*words.add(index) },
    };
    Some((index as u32, word))
}

/// Registers an event with an open file. `text` ends with a NUL.
fn register_at(fd: c_int, text: *const c_char) -> Option<usize> {
    // SAFETY: The request reads a text.
    let index = unsafe { libc::ioctl(fd, request::REGISTER as _, text) };
    usize::try_from(index).ok()
}

/// Opens the file.
fn open() -> Option<c_int> {
    let paths = [
        c"/sys/kernel/rtrace/program",
        c"/sys/kernel/debug/rtrace/program",
    ];
    paths.into_iter().find_map(|path| {
        // SAFETY: The path ends with a NUL.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        (fd >= 0).then_some(fd)
    })
}

/// Maps a part of the file, or with `fd` -1 new memory.
fn map(fd: c_int, at: u64, size: u64, protection: c_int, flags: c_int) -> Option<*mut c_void> {
    map_at(null_mut(), fd, at, size, protection, flags)
}

fn map_at(
    place: *mut c_void,
    fd: c_int,
    at: u64,
    size: u64,
    protection: c_int,
    flags: c_int,
) -> Option<*mut c_void> {
    // SAFETY: A new mapping; or it replaces the words, which are only read, by words.
    let mapped = unsafe { libc::mmap(place, size as usize, protection, flags, fd, at as _) };
    (mapped != libc::MAP_FAILED).then_some(mapped)
}

/// The layout of the shared memory, which the request makes.
fn share(fd: c_int) -> Option<Layout> {
    let mut layout = Layout::default();
    // SAFETY: The request fills in a layout.
    let result = unsafe { libc::ioctl(fd, request::SHARE as _, &raw mut layout) };
    (result == 0 && layout.version == 1).then_some(layout)
}

const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// The headers of the rings, if this thread could use rings.
fn headers(fd: c_int, layout: &Layout) -> Option<*mut c_void> {
    if layout.count == 0 || !Rings::are_possible() {
        return None;
    }
    let (at, size) = (layout.headers, layout.headers_size);
    map(fd, at, size, READ_WRITE, libc::MAP_SHARED)
}

/// Opens the file, once for the program or library.
fn begin() {
    let Some(fd) = open() else {
        return;
    };
    let size = std::mem::size_of::<Rings>();
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let page = map(-1, 0, size as u64, READ_WRITE, private);
    // SAFETY: The mapping was made above, and nothing else uses it.
    let page =
        page.filter(|&page| unsafe { libc::madvise(page, size, libc::MADV_WIPEONFORK) == 0 });
    let layout = page.and_then(|_| share(fd));
    if let (Some(page), Some(layout)) = (page, layout) {
        LAYOUT.store(&layout);
        let (at, size) = (layout.words, layout.words_size);
        let words = map(fd, at, size, libc::PROT_READ, libc::MAP_SHARED);
        let headers = words.and_then(|_| headers(fd, &layout));
        let page: *mut Rings = page.cast();
        // SAFETY: The memory is aligned, large enough, and all zero, which is a valid value. It is unmapped in `end` only.
        let rings = unsafe { &*page };
        rings.begin(headers, layout.ring_size, next_life());
        WORDS.store(words.unwrap_or(null_mut()).cast(), Ordering::Relaxed);
        RINGS.store(page, Ordering::Release);
    }
    FD.store(fd, Ordering::Release);
    if !is_main_program() {
        // SAFETY: The function is there as long as this library is.
        unsafe { libc::atexit(end) };
    }
}

/// The rings, if the program has the file.
#[inline(always)]
pub(crate) fn rings() -> Option<&'static Rings> {
    // SAFETY: The page is mapped until this library is unloaded.
    unsafe { RINGS.load(Ordering::Acquire).as_ref() }
}

/// The file's descriptor.
pub(crate) fn descriptor() -> c_int {
    FD.load(Ordering::Relaxed)
}

/// Number of headers.
pub(crate) fn header_count() -> u32 {
    LAYOUT.load().count
}

/// Maps the ring with this index.
pub(crate) fn map_ring(index: u32) -> Option<*mut c_void> {
    let layout = LAYOUT.load();
    let size = 2 * layout.ring_size;
    let at = layout.data + u64::from(index) * size;
    map(descriptor(), at, size, READ_WRITE, libc::MAP_SHARED)
}

/// The number of a new life.
fn next_life() -> u64 {
    LIVES.fetch_add(1, Ordering::Relaxed) + 1
}

/// Whether this code is in the main program: its end is that of the process, and its threads may go on recording.
fn is_main_program() -> bool {
    let mut is_main = false;
    // SAFETY: The function gets a pointer that is valid during the call.
    unsafe { libc::dl_iterate_phdr(Some(has_this), (&raw mut is_main).cast()) };
    is_main
}

/// Stores whether the first object, which is the main program, has this code.
///
/// # Safety
///
/// The C library passes a valid object. `found` is a `bool`.
unsafe extern "C" fn has_this(
    object: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: As above; the object has this many segments.
    let (object, segments) = unsafe {
        let object = &*object;
        let count = object.dlpi_phnum.into();
        (object, std::slice::from_raw_parts(object.dlpi_phdr, count))
    };
    let here = (&raw const RINGS) as u64;
    let has_this = segments.iter().any(|segment| {
        let offset = here.wrapping_sub(object.dlpi_addr + segment.p_vaddr);
        segment.p_type == libc::PT_LOAD && offset < segment.p_memsz
    });
    // SAFETY: As above.
    unsafe { found.cast::<bool>().write(has_this) };
    1
}

/// In a child: opens a file of its own.
#[cold]
#[inline(never)]
pub(crate) fn begin_again(rings: &Rings) {
    let _errno = KeptErrno::new();
    if rings.life() != 0 || !rings.try_lock() {
        return;
    }
    if rings.life() == 0 {
        let headers = replace_file();
        rings.begin(headers, LAYOUT.load().ring_size, next_life());
    }
    rings.unlock();
}

/// Puts a new file and its words in the place of the parent's. Returns the headers of the new rings. [`None`]: without
/// rings.
fn replace_file() -> Option<*mut c_void> {
    // A thread of the parent may have registered an event that has no text here yet.
    if REGISTERING.load(Ordering::Acquire) != 0 {
        return None;
    }
    let new = open()?;
    let (headers, is_replaced) = prepare(new);
    if !is_replaced {
        if let Some(headers) = headers {
            // SAFETY: The mapping was made for the new file, and nobody uses it.
            unsafe { libc::munmap(headers, LAYOUT.load().headers_size as usize) };
        }
    }
    // SAFETY: The descriptor was opened by the caller.
    unsafe { libc::close(new) };
    headers.filter(|_| is_replaced)
}

/// Registers the events with the new file, and replaces the old one. Returns headers, if they were mapped, and whether it
/// did.
fn prepare(new: c_int) -> (Option<*mut c_void>, bool) {
    let texts = TEXTS.iter().map(|text| text.load(Ordering::Acquire));
    let mut texts = texts.take_while(|text| !text.is_null()).enumerate();
    if !texts.all(|(index, text)| register_at(new, text) == Some(index)) {
        return (None, false);
    }
    let layout = LAYOUT.load();
    let words = WORDS.load(Ordering::Relaxed);
    if words.is_null() || share(new) != Some(layout) {
        return (None, false);
    }
    let headers = headers(new, &layout);
    let (at, size) = (layout.words, layout.words_size);
    let fixed = |fd, flags| {
        let flags = flags | libc::MAP_FIXED;
        map_at(words.cast(), fd, at, size, libc::PROT_READ, flags).is_some()
    };
    if !fixed(new, libc::MAP_SHARED) {
        // The failed call may have unmapped the old ones. Zeros: nothing is recorded.
        fixed(-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        return (headers, false);
    }
    // SAFETY: The old descriptor is this file's own.
    let moved = unsafe { libc::dup3(new, FD.load(Ordering::Relaxed), libc::O_CLOEXEC) };
    (headers, moved >= 0)
}

/// Before the library is unloaded. None of its threads records any more.
extern "C" fn end() {
    let rings = RINGS.swap(null_mut(), Ordering::AcqRel);
    let layout = LAYOUT.load();
    let unmap = |at: *mut c_void, size: u64| {
        // SAFETY: The mapping is this library's own, and nothing uses it any more.
        unsafe { libc::munmap(at, size as usize) };
    };
    // SAFETY: The page is mapped until the line below.
    if let Some(rings) = unsafe { rings.as_ref() } {
        rings.for_each_mapping(layout.count, |data| unmap(data, 2 * layout.ring_size));
        if let Some(headers) = rings.headers() {
            unmap(headers.cast(), layout.headers_size);
        }
        unmap(
            std::ptr::from_ref(rings).cast_mut().cast(),
            size_of::<Rings>() as u64,
        );
    }
    let words = WORDS.swap(null_mut(), Ordering::Relaxed);
    if !words.is_null() {
        unmap(words.cast(), layout.words_size);
    }
    // SAFETY: The descriptor is this library's own.
    unsafe { libc::close(FD.swap(-1, Ordering::Relaxed)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_abi::ioctl;

    #[test]
    fn the_interface_is_that_of_the_module() {
        assert_eq!(
            [
                request::REGISTER,
                request::SHARE,
                request::ADD_RING,
                request::NUMBER_THREAD,
                request::WAKE
            ],
            [
                ioctl::REGISTER,
                ioctl::SHARE,
                ioctl::ADD_RING,
                ioctl::NUMBER_THREAD,
                ioctl::WAKE
            ]
        );
        assert_eq!(TEXT_MAX + 1, ioctl::REGISTER_TEXT);
        assert_eq!(size_of::<Layout>(), size_of::<ioctl::RingLayout>());
    }

    #[test]
    fn a_test_is_a_main_program() {
        assert!(is_main_program());
    }
}
