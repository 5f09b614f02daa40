// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs, by tables that a tool loads for the files whose code they execute.
//!
//! A table says for each address of a file where a function has its caller's registers. A walk needs the rule of each
//! frame. The rule of an address that was met before is known: that costs some 50 instructions. For another one the file
//! and the table are found. A file without a table is *wanted*: a tool reads its name, makes the table, and loads it.

use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::args::Task;
use crate::sys::cpu;
use crate::sys::irq_work::IrqWork;
use crate::sys::page_vec::PageVec;
use crate::sys::rcu::{RcuArc, Retired};
use crate::sys::user_stack::{
    self, FileIdentity, KnownRules, ProgramFrame, UserPlace, UserStack, UserWalk, WalkState,
};
use crate::sys::wait::WaitQueue;
use crate::unwind::end::StackEnd;
use crate::unwind::processor::Processor;
use crate::unwind::quick::{QuickRule, QUICK_END, QUICK_FP_SAVED, QUICK_FROM_FP};
use crate::unwind::rule::Rule;
use crate::unwind::step::{step, InnermostRegisters, StackWords, UnwindFrame};
use crate::unwind::table::{UnwindTable, WrongTable};
use core::cmp::Ordering;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The processor of this kernel's 64-bit programs.
const PROCESSOR: Processor = match crate::arch::ELF_MACHINE {
    62 => Processor::X86_64,
    _ => Processor::Arm64,
};

// The C code reads the words of rules.
const _: () = {
    let [from_fp, fp_saved, end] = user_stack::RULE_BITS;
    assert!(from_fp == QUICK_FROM_FP && fp_saved == QUICK_FP_SAVED && end == QUICK_END);
};

/// Number of known rules for each CPU. A program needs some hundreds; short programs push out those of others.
const RULES_OF_CPU: usize = 4096;

/// Maximum number of known rules: 16 MiB.
const MAX_RULES: usize = 1 << 20;

/// Maximum number of frames of a stack whose rules are looked up.
const MAX_LOOKUPS: usize = 1024;

/// Maximum number of lists of tables that were replaced, and that a context may still read. To wait for that takes as long
/// as making several tables.
const MAX_REPLACED: usize = 64;

/// Maximum number of bytes of all tables. The table of a file is about a twentieth of its code.
const MAX_TABLE_BYTES: usize = 64 << 20;

/// Maximum number of bytes of a table.
pub(crate) const MAX_TABLE: usize = 32 << 20;

/// All that stacks of programs need. It has memory and follows programs only while it is [in use](Self::begin_use).
#[pin_data]
pub(crate) struct UserStacks {
    #[pin]
    uses: Mutex<Uses>,
    rules: RcuArc<KnownRules>,
    tables: RcuArc<Tables>,
    wanted: Wanted,
    #[pin]
    wake: IrqWork<Arc<WaitQueue>>,
    waiters: Arc<WaitQueue>,
}

struct Uses {
    count: usize,
    replaced: Retired<Tables>,
}

/// The tables, by file.
struct Tables(KVVec<Arc<FileTable>>);

impl Tables {
    /// The table of a file. Any context, NMI included.
    #[inline(always)]
    fn find(&self, file: &FileIdentity) -> Option<&FileTable> {
        let (mut from, mut to) = (0_usize, self.0.len());
        while from < to {
            let middle = from.wrapping_add(to.wrapping_sub(from) / 2);
            let known = self.0.get(middle)?;
            match known.file.cmp(file) {
                Ordering::Equal => return Some(known),
                Ordering::Less => from = middle.wrapping_add(1),
                Ordering::Greater => to = middle,
            }
        }
        None
    }
}

struct FileTable {
    file: FileIdentity,
    /// Number of tables that were loaded before.
    age: u64,
    bytes: PageVec<u8>,
}

/// Reason why a table is not loaded.
pub(crate) enum TableRefusal {
    /// Its bytes are wrong.
    Wrong(WrongTable),
    /// It is for another processor.
    Processor,
    /// Its size is over the limit.
    TooLarge,
    /// There is no memory.
    Memory,
}

impl<E: Into<Error>> From<E> for TableRefusal {
    fn from(_: E) -> Self {
        Self::Memory
    }
}

impl UserStacks {
    /// Without users. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let waiters = Arc::pin_init(WaitQueue::new(), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                uses <- new_mutex!(Uses {
                    count: 0,
                    replaced: Retired::new(),
                }),
                rules: RcuArc::new(),
                tables: RcuArc::new(),
                wanted: Wanted::new(),
                wake <- IrqWork::new(waiters.clone(), |waiters| waiters.wake_all()),
                waiters,
            }),
            GFP_KERNEL,
        )
    }

    /// Takes the stack of the program that runs. The stack is empty if a thread of the kernel runs. No page is faulted in.
    /// Any context, NMI included.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn take(&self, stack: &mut UserStack, guard: &NoPreempt) {
        let Some(rules) = self.rules.get(guard) else {
            return;
        };
        let mut steps = Steps {
            stacks: self,
            walk: UserWalk::new(stack, guard),
            rules,
            guard,
            why_guessed: StackEnd::Whole,
            is_guessed: false,
        };
        let end = steps.finish();
        let raw = end.to_raw(steps.is_guessed);
        steps.walk.stack().end = raw;
    }

    /// The rule of an address of a file; [`None`]: the file has no table.
    #[inline(always)]
    fn rule(&self, file: &FileIdentity, offset: u64, guard: &NoPreempt) -> Option<Rule> {
        let found = self.tables.get(guard)?.find(file)?;
        Some(UnwindTable::of_checked(&found.bytes)?.rule(offset))
    }

    /// Loads the table of a file. It replaces the table that the file had, also one for other contents. If there are too
    /// many bytes, the oldest tables go; rules that are known stay known. May sleep.
    pub(crate) fn load(&self, file: FileIdentity, bytes: PageVec<u8>) -> Result<(), TableRefusal> {
        if bytes.len() > MAX_TABLE {
            return Err(TableRefusal::TooLarge);
        }
        let table = UnwindTable::check(&bytes).map_err(TableRefusal::Wrong)?;
        if table.processor() != PROCESSOR {
            return Err(TableRefusal::Processor);
        }
        // One at a time, and not after the last user.
        let mut uses = self.uses.lock();
        if uses.count == 0 {
            return Ok(());
        }
        let before = self.tables.get_arc();
        let before = before.iter().flat_map(|tables| tables.0.iter());
        let mut kept: KVVec<Arc<FileTable>> = KVVec::new();
        let (mut total, mut age) = (bytes.len(), 0);
        for known in before.filter(|known| known.file.inode() != file.inode()) {
            total += known.bytes.len();
            age = age.max(known.age + 1);
            kept.push(known.clone(), GFP_KERNEL)?;
        }
        let is_full = total > MAX_TABLE_BYTES;
        while total > MAX_TABLE_BYTES {
            let oldest = (0..kept.len()).min_by_key(|at| kept.get(*at).map(|known| known.age));
            match oldest.and_then(|at| kept.remove(at).ok()) {
                Some(oldest) => total -= oldest.bytes.len(),
                None => break,
            }
        }
        let at = kept.partition_point(|known| known.file < file);
        let new = Arc::new(FileTable { file, age, bytes }, GFP_KERNEL)?;
        kept.push(new, GFP_KERNEL)?;
        if let Some(moved) = kept.get_mut(at..) {
            moved.rotate_right(1);
        }
        let tables = Arc::new(Tables(kept), GFP_KERNEL)?;
        self.tables.replace_later(Some(tables), &mut uses.replaced);
        if is_full || uses.replaced.len() >= MAX_REPLACED {
            uses.replaced = Retired::new();
        }
        Ok(())
    }

    /// Waits until a file is wanted, unless `nonblock`, and returns the next one. `EAGAIN`: none is.
    pub(crate) fn next_wanted(&self, nonblock: bool) -> Result<WantedFile> {
        match nonblock {
            true => self.wanted.take().ok_or(EAGAIN),
            false => self.waiters.wait_for(|| self.wanted.take()),
        }
    }

    /// Whether a file is wanted.
    pub(crate) fn is_any_wanted(&self) -> bool {
        self.wanted.any()
    }

    /// Files that were read as wanted, and that still have no table, are wanted again.
    pub(crate) fn want_again(&self) {
        self.wanted.want_again();
    }

    /// The readers of wanted files.
    pub(crate) fn waiters(&self) -> &Arc<WaitQueue> {
        &self.waiters
    }

    /// Begins to use this. May sleep.
    pub(crate) fn begin_use(self: &Arc<Self>) -> Result<UserStacksUse> {
        let mut uses = self.uses.lock();
        if uses.count == 0 {
            let rules = cpu::possible().count().saturating_mul(RULES_OF_CPU);
            let slots = rules.min(MAX_RULES).next_power_of_two() / 2;
            let rules = KnownRules::new(slots.trailing_zeros())?;
            self.rules.replace(Some(Arc::new(rules, GFP_KERNEL)?));
        }
        uses.count += 1;
        Ok(UserStacksUse(self.clone()))
    }
}

/// Keeps the stacks of programs in use.
pub(crate) struct UserStacksUse(Arc<UserStacks>);

impl UserStacksUse {
    /// See [`UserStacks::take`].
    #[inline(always)]
    pub(crate) fn take(&self, stack: &mut UserStack, guard: &NoPreempt) {
        self.0.take(stack, guard);
    }

    /// The stacks that are in use.
    pub(crate) fn stacks(&self) -> &UserStacks {
        &self.0
    }
}

impl Drop for UserStacksUse {
    fn drop(&mut self) {
        let mut uses = self.0.uses.lock();
        uses.count -= 1;
        if uses.count == 0 {
            self.0.rules.replace(None);
            self.0.tables.replace(None);
            uses.replaced = Retired::new();
            self.0.wanted.clear();
        }
    }
}

/// The steps of a walk.
struct Steps<'a> {
    stacks: &'a UserStacks,
    walk: UserWalk<'a>,
    rules: &'a KnownRules,
    guard: &'a NoPreempt,
    /// Whether a frame was found by a frame pointer; and why, if that leads no further.
    is_guessed: bool,
    why_guessed: StackEnd,
}

impl Steps<'_> {
    /// Steps to the end of the stack.
    #[inline(always)]
    fn finish(&mut self) -> StackEnd {
        match self.walk.begin() {
            WalkState::Rule => {}
            WalkState::Narrow => {
                self.walk.follow_narrow();
                self.is_guessed = true;
                return StackEnd::NoRules;
            }
            WalkState::Unreadable => {
                let ip = self.walk.frame().ip;
                self.walk.stack().push(ip);
                return StackEnd::Unreadable;
            }
            _ => return StackEnd::Whole,
        }
        // Contexts that meet the same slot of the rules may each replace the rule that another needs.
        for _ in 0..MAX_LOOKUPS {
            let stepped = match self.walk.go_on(self.rules) {
                WalkState::Rule => self.look_up(),
                WalkState::Limit => Err(StackEnd::Limit),
                WalkState::Unreadable => Err(StackEnd::Unreadable),
                _ => Err(StackEnd::Whole),
            };
            if let Err(end) = stepped {
                return end;
            }
        }
        StackEnd::Limit
    }

    /// Makes the rule of the frame known, or steps to the frame of its caller.
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn look_up(&mut self) -> Result<(), StackEnd> {
        if self.walk.unprobe() {
            return Ok(());
        }
        let frame = unwind_frame(self.walk.frame());
        let address = frame.lookup();
        let before = self.walk.stack().addresses().len();
        let is_innermost = before == 0;
        let (rule, why) = match UserPlace::of(address) {
            UserPlace::File {
                file,
                offset,
                mapping,
            } => match self.stacks.rule(&file, offset, self.guard) {
                Some(rule) => (rule, StackEnd::NoRules),
                None => {
                    self.stacks.want(&file, mapping);
                    (Rule::None, StackEnd::NoTable)
                }
            },
            UserPlace::Memory => (Rule::None, StackEnd::NoRules),
            UserPlace::Changes if !self.is_guessed => {
                self.push(frame.ip)?;
                return Err(StackEnd::MappingsChanging);
            }
            UserPlace::Changes => return Err(StackEnd::MappingsChanging),
            UserPlace::Nothing => {
                if is_innermost {
                    self.push(frame.ip)?;
                }
                // The frame pointer has led nowhere.
                return Err(match self.is_guessed {
                    true => self.why_guessed,
                    false => StackEnd::NoMapping,
                });
            }
        };
        if let Some(quick) = QuickRule::of(PROCESSOR, &rule) {
            if self.walk.keep(self.rules, address, quick.word()) {
                return Ok(());
            }
        }
        self.push(frame.ip)?;
        let is_caller = before == 1 && !frame.is_exact && !self.is_guessed;
        let innermost = (is_innermost || is_caller).then_some(&EntryRegisters);
        let next = step(PROCESSOR, &rule, &frame, innermost, &mut ProgramWords);
        if rule == Rule::None {
            self.why_guessed = why;
            self.walk.move_to(program_frame(next.map_err(|_| why)?));
            self.is_guessed = true;
            return Ok(());
        }
        self.walk.move_to(program_frame(next?));
        Ok(())
    }

    fn push(&mut self, address: u64) -> Result<(), StackEnd> {
        match self.walk.stack().push(address) {
            true => Ok(()),
            false => Err(StackEnd::Limit),
        }
    }
}

fn unwind_frame(frame: ProgramFrame) -> UnwindFrame {
    UnwindFrame {
        ip: frame.ip,
        sp: frame.sp,
        fp: frame.fp,
        kept: frame.kept,
        is_exact: frame.is_exact,
    }
}

fn program_frame(frame: UnwindFrame) -> ProgramFrame {
    ProgramFrame {
        ip: frame.ip,
        sp: frame.sp,
        fp: frame.fp,
        kept: frame.kept,
        is_exact: frame.is_exact,
    }
}

/// The registers of the program at its last entry to the kernel.
struct EntryRegisters;

impl InnermostRegisters for EntryRegisters {
    fn register(&self, number: u8) -> Option<u64> {
        user_stack::entry_register(number)
    }
}

/// The memory of the program that runs.
struct ProgramWords;

impl StackWords for ProgramWords {
    fn word(&mut self, address: u64) -> Option<u64> {
        user_stack::program_word(address)
    }
}

impl UserStacks {
    /// Notes that a file without a table is mapped there by the program that runs.
    #[cold]
    fn want(&self, file: &FileIdentity, mapping: (u64, u64)) {
        let pid = Task::current().tgid();
        if self.wanted.note(file.inode(), pid as u32, mapping) {
            self.wake.queue();
        }
    }
}

/// A file that is wanted: its mapping in a process, which may have ended.
pub(crate) struct WantedFile {
    /// The process, in the initial namespace.
    pub(crate) pid: u32,
    /// The first address of the mapping, and the one after it.
    pub(crate) mapping: (u64, u64),
}

/// Files that are wanted, until a tool has read them. If there are too many at a time, others are wanted when they are met
/// again.
struct Wanted([WantedSlot; 32]);

struct WantedSlot {
    state: SharedWord,
    inode: SharedWord,
    pid: SharedWord,
    start: SharedWord,
    end: SharedWord,
}

/// States of a slot.
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const READY: u64 = 2;
/// A tool has read the file. It is not noted again before the tool has had time to load the table.
const TAKEN: u64 = 3;

impl Wanted {
    fn new() -> Self {
        let slot = || WantedSlot {
            state: SharedWord::new(FREE),
            inode: SharedWord::new(0),
            pid: SharedWord::new(0),
            start: SharedWord::new(0),
            end: SharedWord::new(0),
        };
        Self(core::array::from_fn(|_| slot()))
    }

    /// Notes a file, unless it is noted. Returns whether it was not. Any context, NMI included.
    fn note(&self, inode: u64, pid: u32, (start, end): (u64, u64)) -> bool {
        let is_noted = |slot: &WantedSlot| slot.state.load() >= READY && slot.inode.load() == inode;
        if self.0.iter().any(is_noted) {
            return false;
        }
        let mut slots = self.0.iter();
        let Some(slot) = slots.find(|slot| slot.state.compare_exchange(FREE, CLAIMED)) else {
            return false;
        };
        slot.inode.store(inode);
        slot.pid.store(pid.into());
        slot.start.store(start);
        slot.end.store(end);
        slot.state.store_release(READY);
        true
    }

    fn any(&self) -> bool {
        self.0.iter().any(|slot| slot.state.load() == READY)
    }

    fn take(&self) -> Option<WantedFile> {
        let slot = self
            .0
            .iter()
            .find(|slot| slot.state.load_acquire() == READY)?;
        let file = WantedFile {
            pid: slot.pid.load() as u32,
            mapping: (slot.start.load(), slot.end.load()),
        };
        // Of two readers, one gets the file.
        slot.state.compare_exchange(READY, TAKEN).then_some(file)
    }

    fn want_again(&self) {
        for slot in &self.0 {
            slot.state.compare_exchange(TAKEN, FREE);
        }
    }

    /// Without noting contexts.
    fn clear(&self) {
        for slot in &self.0 {
            slot.state.store(FREE);
        }
    }
}
