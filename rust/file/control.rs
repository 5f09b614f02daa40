// SPDX-License-Identifier: GPL-2.0

//! The tracer's own files, and those of each session.

use super::channel::ChannelTarget;
use super::{latency, map, must_be_one, parse_switch, pipe, setting, trigger, unwind};
use crate::abi;
use crate::context::ContextChoice;
use crate::session::{ChannelId, Session, Sessions, Setting};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE, WRITE};
use crate::sys::privilege::Rights;
use crate::sys::stack::KernelStacks;
use crate::sys::waiters;
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Creates the files of a session's directory, or those of the root for the default session.
pub(super) fn make(dir: &mut Dir, session: &Arc<Session>, in_root: bool) -> Result {
    let target = ChannelTarget::new(session, ChannelId::FIRST);
    setting::make(&mut dir.top(), "", Setting::of_session(in_root), &target)?;
    let data = dir.data(session.clone())?;
    dir.text::<Enable>("enable", READ_WRITE, data)?;
    dir.text::<ErrorLog>("error_log", READ, data)?;
    dir.text::<GraphMissed>("graph_missed", READ, data)?;
    latency::make(dir, &target, data)?;
    pipe::make(dir, data)?;
    trigger::make(dir, data)?;
    map::make(dir, data)
}

/// Creates the files that only the tracer has.
pub(super) fn make_tracer(dir: &mut Dir, sessions: &Arc<Sessions>) -> Result {
    let data = dir.data(sessions.clone())?;
    dir.text::<MarkerOfAll>("marker", WRITE, data)?;
    unwind::make(dir, data)?;
    let session = dir.data(sessions.default().clone())?;
    dir.text::<Version>("version", READ, session)?;
    dir.text::<AvailableEvents>("available_events", READ, session)?;
    dir.text::<AwaitedEvents>("awaited_events", READ, session)?;
    dir.text::<AvailableContexts>("available_contexts", READ, session)?;
    dir.text::<Waiting>("waiting", READ, session)?;
    dir.text::<Stacks>("kernel_stacks", READ_WRITE, session)?;
    dir.text::<ComparedStacks>("compared_stacks", READ, session)
}

/// Creates the files that only a session's directory has.
pub(super) fn make_upkeep(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Marker>("marker", WRITE, session)?;
    dir.text::<FreeBuffer>("free_buffer", WRITE, session)?;
    dir.text::<Reset>("reset", READ_WRITE, session)
}

/// Starts and stops the session.
pub(super) struct Enable;

impl TextFile for Enable {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        out.write_str(if session.is_active() { "1\n" } else { "0\n" })?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        if parse_switch(session, "enable", input)? {
            session.start()
        } else {
            session.stop();
            Ok(())
        }
    }
}

/// Records a written text in all active sessions, as ftrace's `trace_marker`.
struct MarkerOfAll;

impl TextFile for MarkerOfAll {
    type Data = Arc<Sessions>;

    fn show(_: &Arc<Sessions>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(sessions: &Arc<Sessions>, input: &str, _: Rights) -> Result {
        sessions.mark(without_newline(input))
    }
}

/// Records a written text in one session.
struct Marker;

impl TextFile for Marker {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        session.mark(without_newline(input))
    }
}

/// The text of a marker, without the newline that `echo` adds.
fn without_newline(input: &str) -> &str {
    input.strip_suffix('\n').unwrap_or(input)
}

/// Frees the buffers of the last trace.
struct FreeBuffer;

impl TextFile for FreeBuffer {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        must_be_one(session, "free_buffer", input)?;
        session.free_buffers()
    }
}

/// The settings that are not the defaults. A write resets them.
struct Reset;

impl TextFile for Reset {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_differences(out)
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        must_be_one(session, "reset", input)?;
        session.reset()
    }
}

struct Version;

impl TextFile for Version {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", abi::VERSION)?;
        Ok(())
    }
}

/// Reason why the last refused write was refused.
struct ErrorLog;

impl TextFile for ErrorLog {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_error(out)?;
        Ok(())
    }
}

/// How many calls a graph lacks, for so many of their task had not returned.
struct GraphMissed;

impl TextFile for GraphMissed {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.graph_missed())?;
        Ok(())
    }
}

struct AvailableEvents;

impl TextFile for AvailableEvents {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        for event in session.available().iter() {
            writeln!(out, "{}:{}", event.subsystem(), event.name())?;
        }
        Ok(())
    }
}

/// The events that can be selected, although their modules are not loaded.
struct AwaitedEvents;

impl TextFile for AwaitedEvents {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.each_awaited(|(subsystem, name)| {
            writeln!(out, "{subsystem}:{name}")?;
            Ok(())
        })
    }
}

/// The tasks that wait for their memory in a probe. They keep the module loaded.
struct Waiting;

impl TextFile for Waiting {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, out: &mut Text) -> Result {
        for waiter in waiters::all() {
            write!(out, "{} {} ", waiter.tid, waiter.seconds)?;
            waiter.name().try_for_each(|c| out.write_char(c))?;
            out.write_char('\n')?;
        }
        Ok(())
    }
}

/// The contexts that can be recorded.
struct AvailableContexts;

impl TextFile for AvailableContexts {
    type Data = Arc<Session>;

    fn show(_session: &Arc<Session>, out: &mut Text) -> Result {
        for context in ContextChoice::all() {
            writeln!(out, "{}", context.name())?;
        }
        Ok(())
    }
}

impl KernelStacks {
    /// Name in the file.
    fn name(self) -> &'static str {
        match self {
            Self::Learnt => "learnt",
            Self::Kernel => "kernel",
            Self::Compare => "compare",
        }
    }
}

/// How the kernel's stacks are taken.
struct Stacks;

impl TextFile for Stacks {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", KernelStacks::now().name())?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        let input = input.trim();
        let mut ways = KernelStacks::ALL.into_iter();
        let way = ways.find(|way| way.name() == input).ok_or_else(|| {
            session.refuse(fmt!(
                "kernel_stacks: '{input}' is neither learnt, kernel nor compare"
            ))
        })?;
        way.set().map_err(|_| {
            session.refuse(fmt!(
                "kernel_stacks: this kernel has no ORC unwinder, so the value can only be kernel"
            ))
        })
    }
}

/// How many stacks were taken in both ways, and how many of them differed.
struct ComparedStacks;

impl TextFile for ComparedStacks {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, out: &mut Text) -> Result {
        let (compared, different) = KernelStacks::compared();
        writeln!(out, "compared {compared}\ndifferent {different}")?;
        Ok(())
    }
}
