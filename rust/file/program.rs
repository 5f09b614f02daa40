// SPDX-License-Identifier: GPL-2.0

//! `program`: programs register events of their own, and record them. A read returns why the last write was refused.
//!
//! The rights are those of the open file: each process that has it open may register and record.

use crate::abi::ioctl::{
    RingLayout, ADD_RING, NUMBER_THREAD, REGISTER, REGISTER_TEXT, SHARE, WAKE,
};
use crate::arch::preempt::NoPreempt;
use crate::input::caret;
use crate::input::program::{EventDefinition, ProgramLine, ProgramName};
use crate::input::state::Fields;
use crate::session::{RegisteredEvent, Sessions};
use crate::source::description::Description;
use crate::source::program::{describe, infer, ProgramEvent, LONGEST, MAX_INDEX};
use crate::source::rings::shared::{EventTable, SharedRings};
use crate::source::values::Failed;
use crate::sys::bindings::{POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM};
use crate::sys::debugfs::stream::StreamFile;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Dir, PROGRAM, READ};
use crate::sys::errno::enodata;
use crate::sys::mapping::Mapping;
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::rcu::RcuArc;
use crate::sys::signal;
use crate::sys::turn::Turn;
use crate::sys::user_data::UserBytes;
use crate::sys::wait::PollTable;
use core::fmt::{Display, Write};
use kernel::fs::File;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};
use kernel::uaccess::{UserPtr, UserSlice, UserSliceWriter};

/// Creates the file.
pub(super) fn make(dir: &mut Dir, sessions: &Arc<Sessions>) -> Result {
    let sessions = dir.data(sessions.clone())?;
    dir.stream::<ProgramFile>("program", sessions)?;
    dir.text::<ProgramStats>("program_stats", READ, sessions)
}

/// The rings of each program: what the module has taken from them.
struct ProgramStats;

impl TextFile for ProgramStats {
    type Data = Arc<Sessions>;

    fn show(sessions: &Arc<Sessions>, out: &mut Text) -> Result {
        writeln!(
            out,
            "pid uid rings records lost garbage bad_heads late comm"
        )?;
        let total = sessions.rings().for_each(|program, rings| {
            let process = program.process();
            write!(out, "{} {} {rings}", process.pid, program.user)?;
            for count in program.counts.all() {
                write!(out, " {count}")?;
            }
            out.write_char(' ')?;
            let name = process.comm.split(|&byte| byte == 0).next();
            for byte in name.unwrap_or_default().escape_ascii() {
                out.write_char(byte.into())?;
            }
            Ok(out.write_char('\n')?)
        })?;
        out.write_str("total - -")?;
        for count in total {
            write!(out, " {count}")?;
        }
        Ok(out.write_str(" -\n")?)
    }
}

/// Maximum number of events that an open file registers.
const MAX_EVENTS: usize = MAX_INDEX;

/// Size of the index before the fields of a record in binary form. It is little endian and below [`MAX_EVENTS`], so its
/// last byte is 0, which no text has.
const INDEX: usize = 4;

/// Maximum size of a written text.
const TEXT_MAX: usize = 64 << 10;

struct ProgramFile;

/// An open file.
#[pin_data(PinnedDrop)]
struct OpenProgram {
    sessions: Arc<Sessions>,
    /// The events by index, for records in binary form. A place is filled once.
    programs: Arc<EventTable>,
    /// The memory shared with the program, if it has asked for it.
    shared: RcuArc<SharedRings>,
    /// Taken by a registration.
    #[pin]
    registering: Turn,
    #[pin]
    state: Mutex<State>,
}

struct State {
    /// The events by index.
    registered: KVVec<RegisteredEvent>,
    /// Reason why the last write was refused, until it is read.
    refusal: Option<CString>,
}

impl StreamFile for ProgramFile {
    const MODE: u16 = PROGRAM;

    type Data = Arc<Sessions>;
    type Open = Arc<OpenProgram>;

    fn open(sessions: &Arc<Sessions>, _: Rights) -> Result<Arc<OpenProgram>> {
        let mut programs = KVVec::with_capacity(MAX_EVENTS, GFP_KERNEL)?;
        for _ in 0..MAX_EVENTS {
            programs.push(RcuArc::new(), GFP_KERNEL)?;
        }
        let programs = Arc::new(programs, GFP_KERNEL)?;
        let state = State {
            registered: KVVec::new(),
            refusal: None,
        };
        Arc::pin_init(
            pin_init!(OpenProgram {
                sessions: sessions.clone(),
                programs,
                shared: RcuArc::new(),
                registering <- Turn::new(),
                state <- new_mutex!(state),
            }),
            GFP_KERNEL,
        )
    }

    fn write(open: &Arc<OpenProgram>, address: u64, len: usize) -> Result<usize> {
        if len > INDEX + LONGEST {
            return open.write_long(address, len);
        }
        let mut room = UserBytes::<{ INDEX + LONGEST }>::new();
        let bytes = room.read(address, len).ok_or(EFAULT)?;
        match bytes.split_first_chunk() {
            Some((index @ [_, _, _, 0], fields)) => {
                let index = u32::from_le_bytes(*index);
                if open.record(index, fields)? {
                    open.record_for_rings(index, fields);
                }
                Ok(len)
            }
            _ => open.take(bytes),
        }
    }

    /// The reason why the last write was refused, once.
    fn read(open: &Arc<OpenProgram>, out: &mut UserSliceWriter, _: bool) -> Result<usize> {
        let refusal = open.state.lock().refusal.take();
        let text = refusal.as_ref().map_or(&[][..], |text| text.to_bytes());
        let text = text.get(..out.len()).unwrap_or(text);
        out.write_slice(text)?;
        Ok(text.len())
    }

    fn poll(_: &Arc<OpenProgram>, _: &File, _: &PollTable<'_>) -> u32 {
        POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM
    }

    fn ioctl(open: &Arc<OpenProgram>, request: u32, argument: UserPtr) -> Result<isize> {
        let argument = argument.as_const_ptr().addr();
        match request {
            REGISTER => open.register_text(argument as u64),
            SHARE => {
                let layout = open.share()?;
                let to = UserPtr::from_addr(argument);
                let mut out = UserSlice::new(to, size_of::<RingLayout>()).writer();
                out.write_slice(&layout.to_bytes())?;
                Ok(0)
            }
            ADD_RING => {
                open.sessions
                    .rings()
                    .add_ring(&open.shared()?, index(argument)?)?;
                Ok(0)
            }
            NUMBER_THREAD => Ok(open.shared()?.number_thread()? as isize),
            WAKE => {
                open.shared()?.wake(index(argument)?)?;
                Ok(0)
            }
            _ => Err(ENOTTY),
        }
    }

    fn mmap(open: &Arc<OpenProgram>, mapping: &Mapping<'_>) -> Result {
        open.shared()?.map(mapping)
    }

    fn splice(_: &Arc<OpenProgram>, _: &mut Pipe, _: usize) -> Result<usize> {
        Err(EINVAL)
    }
}

impl OpenProgram {
    /// The memory shared with the program. `ENODATA`: there is none.
    fn shared(&self) -> Result<Arc<SharedRings>> {
        self.shared.get_arc().ok_or_else(enodata)
    }

    /// Makes the memory shared with the program. `EBUSY`: there is one. May sleep.
    fn share(&self) -> Result<RingLayout> {
        let _turn = self.registering.take()?;
        if self.shared().is_ok() {
            return Err(EBUSY);
        }
        let shared = SharedRings::new(self.sessions.rings(), &self.programs)?;
        self.sessions.rings().add(&shared)?;
        let added = self.listen(&shared, 0);
        if added.is_err() {
            self.end_sharing(&shared);
        }
        added?;
        let layout = shared.layout();
        self.shared.replace(Some(shared));
        Ok(layout)
    }

    /// Announces the state of the events from index `first` on to the program. A registration calls this. May sleep.
    fn listen(&self, shared: &Arc<SharedRings>, first: usize) -> Result {
        for (index, place) in self.programs.iter().enumerate().skip(first) {
            let Some(event) = place.get_arc() else {
                break;
            };
            event.add_listener(shared, index)?;
        }
        Ok(())
    }

    /// Ends the sharing, after all records were taken. May sleep.
    fn end_sharing(&self, shared: &Arc<SharedRings>) {
        self.sessions.rings().end(shared);
        for event in self.programs.iter().map_while(RcuArc::get_arc) {
            event.rings().remove_listener(shared);
        }
    }

    /// Records the event with this index by its probes. Returns whether a channel takes the event from rings. Errors:
    /// `ENOENT` if there is no such event, and those of [`ProgramEvent::emit`].
    #[inline(never)]
    #[link_section = ".kprobes.text"]
    fn record(&self, index: u32, fields: &[u8]) -> Result<bool> {
        let guard = NoPreempt::new();
        let place = self.programs.get(index as usize).ok_or(ENOENT)?;
        place.get(&guard).ok_or(ENOENT)?.emit(fields, &guard)
    }

    /// Records the event with this index in the channels that take it from rings. May sleep.
    #[cold]
    #[inline(never)]
    fn record_for_rings(&self, index: u32, fields: &[u8]) {
        let place = self.programs.get(index as usize);
        if let Some(event) = place.and_then(RcuArc::get_arc) {
            event.rings().record_now(fields);
        }
    }

    /// Handles a text that is longer than a record.
    fn write_long(&self, address: u64, len: usize) -> Result<usize> {
        if len > TEXT_MAX {
            return Err(E2BIG);
        }
        let mut text = KVVec::new();
        UserSlice::new(UserPtr::from_addr(address as usize), len)
            .read_all(&mut text, GFP_KERNEL)?;
        match text.first_chunk() {
            Some([_, _, _, 0]) => Err(E2BIG),
            _ => self.take(&text),
        }
    }

    /// Executes the lines of a text, and returns the number of bytes up to the first wrong line. If that is the first
    /// line, its error is returned. `EBADF`: there are records, and none of their events is recorded.
    fn take(&self, text: &[u8]) -> Result<usize> {
        let text = core::str::from_utf8(text).map_err(|error| {
            let at = error.valid_up_to();
            self.refuse(format_args!(
                "byte {at} of the text is not UTF-8: write \\xHH"
            ))
        })?;
        let mut taken = Taken::default();
        match self.take_lines(text, &mut taken) {
            Err(error) if taken.bytes == 0 => Err(error),
            Ok(()) if taken.has_records && !taken.is_recorded => Err(EBADF),
            _ => Ok(taken.bytes),
        }
    }

    fn take_lines(&self, text: &str, taken: &mut Taken) -> Result {
        loop {
            signal::go_on()?;
            let rest = text.get(taken.bytes..).unwrap_or("");
            let Some(line) = rest.split_inclusive('\n').next() else {
                return Ok(());
            };
            // Consecutive registrations are one step, so that the metadata of a trace changes once.
            let (mut len, descriptions) = self.descriptions(rest)?;
            if len == 0 {
                let line = line.strip_suffix('\n').unwrap_or(line);
                if let Ok(Some(ProgramLine::Record { name, fields })) = ProgramLine::parse(line) {
                    taken.has_records = true;
                    taken.is_recorded |= self.record_line(line, name, fields)?;
                }
                len = rest.len().min(line.len() + 1);
            }
            self.register(descriptions)?;
            taken.bytes += len;
        }
    }

    /// The events that the first lines of a text register, and the number of bytes of these lines.
    fn descriptions(&self, text: &str) -> Result<(usize, KVec<Description>)> {
        let (mut len, mut all) = (0, KVec::new());
        for line in text.split_inclusive('\n') {
            let parsed = ProgramLine::parse(line.strip_suffix('\n').unwrap_or(line));
            let described = match &parsed {
                Ok(None) => Ok(()),
                Ok(Some(ProgramLine::Record { .. })) => break,
                Ok(Some(ProgramLine::Register(definition))) => {
                    self.describe(definition).and_then(|new| {
                        all.push(new, GFP_KERNEL)?;
                        Ok(())
                    })
                }
                Err(error) if len == 0 => Err(self.refuse_at(line, *error)),
                Err(_) => break,
            };
            match described {
                Ok(()) => len += line.len(),
                Err(error) if len == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok((len, all))
    }

    fn describe(&self, definition: &EventDefinition<'_>) -> Result<Description> {
        describe(definition).inspect_err(|&error| {
            if error == E2BIG {
                self.refuse(format_args!("the fields have more than {LONGEST} bytes"));
            }
        })
    }

    /// Executes [`REGISTER`].
    fn register_text(&self, address: u64) -> Result<isize> {
        let mut room = UserBytes::<REGISTER_TEXT>::new();
        let text = match room.read_text(address) {
            Some(text) => text,
            // It can be read, and has no NUL.
            None if UserBytes::<REGISTER_TEXT>::new()
                .read(address, REGISTER_TEXT)
                .is_some() =>
            {
                return Err(E2BIG)
            }
            None => return Err(EFAULT),
        };
        let text = core::str::from_utf8(text)
            .map_err(|_| self.refuse(format_args!("the text is not UTF-8")))?;
        let definition =
            EventDefinition::parse(text).map_err(|error| self.refuse_at(text, error))?;
        let mut wanted = KVec::new();
        wanted.push(self.describe(&definition)?, GFP_KERNEL)?;
        self.register(wanted)?;
        let description = self.describe(&definition)?;
        let state = self.state.lock();
        let mut registered = state.registered.iter();
        let index = registered.position(|known| known.program.is(&description));
        Ok(index.ok_or(ENOENT)? as isize)
    }

    /// Registers events, except those that this file has registered already.
    fn register(&self, mut descriptions: KVec<Description>) -> Result {
        // One task at a time adds to `registered`.
        let _turn = self.registering.take()?;
        descriptions.retain(|wanted| !self.has(wanted));
        if descriptions.is_empty() {
            return Ok(());
        }
        let known = self.state.lock().registered.len();
        if known + descriptions.len() > MAX_EVENTS {
            self.refuse(format_args!("a file registers {MAX_EVENTS} events at most"));
            return Err(ENOSPC);
        }
        let mut new = KVVec::new();
        let result = self.sessions.register(descriptions, &mut new).inspect_err(|&error| {
            if error == ENOSPC {
                self.refuse(format_args!(
                    "there are too many events of programs, in all or in a trace, or too many with this name and other fields"
                ));
            }
        });
        let first = known;
        let mut state = self.state.lock();
        if let Err(error) = state.registered.reserve(new.len(), GFP_KERNEL) {
            drop(state);
            self.sessions.unregister(&new);
            return Err(error.into());
        }
        for registered in new {
            if let Some(place) = self.programs.get(state.registered.len()) {
                place.replace(Some(registered.program.clone()));
            }
            state.registered.push(registered, GFP_KERNEL)?;
        }
        drop(state);
        if let Ok(shared) = self.shared() {
            self.listen(&shared, first)?;
        }
        result
    }

    fn has(&self, wanted: &Description) -> bool {
        let state = self.state.lock();
        let mut registered = state.registered.iter();
        registered.any(|known| known.program.is(wanted))
    }

    /// Records the event of a line. If this file has no event of the name, first registers one: an event with these fields
    /// that another program has registered, or a new one. Returns whether it is recorded.
    fn record_line(&self, line: &str, name: ProgramName<'_>, fields: Fields<'_>) -> Result<bool> {
        if let Some(recorded) = self.record_registered(line, name, fields)? {
            return Ok(recorded);
        }
        let mut wanted = KVec::new();
        let known = self.sessions.program_for(name, fields)?;
        let description = match known {
            Some(description) => description,
            None => {
                let text =
                    infer(name, fields).map_err(|failed| self.refuse_failed(line, failed))?;
                let definition = EventDefinition::parse(text.as_str())
                    .map_err(|error| self.refuse_at(text.as_str(), error))?;
                self.describe(&definition)?
            }
        };
        wanted.push(description, GFP_KERNEL)?;
        self.register(wanted)?;
        let recorded = self.record_registered(line, name, fields)?;
        Ok(recorded.unwrap_or(false))
    }

    /// Records the event of a line, if this file has registered one of this name. Returns whether it is recorded.
    fn record_registered(
        &self,
        line: &str,
        name: ProgramName<'_>,
        fields: Fields<'_>,
    ) -> Result<Option<bool>> {
        let called = self.called(name)?;
        if !called.is_empty() && !called.iter().any(|program| program.is_recorded()) {
            return Ok(Some(false));
        }
        let mut refusal = None;
        for program in &called {
            let mut bytes = KVVec::new();
            match program.append(&mut fields.clone(), &mut bytes) {
                Ok(()) => {
                    let emitted = program.emit(&bytes, &NoPreempt::new());
                    return match emitted {
                        Ok(has_rings) => {
                            if has_rings {
                                program.rings().record_now(&bytes);
                            }
                            Ok(Some(true))
                        }
                        Err(EBADF) => Ok(Some(false)),
                        Err(error) => Err(error),
                    };
                }
                Err(failed) => refusal = Some(self.refuse_failed(line, failed)),
            }
        }
        refusal.map_or(Ok(None), Err)
    }

    /// The registered events of this name.
    fn called(&self, name: ProgramName<'_>) -> Result<KVec<Arc<ProgramEvent>>> {
        let state = self.state.lock();
        let mut called = KVec::new();
        for RegisteredEvent { program, .. } in &state.registered {
            if program.is_called(name) {
                called.push(program.clone(), GFP_KERNEL)?;
            }
        }
        Ok(called)
    }

    /// Notes why a write is refused, and returns the error for it.
    fn refuse(&self, why: core::fmt::Arguments<'_>) -> Error {
        // Without memory for the text, only the error number remains.
        self.state.lock().refusal = CString::try_from_fmt(fmt!("{why}\n")).ok();
        EINVAL
    }

    fn refuse_at(&self, line: &str, error: caret::Error<impl Display>) -> Error {
        self.refuse(format_args!("{}", error.shown(line)))
    }

    fn refuse_failed(&self, line: &str, failed: Failed<'_>) -> Error {
        match failed {
            Failed::Wrong(error) => self.refuse_at(line, error),
            Failed::Memory => ENOMEM,
        }
    }
}

#[pinned_drop]
impl PinnedDrop for OpenProgram {
    fn drop(self: Pin<&mut Self>) {
        // While the events are recorded.
        if let Ok(shared) = self.shared() {
            self.end_sharing(&shared);
        }
        let registered = core::mem::replace(&mut self.state.lock().registered, KVVec::new());
        self.sessions.unregister(&registered);
    }
}

/// The part of a text that was executed.
#[derive(Default)]
struct Taken {
    /// Its size.
    bytes: usize,
    /// It has a record.
    has_records: bool,
    /// One of its records is recorded.
    is_recorded: bool,
}

/// The index of a ring that is the argument of a request.
fn index(argument: usize) -> Result<u32> {
    argument.try_into().map_err(|_| EINVAL)
}
