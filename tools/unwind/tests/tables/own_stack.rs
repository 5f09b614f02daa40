// SPDX-License-Identifier: GPL-2.0

//! The stack of the test itself, by tables and by the C compiler's library.

use rtrace_unwind::end::StackEnd;
use rtrace_unwind::processor::Processor;
use rtrace_unwind::step::{step, InnermostRegisters, StackWords, UnwindFrame};
use rtrace_unwind::table::UnwindTable;
use std::arch::asm;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use system::code::{mapped_code, maps};

extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        to: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn qsort(
        base: *mut c_void,
        count: usize,
        size: usize,
        compare: extern "C" fn(*const c_void, *const c_void) -> c_int,
    );
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn raise(number: c_int) -> c_int;
}

const SIGUSR1: c_int = 10;

/// The registers of the function that calls this one, in which the code is inlined.
macro_rules! registers {
    () => {{
        let (ip, sp, fp, kept): (u64, u64, u64, u64);
        // SAFETY: The instructions only read registers.
        unsafe {
            asm!(
                "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", "mov {}, rbx",
                out(reg) ip, out(reg) sp, out(reg) fp, out(reg) kept,
                options(nomem, preserves_flags),
            );
        }
        UnwindFrame { ip, sp, fp, kept, is_exact: true }
    }};
}

/// Memory of this process.
struct Memory(File);

impl StackWords for Memory {
    fn word(&mut self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }
}

struct NotKnown;

impl InnermostRegisters for NotKnown {
    fn register(&self, _number: u8) -> Option<u64> {
        None
    }
}

/// Addresses of the stack by tables, and why it ends.
fn by_tables(mut frame: UnwindFrame) -> (Vec<u64>, StackEnd) {
    let mut memory = Memory(File::open("/proc/self/mem").unwrap());
    let mut tables = HashMap::new();
    let mut addresses = Vec::new();
    let maps = maps("self").unwrap();
    while addresses.len() < 200 {
        addresses.push(frame.ip);
        let at = frame.lookup();
        let Some(code) = mapped_code(&maps).find(|code| (code.begin..code.end).contains(&at))
        else {
            return (addresses, StackEnd::NoMapping);
        };
        let blob = tables.entry(code.path).or_insert_with(|| {
            let file = std::fs::read(code.path).unwrap_or_default();
            unwind::compile(&file).unwrap_or_default()
        });
        let Some(table) = UnwindTable::of_checked(blob) else {
            return (addresses, StackEnd::NoTable);
        };
        let rule = table.rule(at - code.begin + code.offset);
        let innermost = (addresses.len() == 1).then_some(&NotKnown);
        match step(Processor::X86_64, &rule, &frame, innermost, &mut memory) {
            Ok(next) => frame = next,
            Err(end) => return (addresses, end),
        }
    }
    (addresses, StackEnd::Limit)
}

extern "C" fn note(context: *mut c_void, to: *mut c_void) -> c_int {
    // SAFETY:
    // - `_Unwind_Backtrace` gives a context.
    // - `to` is the vector of `by_library`.
    unsafe { (*to.cast::<Vec<u64>>()).push(_Unwind_GetIP(context) as u64) };
    0
}

/// Addresses of the stack by the library, from the function that calls this one.
fn by_library() -> Vec<u64> {
    let mut addresses: Vec<u64> = Vec::new();
    // SAFETY: `note` takes a vector.
    unsafe { _Unwind_Backtrace(note, (&raw mut addresses).cast()) };
    addresses
}

/// The stack of a place in the test.
struct Taken {
    tables: Vec<u64>,
    end: StackEnd,
    library: Vec<u64>,
}

thread_local! {
    /// The stacks of the last call of [`take`].
    static TAKEN: RefCell<Option<Taken>> = const { RefCell::new(None) };
}

/// Takes the stack in both ways.
#[inline(never)]
fn take() {
    let frame = registers!();
    let (tables, end) = by_tables(frame);
    let library = by_library();
    TAKEN.set(Some(Taken {
        tables,
        end,
        library,
    }));
    black_box(&frame);
}

/// Compares the stacks that `take` has taken. Returns the number of its callers.
fn compare() -> usize {
    let taken = TAKEN.take().expect("a stack");
    let (tables, library) = (&taken.tables, &taken.library);
    assert_eq!(taken.end, StackEnd::Whole, "{tables:x?}");
    // The two ways begin at other instructions of `take`. The library adds 0 for the caller of the last function.
    let (callers, expected) = (&tables[1..], &library[1..]);
    assert_eq!(callers, expected.strip_suffix(&[0]).unwrap_or(expected));
    callers.len()
}

/// Functions with different sizes of their frames.
#[inline(never)]
fn deep<const SIZE: usize>(depth: usize) -> usize {
    let mut room = [depth; SIZE];
    black_box(&mut room);
    match depth {
        0 => take(),
        depth if depth % 2 == 0 => drop(black_box(deep::<70>(depth - 1))),
        depth => drop(black_box(deep::<3>(depth - 1))),
    }
    black_box(room[SIZE / 2])
}

#[test]
fn is_whole_in_recursion() {
    deep::<3>(30);
    assert!(compare() > 31);
}

extern "C" fn compare_numbers(_a: *const c_void, _b: *const c_void) -> c_int {
    take();
    0
}

#[test]
fn is_whole_below_the_c_library() {
    let mut numbers = [1_u8, 2];
    // SAFETY: The array has two elements of one byte.
    unsafe { qsort((&raw mut numbers).cast(), 2, 1, compare_numbers) };
    assert!(compare() > 3);
}

extern "C" fn handle(_number: c_int) {
    take();
}

#[test]
fn is_whole_in_a_signal_handler() {
    // SAFETY: The handler only uses this thread's data, and `raise` interrupts no code that changes them.
    unsafe {
        signal(SIGUSR1, handle);
        raise(SIGUSR1);
    }
    assert!(compare() > 4);
}
