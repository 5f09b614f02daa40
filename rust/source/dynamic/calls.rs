// SPDX-License-Identifier: GPL-2.0

//! Calls of a program's function, from its first instruction to one of its return instructions.
//!
//! At both, the stack pointer has the same value. The stacks of a process do not overlap. So the process and the stack
//! pointer name a call until it returns. The program's own return address stays on the stack: exceptions, `longjmp()`
//! and backtraces find what they find without a probe.
//!
//! A call that does not end at a return instruction, but by an exception for instance, is found when the next call
//! begins at its place of the stack.

use super::{Firing, LONGEST};
use crate::arch::registers::Register;
use crate::arch::word::SharedWord;
use crate::map::pairs::{BeginResult, Pairs, PAIR_WORDS};
use crate::sys::args::{Registers, Task};
use crate::sys::kprobe::Reached;
use crate::sys::nofault::TextParts;
use crate::sys::page_words::PageWords;
use crate::sys::threads::ProcessMemory;
use crate::sys::uprobe::{KeptFile, ReachedInProgram, Uprobe};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Number of calls that can be pending, unless the user chooses another one.
const PENDING: usize = 4096;

/// The hook that fires an event when a program's function returns.
pub(super) struct CallsInProgram {
    firing: Arc<Firing>,
    file: Arc<KeptFile>,
    /// Offset of the function in the file.
    entry: u64,
    /// Offsets of its return instructions.
    returns: KVec<u64>,
    /// Maximum number of pending calls.
    pending: usize,
    on: Option<On>,
}

/// The probes while the event is enabled. The entry is disabled first: then the returns of the calls that it has found
/// are found, too.
struct On {
    pending: Arc<Pending>,
    entry: Pin<KBox<Uprobe<AtEntry>>>,
    returns: KVec<Pin<KBox<Uprobe<AtReturn>>>>,
}

/// Calls that have not returned since the event was enabled.
struct Pending {
    firing: Arc<Firing>,
    calls: Pairs<SharedWord, PageWords<SharedWord>>,
    /// The time of the last change of the wanted tasks. A call that was pending then is not recorded: its return may have
    /// been missed, and the call that returns now may be another one.
    changed: SharedWord,
}

/// The first instruction of the function.
struct AtEntry(Arc<Pending>);

/// A return instruction of the function.
struct AtReturn(Arc<Pending>);

impl CallsInProgram {
    /// Makes a disabled hook. `pending` is the maximum number of pending calls; 0: the default. Errors: those of
    /// [`Uprobe::check`]. May sleep.
    pub(super) fn new(
        file: Arc<KeptFile>,
        entry: u64,
        returns: impl Iterator<Item = u64>,
        pending: u32,
        firing: Arc<Firing>,
    ) -> Result<Self> {
        let mut offsets = KVec::new();
        for offset in returns {
            offsets.push(offset, GFP_KERNEL)?;
        }
        let calls = Self {
            firing,
            file,
            entry,
            returns: offsets,
            pending: match pending {
                0 => PENDING,
                pending => pending as usize,
            },
            on: None,
        };
        let On { entry, returns, .. } = calls.probes()?;
        entry.check()?;
        returns.iter().try_for_each(|probe| probe.check())?;
        Ok(calls)
    }

    /// Makes disabled probes, without pending calls. May sleep.
    fn probes(&self) -> Result<On> {
        let bytes = self.firing.program.most_at_entry();
        // The length of the record, and the record.
        let kept = bytes.div_ceil(8).wrapping_add(1);
        let words = Pairs::<SharedWord, PageWords<SharedWord>>::words(self.pending, kept);
        let words = PageWords::new(words, Task::current().cpu() as u32)?;
        let pending = Pending {
            firing: self.firing.clone(),
            calls: Pairs::new(words, self.pending, kept),
            changed: SharedWord::new(0),
        };
        let pending = Arc::new(pending, GFP_KERNEL)?;
        let mut returns = KVec::new();
        let at_return = Arc::new(AtReturn(pending.clone()), GFP_KERNEL)?;
        for offset in &self.returns {
            let probe = Uprobe::new(self.file.clone(), *offset, 0, at_return.clone())?;
            returns.push(probe, GFP_KERNEL)?;
        }
        let at_entry = Arc::new(AtEntry(pending.clone()), GFP_KERNEL)?;
        let entry = Uprobe::new(self.file.clone(), self.entry, 0, at_entry)?;
        Ok(On {
            pending,
            entry,
            returns,
        })
    }

    /// Enables the event, in the memory of the tasks that are wanted. May sleep.
    pub(super) fn enable(&mut self) -> Result {
        if self.on.is_some() {
            return self.follow();
        }
        let on = self.probes()?;
        // A call whose begin is seen shall have its return seen.
        on.returns.iter().try_for_each(|probe| probe.enable())?;
        on.entry.enable()?;
        self.on = Some(on);
        Ok(())
    }

    /// If the event is enabled, moves it to the memory of the tasks that are wanted now. May sleep.
    pub(super) fn follow(&self) -> Result {
        let Some(On {
            pending,
            entry,
            returns,
        }) = &self.on
        else {
            return Ok(());
        };
        let followed = entry.follow();
        let followed = returns.iter().fold(followed, |followed, probe| {
            let result = probe.follow();
            followed.and(result)
        });
        pending.changed.store(pending.firing.stopwatch.read());
        followed
    }

    /// Disables the event. May sleep.
    pub(super) fn disable(&mut self) {
        self.on = None;
    }
}

impl Pending {
    /// The name of the current task's call that begins or returns now.
    fn name(registers: &Registers) -> [u64; PAIR_WORDS] {
        let process = Task::current().tgid() as u64;
        [process, registers.get(Register::STACK)]
    }

    /// Whether a task of the current process is wanted. Its other calls are noted, too, because a task may change its
    /// cgroup between call and return.
    fn wants_current_process(&self) -> bool {
        self.firing.wants_current_task()
            || ProcessMemory::current().is_some_and(|memory| self.firing.wants(&memory))
    }

    /// Notes a call, with the fields that are read at its begin.
    fn begin(&self, registers: &Registers) {
        let mut record: TextParts<LONGEST> = TextParts::new();
        self.firing.program.fetch_at_entry(registers, &mut record);
        let bytes = record.bytes();
        let keep = |kept: &[SharedWord]| {
            let Some((len, kept)) = kept.split_first() else {
                return;
            };
            len.store(bytes.len() as u64);
            for (word, bytes) in kept.iter().zip(bytes.chunks(8)) {
                let mut all = [0; 8];
                all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                word.store(u64::from_le_bytes(all));
            }
        };
        // The clock is read last, so that the time for reading fields does not count as part of the call.
        let now = self.firing.stopwatch.read();
        let begun = self.calls.begin_with(&Self::name(registers), now, keep);
        if begun == BeginResult::New || !self.firing.wants_current_task() {
            return;
        }
        match begun {
            BeginResult::Repeated => self.firing.unreturned.increment(),
            _ => self.firing.miss(),
        }
    }

    /// Records the return of a call.
    fn end(&self, registers: &Registers) {
        let now = self.firing.stopwatch.read();
        let mut record: TextParts<LONGEST> = TextParts::new();
        let end = self.calls.end_with(&Self::name(registers), |kept| {
            let Some((len, kept)) = kept.split_first() else {
                return;
            };
            record = TextParts::new();
            let mut left = len.load() as usize;
            for word in kept {
                record.put_number(word.load(), left.min(8));
                left = left.saturating_sub(8);
            }
        });
        // The call began before the event was enabled.
        let Some(began) = end.since else {
            return;
        };
        let firing = &self.firing;
        if began <= self.changed.load() {
            if firing.wants_current_task() {
                firing.miss();
            }
            return;
        }
        let took = firing.stopwatch.ns_between(began, now);
        firing.program.fetch_at_return(registers, took, &mut record);
        firing.record(&record, registers);
    }
}

impl Reached for AtEntry {
    fn reached(&self, registers: &Registers) {
        self.0.begin(registers);
    }
}

impl Reached for AtReturn {
    fn reached(&self, registers: &Registers) {
        self.0.end(registers);
    }
}

impl ReachedInProgram for AtEntry {
    fn wants(&self, memory: &ProcessMemory<'_>) -> bool {
        self.0.firing.wants(memory)
    }

    fn wants_current_task(&self) -> bool {
        self.0.wants_current_process()
    }
}

impl ReachedInProgram for AtReturn {
    fn wants(&self, memory: &ProcessMemory<'_>) -> bool {
        self.0.firing.wants(memory)
    }

    fn wants_current_task(&self) -> bool {
        self.0.wants_current_process()
    }
}
