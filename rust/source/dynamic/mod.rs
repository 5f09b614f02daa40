// SPDX-License-Identifier: GPL-2.0

//! Dynamic events, which users define: at code of the kernel (kprobes), at code of programs (uprobes), and at
//! tracepoints. A [program](program) reads the recorded values from registers and memory.

mod calls;
mod program;
mod sites;
mod traced;

use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::input::dynamic::{Error as Refusal, Name, PlaceBase, ProbeLine, ProbePlace};
use crate::probe::captured::Bytes;
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::stopwatch::Stopwatch;
use crate::probe::Probe;
use crate::source::attached::AttachedProbes;
use crate::source::description::{Description, FullName};
use crate::source::event_source::EventSource;
use crate::source::probe_list::{NewProbe, ProbeList};
use crate::sys::args::Registers;
use crate::sys::errno::{eilseq, enosys};
use crate::sys::kprobe::{CodePlace, Kprobe, Kretprobe, Reached, Registered, Returned};
use crate::sys::nofault::TextParts;
use crate::sys::threads::ProcessMemory;
use crate::sys::uprobe::KeptFile;
use calls::CallsInProgram;
use core::fmt;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};
use program::FetchProgram;
use sites::SitesInProgram;
use traced::AtTracepoint;

/// The maximum size of a record, in bytes.
const LONGEST: usize = 512;

/// An event that a user has defined.
#[pin_data]
pub(crate) struct Dynamic {
    description: Description,
    /// The line that defines the event.
    definition: CString,
    firing: Arc<Firing>,
    /// Held to change the probes, and to switch the hook on or off for them. [`None`] after the event
    /// was removed.
    #[pin]
    hook: Mutex<Option<Hook>>,
}

/// Reads and records the event's fields when the event fires.
#[pin_data]
struct Firing {
    program: FetchProgram,
    /// Times the calls of a function.
    stopwatch: Stopwatch,
    #[pin]
    probes: ListedProbes,
    /// Number of calls in programs whose returns could not be recorded.
    unfollowed: SharedWord,
    /// Number of calls in programs that ended otherwise than by a return.
    unreturned: SharedWord,
}

/// Bytes that a call keeps until its return, before the fields that were read at the call: its begin by the stopwatch, and
/// the number of the fields' bytes.
const CALL: usize = 8 + 2;

/// The mechanism that fires the event. It is switched on while a session records the event.
enum Hook {
    Reached(Kprobe<Firing>),
    Returned(Kretprobe<Firing>),
    InProgram(SitesInProgram),
    ReturnedInProgram(CallsInProgram),
    Traced(AtTracepoint),
}

/// The reason why an event cannot be defined.
pub(crate) enum NoEvent<'a> {
    /// The line is wrong.
    Wrong(Refusal),
    /// A probe is not possible at the place.
    NoProbe {
        place: ProbePlace<'a>,
        at_return: bool,
        error: Error,
    },
    /// Memory is lacking.
    Memory(Error),
}

impl<'a> From<Error> for NoEvent<'a> {
    fn from(error: Error) -> Self {
        Self::Memory(error)
    }
}

impl<'a> From<kernel::alloc::AllocError> for NoEvent<'a> {
    fn from(error: kernel::alloc::AllocError) -> Self {
        Self::Memory(error.into())
    }
}

impl fmt::Display for NoEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(refusal) => write!(f, "{}", refusal.reason),
            Self::Memory(_) => f.write_str("there is no memory"),
            Self::NoProbe {
                place,
                at_return,
                error,
            } => f.write_str(match error.to_errno() {
                errno if errno == enosys().to_errno() && place.is_in_file() => {
                    "this kernel cannot probe programs"
                }
                errno if errno == enosys().to_errno() => {
                    "this kernel checks the prototypes of tracepoints' handlers"
                }
                _ if place.counter != 0 => {
                    "there is no such file, or no code at this place in it, or another probe is there with another counter"
                }
                _ if place.is_in_file() => "there is no such file, or no code at this place in it",
                errno if errno == ENOENT.to_errno() && place.is_tracepoint() => {
                    "the kernel has no such tracepoint"
                }
                errno if errno == ENOENT.to_errno() => "the kernel has no such symbol",
                errno if errno == eilseq().to_errno() => "no instruction begins there",
                errno if errno == EINVAL.to_errno() && *at_return => {
                    "this is no function whose return can be probed"
                }
                errno if errno == EINVAL.to_errno() => "no probe may be there",
                _ => "the kernel refuses a probe there",
            }),
        }
    }
}

impl<'a> NoEvent<'a> {
    /// The reason for an error of the kernel at this place.
    fn at(place: ProbePlace<'a>, at_return: bool, error: Error) -> Self {
        match error {
            ENOMEM => Self::Memory(error),
            error => Self::NoProbe {
                place,
                at_return,
                error,
            },
        }
    }
}

impl NoEvent<'_> {
    /// The place of the error in the line, in bytes.
    pub(crate) fn position(&self) -> usize {
        match self {
            Self::Wrong(refusal) => refusal.at,
            Self::NoProbe { place, .. } => place.at,
            Self::Memory(_) => 0,
        }
    }

    /// The error for the writer of the line.
    pub(crate) fn error(&self) -> Error {
        match self {
            Self::Wrong(_) => EINVAL,
            Self::NoProbe { error, .. } | Self::Memory(error) => *error,
        }
    }
}

impl Dynamic {
    /// Makes an event that no session records yet. May sleep.
    pub(crate) fn new<'a>(probe: ProbeLine<'a>) -> Result<Arc<Self>, NoEvent<'a>> {
        let name = own_name(&probe)?;
        let subsystem = probe.name.and_then(|name| name.subsystem);
        let subsystem = subsystem.unwrap_or(probe.own_subsystem());
        let mut description = Description::new(subsystem.as_bytes(), name.to_bytes())?;
        let mut sites = probe.sites().filter_map(Result::ok);
        let first = sites.next().ok_or(EINVAL)?;
        let program = FetchProgram::new(&probe, &first)?;
        program.describe(&probe, &first, &mut description)?;
        let kind = if probe.place.is_tracepoint() {
            "t"
        } else if probe.at_return {
            "r"
        } else {
            "p"
        };
        let max = match probe.max_active {
            0 => CString::try_from_fmt(fmt!(""))?,
            max => CString::try_from_fmt(fmt!("{max}"))?,
        };
        let definition = CString::try_from_fmt(fmt!(
            "{kind}{}:{subsystem}/{} {}",
            as_str(&max),
            as_str(&name),
            probe.text
        ))?;
        let firing = Arc::pin_init(
            pin_init!(Firing {
                program,
                stopwatch: Stopwatch::best(),
                probes <- ListedProbes::new(),
                unfollowed: SharedWord::new(0),
                unreturned: SharedWord::new(0),
            }),
            GFP_KERNEL,
        )?;
        let hook = Hook::new(&probe, &firing)?;
        Ok(Arc::pin_init(
            pin_init!(Self {
                description,
                definition,
                firing,
                hook <- new_mutex!(Some(hook)),
            }),
            GFP_KERNEL,
        )?)
    }

    /// The line that defines the event.
    pub(crate) fn definition(&self) -> &str {
        as_str(&self.definition)
    }

    /// Retires an event that was removed. If no session records it, `hooks` gets its hook. May sleep.
    pub(crate) fn retire(&self, hooks: &mut RetiredHooks) {
        let mut hook = self.hook.lock();
        if !self.is_recorded() {
            hooks.add(hook.take());
        }
    }

    /// The number of times that the event fired but was not recorded.
    pub(crate) fn missed(&self) -> u64 {
        let hook = self.hook.lock();
        let missed = hook.as_ref().map_or(0, Hook::missed);
        missed.wrapping_add(self.firing.unfollowed.load())
    }

    /// For the returns of a program's function: the number of calls that ended otherwise.
    pub(crate) fn unreturned(&self) -> Option<u64> {
        match *self.hook.lock() {
            Some(Hook::ReturnedInProgram(_)) => Some(self.firing.unreturned.load()),
            _ => None,
        }
    }

    /// Whether a session records the event.
    pub(crate) fn is_recorded(&self) -> bool {
        self.firing.probes.is_any(&NoPreempt::new())
    }
}

impl EventSource for Arc<Dynamic> {
    fn full_name(&self) -> FullName<'_> {
        self.description.full_name()
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.description.field(place)
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }
}

impl ProbeList for Dynamic {
    /// `EINVAL`: the module with the probed code was unloaded; `ENOENT`: the event was removed.
    fn attach(&self, NewProbe { probe, .. }: NewProbe<'_>) -> Result {
        let mut hook = self.hook.lock();
        let hook = (*hook).as_mut().ok_or(ENOENT)?;
        self.firing.probes.attach(probe.clone())?;
        hook.enable().inspect_err(|_| {
            self.firing.probes.detach(&probe, &mut Removed::new());
            if !self.is_recorded() {
                hook.disable();
            }
        })
    }

    fn missed(&self) -> u64 {
        self.hook.lock().as_ref().map_or(0, Hook::missed)
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        let mut hook = self.hook.lock();
        self.firing.probes.detach(probe, removed);
        match &mut *hook {
            Some(hook) if !self.is_recorded() => hook.disable(),
            // Without memory, unwanted breakpoints stay until a task meets them.
            Some(hook) => hook.follow().unwrap_or(()),
            None => {}
        }
    }

    fn follow_tasks(&self) -> Result {
        match &*self.hook.lock() {
            Some(hook) => hook.follow(),
            None => Ok(()),
        }
    }
}

impl Hook {
    fn new<'a>(probe: &ProbeLine<'a>, firing: &Arc<Firing>) -> Result<Self, NoEvent<'a>> {
        let wrong = |error| NoEvent::at(probe.place, probe.at_return, error);
        if let PlaceBase::File(file) = probe.place.base {
            let file = CString::try_from_fmt(fmt!("{file}"))?;
            let file = Arc::new(KeptFile::find(&file).map_err(wrong)?, GFP_KERNEL)?;
            if !probe.at_return {
                let sites = SitesInProgram::new(probe, &file, firing)?;
                return Ok(Self::InProgram(sites));
            }
            let ProbePlace { offset, .. } = probe.place;
            let (returns, max) = (probe.place.returns(), probe.max_active);
            let calls = CallsInProgram::new(file, offset, returns, max, firing.clone());
            return Ok(Self::ReturnedInProgram(calls.map_err(wrong)?));
        }
        Self::in_kernel(probe, firing).map_err(wrong)
    }

    fn in_kernel(probe: &ProbeLine<'_>, firing: &Arc<Firing>) -> Result<Self> {
        let place = match probe.place.base {
            PlaceBase::Symbol(symbol) => {
                let symbol = CString::try_from_fmt(fmt!("{symbol}"))?;
                CodePlace::Symbol(symbol, u32::try_from(probe.place.offset)?)
            }
            PlaceBase::Address(address) => CodePlace::Address(address),
            PlaceBase::Tracepoint(name) => {
                return Ok(Self::Traced(AtTracepoint::new(name, firing.clone())?));
            }
            PlaceBase::File(_) => return Err(EINVAL),
        };
        Ok(if probe.at_return {
            let keeps = CALL + firing.program.most_at_entry();
            Self::Returned(Kretprobe::new(
                place,
                probe.max_active,
                keeps,
                firing.clone(),
            )?)
        } else {
            Self::Reached(Kprobe::new(place, firing.clone())?)
        })
    }

    fn enable(&mut self) -> Result {
        match self {
            Self::Traced(place) => place.enable(),
            Self::Reached(probe) => probe.enable(),
            Self::Returned(probe) => probe.enable(),
            Self::InProgram(probe) => probe.enable(),
            Self::ReturnedInProgram(calls) => calls.enable(),
        }
    }

    /// The number of times that the kernel did not run the hook's handler. A program waits until its handler has run;
    /// [`Firing`] counts the returns that could not be recorded, for each probe that wants the task.
    fn missed(&self) -> u64 {
        match self {
            Self::Reached(probe) => probe.missed(),
            Self::Returned(probe) => probe.missed().wrapping_add(probe.missed_at_once()),
            Self::Traced(place) => place.missed(),
            Self::InProgram(_) | Self::ReturnedInProgram(_) => 0,
        }
    }

    /// Moves a probe of programs to the memory of the tasks that are wanted now. May sleep.
    fn follow(&self) -> Result {
        match self {
            Self::InProgram(probe) => probe.follow(),
            Self::ReturnedInProgram(calls) => calls.follow(),
            Self::Reached(_) | Self::Returned(_) | Self::Traced(_) => Ok(()),
        }
    }

    fn disable(&mut self) {
        match self {
            Self::Traced(place) => place.disable(),
            Self::Reached(probe) => probe.disable(),
            Self::Returned(probe) => probe.disable(),
            Self::InProgram(probe) => probe.disable(),
            Self::ReturnedInProgram(calls) => calls.disable(),
        }
    }
}

/// Hooks of removed events. The drop removes all of them from the kernel, with one wait for each kind. May sleep.
pub(crate) struct RetiredHooks {
    reached: KVec<Kprobe<Firing>>,
    returned: KVec<Kretprobe<Firing>>,
}

impl RetiredHooks {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self {
            reached: KVec::new(),
            returned: KVec::new(),
        }
    }

    /// Adds a hook. Without memory, the hook is removed at once. A hook that is switched off needs no wait, except that
    /// of a kprobe.
    fn add(&mut self, hook: Option<Hook>) {
        let added = match hook {
            Some(Hook::Reached(probe)) => self.reached.push(probe, GFP_KERNEL),
            Some(Hook::Returned(probe)) => self.returned.push(probe, GFP_KERNEL),
            Some(Hook::InProgram(_) | Hook::ReturnedInProgram(_) | Hook::Traced(_)) | None => {
                Ok(())
            }
        };
        // The failed push has dropped the probe.
        let _ = added;
    }
}

impl Drop for RetiredHooks {
    fn drop(&mut self) {
        Registered::unregister(core::mem::take(&mut self.reached));
        Registered::unregister(core::mem::take(&mut self.returned));
    }
}

impl Reached for Firing {
    fn reached(&self, registers: &Registers) {
        self.record(&self.program.fetch(registers), registers);
    }
}

impl Returned for Firing {
    fn called(&self, registers: &Registers, kept: &mut [u8]) {
        let record = self.program.fetch(registers);
        let fields = record.bytes();
        let Some((call, room)) = kept.split_first_chunk_mut::<CALL>() else {
            return;
        };
        if let Some(room) = room.get_mut(..fields.len()) {
            room.copy_from_slice(fields);
        }
        let [began @ .., low, high] = call;
        [*low, *high] = (fields.len() as u16).to_le_bytes();
        // The clock is read last, so that the time for reading fields does not count as part of the call.
        *began = self.stopwatch.read().to_le_bytes();
    }

    fn returned(&self, registers: &Registers, kept: &[u8]) {
        let Some((call, fields)) = kept.split_first_chunk::<CALL>() else {
            return;
        };
        let [began @ .., low, high] = call;
        let took = self.took(u64::from_le_bytes(*began));
        let len = u16::from_le_bytes([*low, *high]);
        let mut record = TextParts::new();
        record.put(fields.get(..len.into()).unwrap_or_default());
        self.program.fetch_at_return(registers, took, &mut record);
        self.record(&record, registers);
    }
}

impl Firing {
    /// Whether tasks with this memory are wanted.
    fn wants(&self, memory: &ProcessMemory<'_>) -> bool {
        let guard = NoPreempt::new();
        let may_want = |probe: &Probe| probe.may_want(memory, &guard);
        self.probes.has_any(may_want, &guard)
    }

    /// Whether the current task is wanted.
    fn wants_current_task(&self) -> bool {
        let guard = NoPreempt::new();
        self.probes.has_any(Probe::wants_current_task, &guard)
    }

    /// Records a call of a tracepoint with these arguments.
    fn fire_called(&self, arguments: &Registers) {
        let record = self.program.fetch(arguments);
        let guard = NoPreempt::new();
        self.probes.handle(&Bytes(record.bytes()), &guard);
    }

    /// Counts a call of the current task whose return cannot be recorded.
    fn miss(&self) {
        self.unfollowed.increment();
        let guard = NoPreempt::new();
        self.probes.for_each(&guard, |probe| {
            if probe.wants_current_task() {
                probe.count_missed(1);
            }
        });
    }

    /// Nanoseconds since a call began.
    fn took(&self, began: u64) -> u64 {
        self.stopwatch.ns_between(began, self.stopwatch.read())
    }

    /// Records values that were read; the code was stopped with these registers.
    fn record(&self, record: &TextParts<LONGEST>, registers: &Registers) {
        let guard = NoPreempt::new();
        let fields = Bytes(record.bytes());
        self.probes
            .handle_interrupted::<LONGEST>(&fields, registers, &guard);
    }
}

/// The event's name: the given one, or a name made from the place, as ftrace does it.
fn own_name(probe: &ProbeLine<'_>) -> Result<CString> {
    if let Some(Name { event, .. }) = probe.name {
        return CString::try_from_fmt(fmt!("{event}"));
    }
    let kind = if probe.at_return { "r" } else { "p" };
    let offset = probe.place.offset;
    let name = match probe.place.base {
        PlaceBase::Symbol(symbol) => CString::try_from_fmt(fmt!("{kind}_{symbol}_{offset}")),
        PlaceBase::Address(address) => CString::try_from_fmt(fmt!("{kind}_{address:#x}")),
        PlaceBase::File(path) => {
            let file = path.rsplit('/').next().unwrap_or("");
            CString::try_from_fmt(fmt!("{kind}_{file}_{offset:#x}"))
        }
        PlaceBase::Tracepoint(name) => CString::try_from_fmt(fmt!("{name}")),
    }?;
    let mut identifier = KVec::new();
    for byte in name.to_bytes().iter().take(63) {
        let is_of_name = byte.is_ascii_alphanumeric();
        identifier.push(if is_of_name { *byte } else { b'_' }, GFP_KERNEL)?;
    }
    CString::try_from_fmt(fmt!("{}", core::str::from_utf8(&identifier)?))
}

fn as_str(text: &CString) -> &str {
    text.to_str().unwrap_or("")
}
