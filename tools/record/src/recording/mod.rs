// SPDX-License-Identifier: GPL-2.0

//! A complete recording: session, command, trace.

mod beginning;
mod names;
pub mod snapshot;
mod snapshots;
mod writer;

use crate::compat::{self, Patterns};
use crate::exit::{Code, FAILED, LOST};
use crate::place::Place;
use crate::probe::Probes;
use crate::run::condition::Conditions;
use crate::run::launch;
use crate::run::watch::Watch;
use crate::run::workload::{never, Run};
use crate::session::advice;
use crate::session::channels::ChannelSetup;
use crate::session::earlier::Earlier;
use crate::session::given::Given;
use crate::session::maker::Maker;
use crate::session::on_drop::{FreeOnDrop, StopOnDrop};
use crate::session::patience;
use crate::session::setup::Setup;
use crate::session::tasks::threads;
use crate::session::temporary::Temporary;
use anyhow::{bail, Context};
use beginning::{begin, wait, Begun, End};
use consumer::{Consumer, Sink, Source, State, Totals, Written};
use control::{LiveTrace, Session, Trigger};
use ctf::StreamName;
use network::{Destination, Directory, Notice};
use rustix::pipe::{pipe_with, PipeFlags};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use store::{maps, Claim, Output};
use system::session::session_option;
use system::signals::Signals;
use system::{time, Error};
use terminal::{bytes, conclude, say, tell};
use unwind::Loader;
use uuid::Uuid;
use writer::Writer;

/// A recording.
pub struct Record {
    /// Settings of the session.
    pub setup: Setup,
    /// Conditions that end the recording or cause a snapshot.
    pub conditions: Conditions,
    /// Specifications of the probe events that the recording defines.
    pub probes: Vec<String>,
    /// Name of the session that the recording makes, if the user named it.
    pub session: Option<Given<String>>,
    /// Whether the user named the destination. Otherwise it is a directory named after the time.
    pub is_named: bool,
    /// Destination of the trace.
    pub destination: Destination,
    /// Whether the names of functions are written with the trace.
    pub symbols: bool,
    /// Whether debuginfod servers are asked for names that this machine does not know.
    pub debuginfod: bool,
    /// The event in a snapshot that caused it, as text, if the snapshot has it.
    pub cause: fn(&Path, &Trigger) -> anyhow::Result<Option<String>>,
    /// Whether losses are a failure.
    pub fail_on_loss: bool,
    /// The command to run, with its arguments; empty, if there is none.
    pub command: Vec<OsString>,
}

/// The directory of a recording for which the user named none.
pub fn new_directory() -> PathBuf {
    format!("rtrace-{}", time::name_of_now()).into()
}

/// Records, and returns the exit code.
pub fn record(place: &Place, options: &mut Record) -> anyhow::Result<Code> {
    try_record(place, options)?.code()
}

fn try_record<'a>(place: &Place, options: &'a mut Record) -> anyhow::Result<Recording<'a>> {
    let tracer = place.tracer()?;
    let given = place.session.as_deref();
    let given = given.map(|name| tracer.session(name)).transpose()?;
    if let Some(session) = &given {
        if session.is_active()? {
            let name = session.name();
            let of = session_option(name);
            bail!(
                "session `{name}` is already recording (EBUSY): `rtrace{of} status` shows it, `rtrace{of} stop` ends it"
            );
        }
    }
    let directory = options.destination.directory();
    // If the user did not name the directory, `claim` chooses another name for a taken one.
    if let Some(Directory { path, options }) = directory.filter(|_| options.is_named) {
        if options.held(path)?.is_some() {
            bail!(
                "{} holds a trace already: choose a new directory",
                path.display()
            );
        }
    }
    options.destination.check_credentials()?;
    // Checked first, before rtrace makes a session or starts a thread in vain.
    let program = match launch::find(&options.command) {
        Err(code) => return Ok(Recording::NotBegun(code)),
        Ok(program) => program,
    };
    if let Some(path) = &program {
        if compat::is_32_bit(path) && Patterns::of(&options.setup).miss_compat() {
            say(format_args!(
                "{} is a 32-bit program: no -e matches its system calls (add -e 'compat_*')",
                path.display()
            ));
        }
    }
    let servers = options.debuginfod.then(symbols::Servers::new).transpose()?;
    if let Some(Directory { path, options }) = directory {
        Output::try_writing(path, *options)?;
    }
    let _claim = claim(options)?;
    let options = &*options;
    let directory = options.destination.directory();
    let mut signals = Signals::catch()?;
    // Defined before the session, so that the session no longer records the events when they are deleted.
    let _probes = if options.probes.is_empty() {
        None
    } else {
        Some(Probes::define(&tracer, &options.probes, &Maker::me()?)?)
    };
    let (temporary, _earlier);
    let session = match &given {
        Some(session) => {
            _earlier = Earlier::note(session, &options.setup.tasks)?;
            session
        }
        None => {
            let name = options.session.as_ref();
            let made = Temporary::create(&tracer, name.map(|name| name.value.as_str()));
            temporary = match name {
                Some(name) => name.used(made)?,
                None => made?,
            };
            temporary.session()
        }
    };
    options.setup.apply(session)?;
    // In a session of the user, all settings stay as they are.
    let is_without_own =
        given.is_none() && options.setup.tasks.is_none() && options.setup.is_of_calls();
    let snapshots = directory.filter(|_| !options.conditions.snapshot_on.is_empty());
    let mut channels = options.setup.channels.iter();
    let is_streamed = snapshots.is_none() && !channels.all(ChannelSetup::is_flight_recorder);
    // Begun before the session starts, so that its calls are excluded from the first one on.
    let writer = is_streamed.then(Writer::begin).transpose()?;
    if is_without_own {
        session.exclude_tasks(&threads(process::id()).unwrap_or_default())?;
    }
    options.setup.functions.check_signals(&mut signals)?;
    // Before the session starts, so that its first stacks are whole.
    let _unwinding = Loader::of_session(session, program.as_slice())?;
    let patience = options.setup.functions.patience();
    let mut watch = Watch::new(&options.conditions, session)?;
    let named = directory.filter(|_| options.symbols);
    let symbols = named.map(|directory| {
        symbols::Recorder::begin(&directory.path).map(|symbols| (directory, symbols))
    });
    let symbols = symbols.transpose()?;
    symbols::see_modules();
    watch.begin()?;
    if !options.setup.maps.is_empty() {
        // The maps have counted since their definition.
        session.clear_maps()?;
    }
    patience::start(session, &mut signals, patience.as_ref())?;
    let stop = StopOnDrop { session, patience };
    // The kernel looks for signals before a step. A signal may have arrived during the last step.
    options.setup.functions.check_signals(&mut signals)?;
    let uuid = session.uuid()?;
    let _free = FreeOnDrop { session, uuid };
    let begin = || begin(options, session, signals, watch);
    let mut recording = match writer {
        Some(writer) => stream(options, session, stop, writer, begin)?,
        None => match (begin()?, snapshots) {
            (Begun::Not(code), _) => {
                drop(stop);
                Recording::NotBegun(code)
            }
            (Begun::Running(run), Some(directory)) => {
                snapshots::record(options, directory, session, stop, run)?
            }
            (Begun::Running(run), None) => flight_recorder(options, session, stop, run)?,
        },
    };
    let saved = symbols
        .map(|(directory, symbols)| names::save(directory, snapshots.is_some(), symbols, servers));
    if let Some(Err(error)) = saved {
        // The trace is complete all the same, and rtrace must wait for the command.
        say(format_args!("names of functions are missing: {error:#}"));
        recording.fail();
    }
    Ok(recording)
}

/// Claims the directory of the recording, if it has one, until the recording ends. If the directory exists and the user
/// did not name it, its name gets a number.
fn claim(options: &mut Record) -> system::Result<Option<Claim>> {
    let Destination::Directory(Directory {
        path,
        options: output,
    }) = &mut options.destination
    else {
        return Ok(None);
    };
    if !options.is_named {
        let claim = Claim::take_new(path, output.access)?;
        *path = claim.path().to_owned();
        return Ok(Some(claim));
    }
    let claim = Claim::take(path, output.access)?;
    // Another recording may have ended since the first look.
    if output.held(path)?.is_some() {
        return Err(Error::OutputTaken {
            path: path.clone(),
            reason: "holds a trace already: choose a new directory".to_owned(),
        });
    }
    Ok(Some(claim))
}

/// Result of a recording.
pub enum Recording<'a> {
    /// The command could not be run. No file is left on the disk.
    NotBegun(Code),
    /// The trace is written, or is not to be kept.
    Done {
        /// The command, which may still run.
        run: Box<Run<'a>>,
        /// The exit code of the command, if it has ended.
        code: Option<Code>,
        /// Verdict on the trace.
        verdict: Verdict,
    },
}

/// Part of the exit code that is not the command's.
pub enum Verdict {
    /// The recording has no fault.
    Fine,
    /// Events were lost, and the options say that this is a failure.
    Lost,
    /// A part of the trace could not be written.
    Failed,
}

impl Recording<'_> {
    /// Sets the verdict: a file beside the trace could not be written.
    fn fail(&mut self) {
        if let Self::Done { verdict, .. } = self {
            *verdict = Verdict::Failed;
        }
    }

    /// Waits for the command, and returns the exit code.
    fn code(self) -> anyhow::Result<Code> {
        let (mut run, code, verdict) = match self {
            Self::NotBegun(code) => return Ok(code),
            Self::Done { run, code, verdict } => (run, code, verdict),
        };
        let code = run.code(code)?;
        Ok(match verdict {
            Verdict::Failed => FAILED,
            Verdict::Lost if code == 0 => LOST,
            _ => code,
        })
    }
}

/// A trace that is written, except for its end.
struct Recorded {
    uuid: Uuid,
    sink: Box<dyn Sink>,
    written: Written,
    /// Whether all read packets are on the disk.
    whole: bool,
    /// The entries of the session's maps at the end, as the kernel writes them.
    maps: String,
}

/// Moves packets to disk by the writer while the command runs. Then moves the packets of the flight recorders.
fn stream<'a>(
    options: &'a Record,
    session: &Session,
    stop: StopOnDrop<'_>,
    writer: Writer,
    begin: impl FnOnce() -> anyhow::Result<Begun<'a>>,
) -> anyhow::Result<Recording<'a>> {
    let setup = &options.setup.channels;
    let late = setup.iter().filter(|channel| channel.is_flight_recorder());
    let late: Vec<_> = late.map(|channel| channel.name.as_str()).collect();
    let source = LiveTrace::open(session)?;
    let (uuid, streams) = (source.uuid(), source.streams()?);
    let source = source.only(|name| !late.contains(&name));
    // Hangs up when the recording is over.
    let (over_there, recording) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let begin_there = |_: &_| begin_writing(options, uuid, streams, over_there);
    let consumer = Consumer::open(source, begin_there)?;
    // Hangs up when the consumer is done, for whatever reason.
    let (over, alive) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let not_stopped = never()?;
    let writing = writer.write(move || {
        let (_alive, mut consumer) = (alive, consumer);
        let whole = drain(&mut consumer, not_stopped);
        (consumer, whole)
    });
    let ended = begin().and_then(|begun| match begun {
        Begun::Not(code) => Ok(Err(code)),
        Begun::Running(mut run) => Ok(Ok((wait(options, &mut run, &over)?, run))),
    });
    drop(stop);
    let maps = session.maps_text();
    drop(recording);
    let (consumer, mut whole) = writing.end()?;
    let (end, run) = match ended? {
        Ok(ended) => ended,
        Err(code) => {
            consumer.into_sink().discard()?;
            return Ok(Recording::NotBegun(code));
        }
    };
    if !end.is_wanted {
        consumer.into_sink().discard()?;
        return Ok(unwanted(run, end));
    }
    let mut written = consumer.written();
    let mut sink = consumer.into_sink();
    if whole && !late.is_empty() {
        let source = LiveTrace::open(session)?.only(|name| late.contains(&name));
        let mut consumer = Consumer::open(source, |_| Ok(sink))?;
        whole = drain(&mut consumer, never()?);
        written += consumer.written();
        sink = consumer.into_sink();
    }
    let recorded = Recorded {
        uuid,
        sink,
        written,
        whole,
        // If the session is gone, `close` reports that.
        maps: maps.unwrap_or_default(),
    };
    Ok(Recording::Done {
        run,
        code: end.code,
        verdict: close(options, session, recorded)?,
    })
}

/// Begins to write a trace. `over` hangs up when the recording ends. From then on, a receiver that does not answer is
/// waited for only briefly.
fn begin_writing(
    options: &Record,
    uuid: Uuid,
    streams: Vec<StreamName>,
    over: OwnedFd,
) -> system::Result<Box<dyn Sink>> {
    let notice: Notice = Arc::new(|message| say(message));
    options.destination.begin(uuid, streams, over, notice)
}

/// The result of a recording whose trace is not kept.
fn unwanted(run: Box<Run<'_>>, end: End) -> Recording<'_> {
    say_nothing();
    Recording::Done {
        run,
        code: end.code,
        verdict: Verdict::Fine,
    }
}

/// Moves packets from the buffers to disk until the trace is stopped and drained; `never` never becomes readable.
/// Returns whether all of them are on disk.
fn drain(consumer: &mut Consumer<LiveTrace>, never: impl AsFd) -> bool {
    let result = consumer.run(never);
    if let Err(error) = &result {
        say_partial(error);
    }
    result.is_ok()
}

fn say_partial(error: &system::Error) {
    match error {
        Error::Removed { .. } => say(error),
        _ => say(format_args!(
            "{error}. What was written before is a valid trace"
        )),
    }
}

/// Waits until the command has ended, and moves the contents of the buffers to disk then.
fn flight_recorder<'a>(
    options: &'a Record,
    session: &Session,
    stop: StopOnDrop<'_>,
    mut run: Box<Run<'a>>,
) -> anyhow::Result<Recording<'a>> {
    let never = never()?;
    let end = wait(options, &mut run, &never)?;
    drop(stop);
    let maps = session.maps_text();
    if !end.is_wanted {
        return Ok(unwanted(run, end));
    }
    let source = LiveTrace::open(session)?;
    let uuid = source.uuid();
    let (over, recording) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    drop(recording);
    let begin_there = |source: &LiveTrace| begin_writing(options, uuid, source.streams()?, over);
    let mut consumer = Consumer::open(source, begin_there)?;
    let whole = drain(&mut consumer, never);
    let recorded = Recorded {
        uuid,
        written: consumer.written(),
        sink: consumer.into_sink(),
        whole,
        // If the session is gone, `close` reports that.
        maps: maps.unwrap_or_default(),
    };
    Ok(Recording::Done {
        run,
        code: end.code,
        verdict: close(options, session, recorded)?,
    })
}

/// Reports that no condition of the recording occurred.
pub fn say_nothing() {
    say("no condition of --until or --snapshot-on occurred: no trace was written");
}

/// Reports where the trace is. A receiver may lack the packets that were in flight when an error occurred.
fn say_trace(options: &Record, written: &Written, whole: bool) {
    let whither = match options.destination {
        Destination::Directory(_) => "in",
        Destination::Receiver { .. } if !whole => return,
        Destination::Receiver { .. } => "sent to",
    };
    tell(format_args!(
        "trace {whither} {} ({}, {} packets)",
        options.destination,
        bytes(written.bytes),
        written.packets
    ));
}

/// Ends the trace, and reports the numbers of recorded and lost events. The trace is announced only when its end
/// succeeded.
fn close(options: &Record, session: &Session, recorded: Recorded) -> anyhow::Result<Verdict> {
    let Recorded {
        uuid,
        sink,
        written,
        whole,
        maps,
    } = recorded;
    let state = if whole { State::Over } else { State::Failed };
    let counters = session.stats_and_text();
    let now = session.uuid();
    let unknown = match (&counters, &now) {
        _ if !session.exists() => Some(format!(
            "session `{}` was destroyed during the recording",
            session.name()
        )),
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
        (_, Ok(now)) if *now != Some(uuid) => {
            Some("the session was started again during the recording".to_owned())
        }
        _ => None,
    };
    if let Some(why) = unknown {
        sink.end(state, 0, "")?;
        say_trace(options, &written, whole);
        bail!("{why}: the number of lost events is unknown");
    }
    let (stats, text) = counters?;
    // Events that the kernel recorded and that are not on disk are lost too, for whatever reason.
    let total = stats.all.total;
    let kept = total.recorded.saturating_sub(total.overwritten);
    let left = kept.saturating_sub(written.records);
    let totals = Totals::of(&total, written.records);
    let ended = sink.end(state, left, &text);
    let ended = ended.and_then(
        |()| match (options.destination.directory(), maps.as_str()) {
            (None, _) | (_, "") => Ok(()),
            (Some(Directory { path, options }), maps) => {
                maps::save(path, uuid, maps, options.access)
            }
        },
    );
    match &ended {
        Ok(()) => say_trace(options, &written, whole),
        // `drain` has reported it.
        Err(Error::Removed { .. }) if !whole => {}
        Err(error) => say(format_args!(
            "{error}. The end of the trace was not written: the trace is incomplete"
        )),
    }
    if whole {
        for line in advice::on_loss(session, &stats)? {
            say(line);
        }
    } else {
        say(format_args!(
            "{left} recorded events are not in the trace, and later events found no space in the buffers"
        ));
    }
    conclude(totals.lost == 0, totals);
    // A flight recorder drops old events on purpose.
    let failed = stats.channels.iter().map(|counted| {
        let mut channels = options.setup.channels.iter();
        let total = counted.stats.total;
        match channels.find(|channel| channel.name == counted.channel) {
            Some(channel) if channel.is_flight_recorder() => total.discarded(),
            _ => total.lost(),
        }
    });
    let failed = left > 0 || failed.sum::<u64>() > 0 || session.aux_losses()?.any();
    Ok(match whole && ended.is_ok() {
        false => Verdict::Failed,
        true if options.fail_on_loss && failed => Verdict::Lost,
        true => Verdict::Fine,
    })
}
