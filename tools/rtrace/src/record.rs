// SPDX-License-Identifier: GPL-2.0

//! `rtrace record`: a whole recording in one command.

use crate::channels::ChannelSetup;
use crate::options::{Place, Record};
use crate::setup::{apply, Earlier};
use crate::temporary::Temporary;
use crate::terminal::{bytes, say};
use crate::{advice, workload};
use anyhow::{bail, Context};
use rustix::pipe::{pipe_with, PipeFlags};
use std::ffi::OsStr;
use std::io;
use std::process::{Command, ExitCode};
use std::thread;
use trace::consumer::{Consumer, Written};
use trace::live::LiveTrace;
use trace::output::Output;
use trace::priority;
use trace::recording::{RecordingFile, State};
use trace::session::Session;
use trace::settings::Mode;
use trace::signals::Signals;
use trace::source::Source;
use trace::totals::Totals;
use trace::uuid::Uuid;
use workload::Code;

/// Events were lost, and that counts as failure.
const LOST: Code = 124;
/// rtrace failed, not the command.
const FAILED: Code = 125;

/// Records, and gives the exit code.
pub fn record(place: &Place, options: &Record) -> ExitCode {
    ExitCode::from(try_record(place, options).unwrap_or_else(|error| {
        say(format_args!("{error:#}"));
        FAILED
    }))
}

fn try_record(place: &Place, options: &Record) -> anyhow::Result<Code> {
    let tracer = place.tracer()?;
    let given = place.session.as_deref();
    let given = given.map(|name| tracer.session(name)).transpose()?;
    if let Some(session) = &given {
        if session.is_active()? {
            bail!(
                "session `{}` records already (EBUSY): `rtrace status` shows it, `rtrace stop` ends it",
                session.name()
            );
        }
    }
    if Output::held(&options.dir)?.is_some() {
        bail!(
            "{} holds a trace already: choose a new directory",
            options.dir.display()
        );
    }
    // Before anything is made or started that would be of no use.
    if let Some((program, _)) = &options.command {
        if let Err(error) = workload::find(program) {
            return Ok(cannot_run(program, &error));
        }
    }
    Output::try_writing(&options.dir, options.output_options)?;
    let signals = Signals::catch()?;
    let (temporary, _earlier);
    let session = match &given {
        Some(session) => {
            _earlier = Earlier::note(session)?;
            session
        }
        None => {
            temporary = Temporary::create(&tracer, options.session.as_deref())?;
            temporary.session()
        }
    };
    apply(session, &options.setup)?;
    options.choice.apply(session)?;
    session.start()?;
    let stop = StopOnDrop(session);
    let _free = FreeOnDrop {
        session,
        uuid: session.uuid()?,
    };
    let recorded = if options.setup.channels.iter().all(is_flight_recorder) {
        flight_recorder(options, session, stop, signals)
    } else {
        stream(options, session, stop, signals)
    };
    match recorded? {
        Recording::NotBegun(code) => Ok(code),
        Recording::Done(recorded) => close(options, session, &recorded),
    }
}

/// How a recording ended.
enum Recording {
    /// The command could not be run: nothing is left on disk.
    NotBegun(Code),
    /// The command has ended, or was left alone.
    Done(Recorded),
}

/// What came of a recording.
struct Recorded {
    uuid: Uuid,
    file: RecordingFile,
    command: Code,
    written: Written,
    /// Whether everything that was read is on disk.
    whole: bool,
}

/// Ends the trace however the recording ends.
struct StopOnDrop<'a>(&'a Session);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        match self.0.stop() {
            Err(error) if self.0.exists() => {
                say(format_args!("the trace could not be stopped: {error}"));
            }
            // Who destroyed the session has stopped it.
            _ => {}
        }
    }
}

/// Frees the trace's memory however the recording ends: nobody else is to read it.
struct FreeOnDrop<'a> {
    session: &'a Session,
    uuid: Option<Uuid>,
}

impl Drop for FreeOnDrop<'_> {
    fn drop(&mut self) {
        let freed = self.session.uuid().and_then(|uuid| {
            // Somebody else's trace, if it was started again meanwhile.
            if uuid == self.uuid {
                self.session.free()
            } else {
                Ok(())
            }
        });
        match freed {
            Err(error) if self.session.exists() => {
                say(format_args!("the buffers could not be freed: {error}"));
            }
            _ => {}
        }
    }
}

/// Whether the newest events of a channel are kept: nothing is read of it before the end.
fn is_flight_recorder(channel: &ChannelSetup) -> bool {
    channel.mode == Some(Mode::Overwrite)
}

/// Moves packets to disk in a thread while the command runs; then those of the flight recorders.
fn stream(
    options: &Record,
    session: &Session,
    stop: StopOnDrop<'_>,
    mut signals: Signals,
) -> anyhow::Result<Recording> {
    let setup = &options.setup.channels;
    let late = setup.iter().filter(|channel| is_flight_recorder(channel));
    let late: Vec<_> = late.map(|channel| channel.name.as_str()).collect();
    let source = LiveTrace::open(session)?;
    let (uuid, streams) = (source.uuid(), source.streams()?);
    let source = source.only(|name| !late.contains(&name));
    let mut consumer = Consumer::open(source, &options.dir, options.output_options)?;
    let file = RecordingFile::begin(&options.dir, uuid, &streams, options.output_options.access)?;
    // Hangs up when the consumer is done, for whatever reason.
    let (over, alive) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    // Nobody writes to it: the consumer ends when the trace is stopped and drained.
    let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let (command, result) = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _alive = alive;
            priority::raise();
            let result = consumer.run(&never);
            if let Err(error) = &result {
                say_partial(error);
            }
            result
        });
        let command = run_workload(options, session, &mut signals, &over);
        drop(stop);
        (command, thread.join())
    });
    let mut whole = matches!(result, Ok(Ok(_)));
    let command = match command? {
        Workload::NotBegun(code) => {
            file.remove()?;
            consumer.discard()?;
            return Ok(Recording::NotBegun(code));
        }
        Workload::Ended(code) => code,
    };
    let mut written = consumer.written();
    if whole && !late.is_empty() {
        let source = LiveTrace::open(session)?.only(|name| late.contains(&name));
        let mut consumer = Consumer::open(source, &options.dir, options.output_options)?;
        whole = drain(&mut consumer, &never);
        written += consumer.written();
    }
    Ok(Recording::Done(Recorded {
        uuid,
        file,
        command,
        written,
        whole,
    }))
}

/// Takes what the buffers of a trace hold that is over; whether all of it is on disk.
fn drain(consumer: &mut Consumer<LiveTrace>, never: impl std::os::fd::AsFd) -> bool {
    let result = consumer.run(never);
    if let Err(error) = &result {
        say_partial(error);
    }
    result.is_ok()
}

fn say_partial(error: &trace::Error) {
    say(format_args!(
        "{error}. What was written before is a valid trace"
    ));
}

/// Leaves the buffers alone until the command has ended, and then takes what they hold.
fn flight_recorder(
    options: &Record,
    session: &Session,
    stop: StopOnDrop<'_>,
    mut signals: Signals,
) -> anyhow::Result<Recording> {
    let (over, alive) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let command = run_workload(options, session, &mut signals, &over);
    drop(stop);
    let command = match command? {
        Workload::NotBegun(code) => return Ok(Recording::NotBegun(code)),
        Workload::Ended(code) => code,
    };
    let source = LiveTrace::open(session)?;
    let uuid = source.uuid();
    let mut consumer = Consumer::open(source, &options.dir, options.output_options)?;
    let streams = consumer.source().streams()?;
    let file = RecordingFile::begin(&options.dir, uuid, &streams, options.output_options.access)?;
    let whole = drain(&mut consumer, &over);
    drop(alive);
    Ok(Recording::Done(Recorded {
        uuid,
        file,
        command,
        written: consumer.written(),
        whole,
    }))
}

/// What became of the workload.
enum Workload {
    /// The command could not be run.
    NotBegun(Code),
    /// It has ended.
    Ended(Code),
}

/// Runs the command, or waits for Ctrl-C.
fn run_workload(
    options: &Record,
    session: &Session,
    signals: &mut Signals,
    over: &impl std::os::fd::AsFd,
) -> anyhow::Result<Workload> {
    let Some((program, arguments)) = &options.command else {
        say(format_args!(
            "recording to {} until Ctrl-C",
            options.dir.display()
        ));
        workload::until_signal(signals, over).context("cannot wait for signals")?;
        return Ok(Workload::Ended(0));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    match options.choice.spawn(session, command) {
        Ok(child) => workload::until_end(child, signals)
            .map(Workload::Ended)
            .context("cannot wait for the command"),
        Err(error) => Ok(Workload::NotBegun(cannot_run(program, &error))),
    }
}

/// Says why a command is not run; the exit code for that.
fn cannot_run(program: &OsStr, error: &io::Error) -> Code {
    say(format_args!(
        "cannot run {}: {error}",
        program.to_string_lossy()
    ));
    workload::spawn_code(error)
}

/// Says what was recorded and what was lost, and chooses the exit code.
fn close(options: &Record, session: &Session, recorded: &Recorded) -> anyhow::Result<Code> {
    let written = recorded.written;
    say(format_args!(
        "trace in {} ({}, {} packets)",
        options.dir.display(),
        bytes(written.bytes),
        written.packets
    ));
    let state = if recorded.whole {
        State::Over
    } else {
        State::Failed
    };
    if !session.exists() {
        recorded.file.end(state, 0, "")?;
        bail!(
            "session `{}` was destroyed meanwhile: the number of lost events is unknown",
            session.name()
        );
    }
    let (stats, text) = session.stats_and_text()?;
    if session.uuid()? != Some(recorded.uuid) {
        recorded.file.end(state, 0, "")?;
        bail!("the session was started again meanwhile: the number of lost events is unknown");
    }
    // What the kernel recorded and is not on disk is lost too, however that came.
    let total = stats.all.total;
    let kept = total.recorded.saturating_sub(total.overwritten);
    let left = kept.saturating_sub(written.records);
    let totals = Totals {
        recorded: written.records,
        lost: total.lost().saturating_add(left),
    };
    if recorded.whole {
        for line in advice::on_loss(session, &stats)? {
            say(line);
        }
    } else {
        say(format_args!(
            "{left} events were recorded and could not be written, and what came later had no room"
        ));
    }
    if let Err(error) = recorded.file.end(state, left, &text) {
        say(error);
    }
    say(totals);
    // That old events go is what a flight recorder is for.
    let failed = stats.channels.iter().map(|counted| {
        let mut channels = options.setup.channels.iter();
        let total = counted.stats.total;
        match channels.find(|channel| channel.name == counted.channel) {
            Some(channel) if is_flight_recorder(channel) => total.discarded(),
            _ => total.lost(),
        }
    });
    let failed = left > 0 || failed.sum::<u64>() > 0;
    Ok(match recorded.command {
        _ if !recorded.whole => FAILED,
        0 if options.fail_on_loss && failed => LOST,
        code => code,
    })
}
