// SPDX-License-Identifier: GPL-2.0

//! The tracer's own files, and those of a session that start it, choose tasks, and set what is the session's.

use super::channel::{self, ChannelTarget};
use super::{functions, latency, must_be_one, parse_switch, pipe, trigger};
use crate::abi;
use crate::channel::clock::ClockKind;
use crate::context::ContextChoice;
use crate::session::{ChannelId, Session, Sessions, TaskChoice};
use crate::source::sampled::Frequency;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE, WRITE};
use crate::sys::waiters;
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The files that a session has, and the tracer for the default one.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Enable>("enable", READ_WRITE, session)?;
    dir.text::<ClockFile>("clock", READ_WRITE, session)?;
    dir.text::<SampleFreq>("sample_freq", READ_WRITE, session)?;
    dir.text::<ErrorLog>("error_log", READ, session)?;
    task_set::<SetEventPid>(dir, session)?;
    task_set::<SetEventNotracePid>(dir, session)?;
    dir.text::<EventFork>("event_fork", READ_WRITE, session)?;
    dir.text::<SetEventCgroup>("set_event_cgroup", READ_WRITE, session)?;
    functions::make(dir, session)?;
    latency::make(dir, session)?;
    pipe::make(dir, session)?;
    trigger::make(dir, session)
}

/// Those that the tracer has alone.
pub(super) fn make_tracer(dir: &mut Dir, sessions: &Arc<Sessions>) -> Result {
    let data = dir.data(sessions.clone())?;
    dir.text::<MarkerOfAll>("marker", WRITE, data)?;
    let session = dir.data(sessions.default().clone())?;
    dir.text::<Version>("version", READ, session)?;
    dir.text::<AvailableEvents>("available_events", READ, session)?;
    dir.text::<AwaitedEvents>("awaited_events", READ, session)?;
    dir.text::<AvailableContexts>("available_contexts", READ, session)?;
    dir.text::<Waiting>("waiting", READ, session)
}

/// Those that a session's directory has alone.
pub(super) fn make_upkeep(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Marker>("marker", WRITE, session)?;
    dir.text::<MarkerChannel>("marker_channel", READ_WRITE, session)?;
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

    fn store(session: &Arc<Session>, input: &str) -> Result {
        if parse_switch(session, "enable", input)? {
            session.start()
        } else {
            session.stop();
            Ok(())
        }
    }
}

/// A set of tasks that has a file.
trait TaskSetFile: 'static {
    const FILE: &'static str;
    const CHOICE: TaskChoice;
}

/// The tasks whose events are recorded, and no others'.
struct SetEventPid;

impl TaskSetFile for SetEventPid {
    const FILE: &'static str = "set_event_pid";
    const CHOICE: TaskChoice = TaskChoice::Only;
}

/// The tasks whose events are not recorded.
struct SetEventNotracePid;

impl TaskSetFile for SetEventNotracePid {
    const FILE: &'static str = "set_event_notrace_pid";
    const CHOICE: TaskChoice = TaskChoice::Not;
}

struct TaskIds<S>(PhantomData<S>);

impl<S: TaskSetFile> TextFile for TaskIds<S> {
    type Data = Arc<Session>;
    const ENDS_ITEM: Option<fn(u8) -> bool> = Some(|byte| byte.is_ascii_whitespace());

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_tasks(S::CHOICE, out)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.choose_tasks(S::CHOICE, S::FILE, input, false)
    }

    fn replace(session: &Arc<Session>, input: &str) -> Result {
        session.choose_tasks(S::CHOICE, S::FILE, input, true)
    }
}

fn task_set<S: TaskSetFile>(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<TaskIds<S>>(S::FILE, READ_WRITE, session)
}

/// Whether these follow forks and exits: as ftrace's option `event-fork`.
struct EventFork;

impl TextFile for EventFork {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", u8::from(session.follows_tasks()))?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.follow_tasks(parse_switch(session, "event_fork", input)?)
    }
}

/// The cgroups whose tasks' events are recorded, and no others'.
struct SetEventCgroup;

impl TextFile for SetEventCgroup {
    type Data = Arc<Session>;
    const ENDS_ITEM: Option<fn(u8) -> bool> = Some(|byte| byte == b'\n');

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_cgroups(out)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.choose_cgroups(input, false)
    }

    fn replace(session: &Arc<Session>, input: &str) -> Result {
        session.choose_cgroups(input, true)
    }
}

/// Records what is written to it in all sessions that are active: as ftrace's `trace_marker`.
struct MarkerOfAll;

impl TextFile for MarkerOfAll {
    type Data = Arc<Sessions>;

    fn show(_: &Arc<Sessions>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(sessions: &Arc<Sessions>, input: &str) -> Result {
        sessions.mark(without_newline(input))
    }
}

/// The same in one session.
struct Marker;

impl TextFile for Marker {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.mark(without_newline(input))
    }
}

/// A marker as it was meant: `echo` ends it with a newline.
fn without_newline(input: &str) -> &str {
    input.strip_suffix('\n').unwrap_or(input)
}

/// The channel that markers are recorded in.
struct MarkerChannel;

impl TextFile for MarkerChannel {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        match session.marker_channel() {
            Some(channel) => writeln!(out, "{}", session.channel_name(channel)?.to_str()?)?,
            None => out.write_str("none\n")?,
        }
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_marker_channel(input.trim())
    }
}

/// Frees the buffers of the last trace.
struct FreeBuffer;

impl TextFile for FreeBuffer {
    type Data = Arc<Session>;

    fn show(_: &Arc<Session>, _: &mut Text) -> Result {
        Err(EPERM)
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        must_be_one(session, "free_buffer", input)?;
        session.free_buffers()
    }
}

/// Which settings are not the default ones; goes back to those.
struct Reset;

impl TextFile for Reset {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let (clock, best) = (session.clock(), ClockKind::best());
        if clock != best {
            writeln!(out, "clock {} {}", clock.name(), best.name())?;
        }
        let (frequency, usual) = (session.sample_frequency(), Frequency::DEFAULT);
        if frequency != usual {
            writeln!(out, "sample_freq {} {}", frequency.hertz(), usual.hertz())?;
        }
        for (file, choice) in [
            (SetEventPid::FILE, SetEventPid::CHOICE),
            (SetEventNotracePid::FILE, SetEventNotracePid::CHOICE),
        ] {
            let tasks = session.task_count(choice);
            if tasks != 0 {
                writeln!(out, "{file} {tasks} 0")?;
            }
        }
        let cgroups = session.cgroup_count();
        if cgroups != 0 {
            writeln!(out, "set_event_cgroup {cgroups} 0")?;
        }
        if session.follows_tasks() {
            writeln!(out, "event_fork 1 0")?;
        }
        functions::write_differences(session, out)?;
        latency::write_differences(session, out)?;
        if session.marker_channel() != Some(ChannelId::FIRST) {
            let mut channel = Text::new();
            MarkerChannel::show(session, &mut channel)?;
            let (channel, usual) = (channel.as_str().trim(), abi::names::FIRST_CHANNEL);
            writeln!(out, "marker_channel {channel} {usual}")?;
        }
        let triggers = session.trigger_count();
        if triggers != 0 {
            writeln!(out, "set_trigger {triggers} 0")?;
        }
        for id in session.channels() {
            let name = session.channel_name(id)?;
            // The first channel's files stand for the session, as in its directory.
            let mut prefix = Text::new();
            if id != ChannelId::FIRST {
                write!(prefix, "channels/{}/", name.to_str()?)?;
            }
            channel::write_differences(prefix.as_str(), &ChannelTarget::new(session, id), out)?;
        }
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
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

/// The clock of the trace, in brackets among all there are, as `trace_clock` of ftrace.
pub(super) struct ClockFile;

impl TextFile for ClockFile {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let chosen = session.clock().name();
        for (i, name) in ClockKind::NAMES.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            if *name == chosen {
                write!(out, "{space}[{name}]")?;
            } else {
                write!(out, "{space}{name}")?;
            }
        }
        out.write_str("\n")?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_clock(input.trim())
    }
}

/// How often what is sampled is, per second and CPU.
struct SampleFreq;

impl TextFile for SampleFreq {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.sample_frequency().hertz())?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_sample_frequency(input.trim())
    }
}

/// Why the last refused write was refused.
struct ErrorLog;

impl TextFile for ErrorLog {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.write_error(out)?;
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

/// The events that can be chosen, and are there when their modules are.
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

/// The tasks that wait for their memory in a probe, which keeps the module loaded.
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
