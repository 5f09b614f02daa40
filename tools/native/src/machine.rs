// SPDX-License-Identifier: GPL-2.0

//! Access to the machine: the only file of this crate with `unsafe`.

use core::arch::asm;
use core::ffi::{c_int, c_void, CStr};
use core::marker::PhantomData;
use core::ptr::{null, null_mut, NonNull};
use rtrace_arch::word::SharedWord;
use rtrace_record::{gate, memory};
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// Offset of the per-CPU area: 0, because there is one CPU.
static THIS_CPU_OFF: usize = 0;

/// A `T` for the only CPU.
///
/// # Invariants
///
/// `offset` is the address of `value`.
#[derive(Debug)]
pub(crate) struct OneCpu<T> {
    offset: usize,
    value: Arc<T>,
}

impl<T> Clone for OneCpu<T> {
    fn clone(&self) -> Self {
        Self {
            offset: self.offset,
            value: self.value.clone(),
        }
    }
}

impl<T> gate::EachCpu<T, NoPreempt> for OneCpu<T> {
    fn new(make: impl Fn() -> T) -> Option<Self> {
        let value = Arc::new(make());
        // INVARIANT: `offset` is the address of `value`, which an `Arc` does not move.
        Some(Self {
            offset: Arc::as_ptr(&value).expose_provenance(),
            value,
        })
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        self.offset as u64
    }

    /// Adds the offset by the instruction of the module.
    #[inline(always)]
    unsafe fn at<'a>(word: u64, _guard: &NoPreempt) -> &'a T {
        let address: usize;
        // SAFETY:
        // - The instruction adds 0.
        // - By the contract this is the address of a `T` that lives long enough.
        unsafe {
            asm!(
                "add {address}, qword ptr [rip + {off}]",
                address = inout(reg) word as usize => address,
                off = sym THIS_CPU_OFF,
                options(nostack, readonly, pure),
            );
            &*core::ptr::with_exposed_provenance(address)
        }
    }

    fn of(&self, cpu: u32) -> Option<&T> {
        (cpu == 0).then_some(&self.value)
    }

    fn for_each(&self, mut each: impl FnMut(&T)) {
        self.of(0).into_iter().for_each(&mut each);
    }
}

/// The preemption count. Its top bit is set, as in the kernel while no other task wants the CPU. A [`HARDIRQ`]
/// stands for an interrupt.
static PREEMPT_COUNT: AtomicU32 = AtomicU32::new(1 << 31);

/// One interrupt in the preemption count.
const HARDIRQ: u32 = 1 << 16;

/// Runs `handler` as an interrupt. Only on the writer's CPU.
#[inline(always)]
pub(crate) fn interrupt(handler: impl FnOnce()) {
    PREEMPT_COUNT.fetch_add(HARDIRQ, Ordering::Relaxed);
    handler();
    PREEMPT_COUNT.fetch_sub(HARDIRQ, Ordering::Relaxed);
}

/// The level of the current code.
pub(crate) fn level() -> gate::Level {
    match PREEMPT_COUNT.load(Ordering::Relaxed) & HARDIRQ {
        0 => gate::Level::Thread,
        _ => gate::Level::Interrupt,
    }
}

/// A guard that only counts, by the module's instructions. Only on the writer's CPU.
pub(crate) struct NoPreempt(PhantomData<*mut ()>);

impl NoPreempt {
    /// Begins the section.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: Increments the count, in one instruction for code that interrupts.
        unsafe {
            asm!(
                "inc dword ptr [rip + {count}]",
                count = sym PREEMPT_COUNT,
                options(nostack),
            );
        }
        Self(PhantomData)
    }
}

impl Drop for NoPreempt {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: Reverts the increment of `new`. At the point where the kernel would reschedule, the process
        // ends; no rescheduling is ever requested here.
        unsafe {
            asm!(
                "dec dword ptr [rip + {count}]",
                "jnz 2f",
                "ud2",
                "2:",
                count = sym PREEMPT_COUNT,
                options(nostack),
            );
        }
    }
}

/// A place for an `Arc` that is filled once, and never emptied.
///
/// # Invariants
///
/// The word is 0 or the address of a `T` that is never freed. It changes only once.
pub(crate) struct Once<T> {
    pointer: SharedWord,
    data: PhantomData<Arc<T>>,
}

impl<T> Once<T> {
    /// Fills the place. Returns whether it was empty.
    pub(crate) fn set(&self, value: Arc<T>) -> bool {
        // INVARIANT: This reference is never dropped.
        let pointer = Arc::into_raw(value).expose_provenance();
        self.pointer.compare_exchange(0, pointer as u64)
    }
}

impl<T> gate::FilledOnce<T> for Once<T> {
    fn new() -> Self {
        Self {
            pointer: SharedWord::new(0),
            data: PhantomData,
        }
    }

    #[inline(always)]
    fn get(&self) -> Option<&T> {
        let pointer = core::ptr::with_exposed_provenance::<T>(self.pointer.load_acquire() as usize);
        // SAFETY: By the invariant.
        unsafe { pointer.as_ref() }
    }

    #[inline(always)]
    unsafe fn get_filled(&self) -> &T {
        // SAFETY: By the contract and the invariant.
        unsafe {
            let pointer =
                core::ptr::with_exposed_provenance::<T>(self.pointer.load_settled() as usize);
            core::hint::assert_unchecked(!pointer.is_null());
            &*pointer
        }
    }

    fn is_filled(&self) -> bool {
        self.pointer.load() != 0
    }

    // The value stays with the place.
    unsafe fn empty(&self) {}
}

/// Memory that is never freed: a process measures only a few buffers.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: This is plain memory. The owner decides which code writes where.
unsafe impl Send for Pages {}
// SAFETY: As for `Send`.
unsafe impl Sync for Pages {}

impl Pages {
    /// Allocates `bytes` zeroed bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let memory: &mut [u8] = Box::leak(vec![0; bytes].into_boxed_slice());
        // Touches all pages, so that no page fault is measured, as in the module.
        memory.fill(black_box(0));
        Self {
            base: NonNull::from(memory).cast(),
            size: bytes,
        }
    }
}

// SAFETY: The memory is leaked, and no other code knows it.
unsafe impl memory::Pages for Pages {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn size(&self) -> usize {
        self.size
    }
}

static STEPS: AtomicU64 = AtomicU64::new(0);

extern "C" fn stepped(_signal: c_int) {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

/// Number of instructions that this thread executes in user mode for `f`, plus about a dozen.
///
/// The processor's trap flag raises an exception after each instruction; each REP iteration counts as one. That
/// takes some microseconds per instruction.
pub fn count_instructions(f: &mut dyn FnMut()) -> io::Result<u64> {
    handle(libc::SIGTRAP, stepped)?;
    let before = STEPS.load(Ordering::Relaxed);
    // SAFETY: Sets the trap flag, whose handler is installed.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    f();
    // SAFETY: Clears the trap flag.
    unsafe { asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
    Ok(STEPS.load(Ordering::Relaxed) - before)
}

fn handle(signal: c_int, handler: extern "C" fn(c_int)) -> io::Result<()> {
    // SAFETY:
    // - All zero is a valid sigaction.
    // - The handlers of this file call only functions that are allowed in a signal handler.
    let failed = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, null_mut())
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

type Tick = Box<dyn Fn() + Send + Sync>;

/// Null, or the function that the alarm calls. Never freed.
static TICK: AtomicPtr<Tick> = AtomicPtr::new(null_mut());

extern "C" fn alarm(_signal: c_int) {
    // SAFETY: The pointer is null, or valid for ever.
    if let Some(tick) = unsafe { TICK.load(Ordering::Acquire).as_ref() } {
        interrupt(tick);
    }
}

/// A timer signal that interrupts this process's threads, until dropped. There is one at a time.
#[derive(Debug)]
pub struct Alarm(());

impl Alarm {
    /// Calls `tick` in a signal handler every `period_us` microseconds. It must neither lock
    /// nor allocate.
    pub fn new(period_us: u32, tick: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        let tick: Tick = Box::new(tick);
        TICK.store(Box::leak(Box::new(tick)), Ordering::Release);
        handle(libc::SIGALRM, alarm)?;
        Self::set(period_us)?;
        Ok(Self(()))
    }

    fn set(period_us: u32) -> io::Result<()> {
        let period = libc::timeval {
            tv_sec: 0,
            tv_usec: period_us.into(),
        };
        let timer = libc::itimerval {
            it_interval: period,
            it_value: period,
        };
        // SAFETY: Reads `timer`.
        match unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let _ = Self::set(0);
    }
}

/// A function of a loaded library that fires a number of records.
#[derive(Clone, Copy, Debug)]
pub struct Fire(extern "C" fn(u64));

impl Fire {
    /// Calls the function.
    pub fn call(self, records: u64) {
        (self.0)(records);
    }
}

/// A library of the benchmark, which is never unloaded.
#[derive(Debug)]
pub struct Library(*mut c_void);

impl Library {
    /// Loads the library.
    pub fn load(path: &CStr) -> io::Result<Self> {
        // SAFETY: Runs the constructors of a library that belongs to this benchmark.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        if handle.is_null() {
            return Err(Self::error());
        }
        Ok(Self(handle))
    }

    fn error() -> io::Error {
        // SAFETY: The pointer is NULL, or a text that lives until the next dl call.
        let why = unsafe {
            let text = libc::dlerror();
            if text == null::<core::ffi::c_char>().cast_mut() {
                c"unknown"
            } else {
                CStr::from_ptr(text)
            }
        };
        io::Error::other(why.to_string_lossy().into_owned())
    }

    fn symbol(&self, name: &CStr) -> io::Result<*mut c_void> {
        // SAFETY: The library is loaded.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return Err(Self::error());
        }
        Ok(symbol)
    }

    /// Finds the function `void name(uint64_t records)`.
    pub fn fire(&self, name: &CStr) -> io::Result<Fire> {
        let symbol = self.symbol(name)?;
        // SAFETY: In the benchmark's library, the functions that are requested by this method have this
        // prototype.
        Ok(Fire(unsafe {
            core::mem::transmute::<*mut c_void, extern "C" fn(u64)>(symbol)
        }))
    }

    /// Calls the function `int name(void)`. Returns whether its result is not 0.
    pub fn asks(&self, name: &CStr) -> io::Result<bool> {
        let symbol = self.symbol(name)?;
        // SAFETY: In the benchmark's library, the functions that are requested by this method have this
        // prototype.
        let ask = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol) };
        Ok(ask() != 0)
    }
}
