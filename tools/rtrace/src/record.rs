// SPDX-License-Identifier: GPL-2.0

//! `rtrace record`: a whole recording in one command.

use crate::channels::ChannelSetup;
use crate::condition::NoTrigger;
use crate::earlier::Earlier;
use crate::export::save_names;
use crate::launch::{begin, cannot_run, wait, Begun, End};
use crate::maker::Maker;
use crate::on_drop::{FreeOnDrop, StopOnDrop};
use crate::options::{Place, Record};
use crate::probe::Probes;
use crate::temporary::Temporary;
use crate::terminal::{bytes, say};
use crate::watch::Watch;
use crate::{advice, snapshots, symbols, workload, WRONG_USAGE};
use anyhow::{bail, Context};
use rustix::pipe::{pipe_with, PipeFlags};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::thread;
use trace::consumer::{Consumer, Written};
use trace::live::LiveTrace;
use trace::output::Output;
use trace::priority;
use trace::recording::State;
use trace::session::Session;
use trace::signals::Signals;
use trace::sink::Sink;
use trace::source::{Source, StreamName};
use trace::totals::Totals;
use trace::uuid::Uuid;
use workload::{Code, Run};

/// Events were lost, and that counts as failure.
const LOST: Code = 124;
/// rtrace failed, not the command.
pub const FAILED: Code = 125;

/// Records, and gives the exit code.
pub fn record(place: &Place, options: &Record) -> ExitCode {
    let recorded = try_record(place, options).and_then(Recording::code);
    ExitCode::from(recorded.unwrap_or_else(|error| {
        say(format_args!("{error:#}"));
        if error.is::<NoTrigger>() {
            WRONG_USAGE
        } else {
            FAILED
        }
    }))
}

fn try_record<'a>(place: &Place, options: &'a Record) -> anyhow::Result<Recording<'a>> {
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
    if options.output_options.held(&options.dir)?.is_some() {
        bail!(
            "{} holds a trace already: choose a new directory",
            options.dir.display()
        );
    }
    // Before anything is made or started that would be of no use.
    if let Some((program, _)) = &options.command {
        if let Err(error) = workload::find(program) {
            return Ok(Recording::NotBegun(cannot_run(program, &error)));
        }
    }
    let servers = options.debuginfod.then(symbols::Servers::new).transpose()?;
    Output::try_writing(&options.dir, options.output_options)?;
    let signals = Signals::catch()?;
    // Before the session, so that nothing records them when they are taken away.
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
    let mut watch = Watch::new(&options.conditions, session)?;
    let symbols = options
        .symbols
        .then(|| symbols::Recorder::begin(&options.dir));
    let symbols = symbols.transpose()?;
    watch.begin()?;
    session.start()?;
    let stop = StopOnDrop(session);
    let uuid = session.uuid()?;
    let _free = FreeOnDrop { session, uuid };
    let begin = || begin(options, session, signals, watch);
    let mut recording = if !options.conditions.snapshot_on.is_empty() {
        snapshots::record(options, session, stop, begin)
    } else if options
        .setup
        .channels
        .iter()
        .all(ChannelSetup::is_flight_recorder)
    {
        flight_recorder(options, session, stop, begin)
    } else {
        stream(options, session, stop, begin)
    }?;
    if let Some(Err(error)) = symbols.map(|symbols| save_symbols(options, symbols, servers)) {
        // The trace is whole all the same, and the command is to be waited for.
        say(format_args!("names of functions are missing: {error:#}"));
        recording.fail();
    }
    Ok(recording)
}

/// Writes beside the trace, if there is one, what its functions are called.
fn save_symbols(
    options: &Record,
    symbols: symbols::Recorder,
    servers: Option<symbols::Servers>,
) -> anyhow::Result<()> {
    let Some(uuid) = options.output_options.held(&options.dir)? else {
        return Ok(());
    };
    let access = options.output_options.access;
    symbols.end(&options.dir, uuid, access)?;
    save_names(&options.dir, servers, access)
}

/// How a recording ended.
pub enum Recording<'a> {
    /// The command could not be run: nothing is left on disk.
    NotBegun(Code),
    /// What was to be written is.
    Done {
        /// The command, which may still run.
        run: Box<Run<'a>>,
        /// How it ended, if it did.
        code: Option<Code>,
        /// How that is to be judged.
        verdict: Verdict,
    },
}

/// What to say of a recording beside what the command says.
pub enum Verdict {
    /// Nothing.
    Fine,
    /// Events were lost that should not be.
    Lost,
    /// Something could not be written.
    Failed,
}

impl Recording<'_> {
    /// Something beside the trace could not be written.
    fn fail(&mut self) {
        if let Self::Done { verdict, .. } = self {
            *verdict = Verdict::Failed;
        }
    }

    /// The exit code. Waits for the command.
    fn code(self) -> anyhow::Result<Code> {
        let (mut run, code, verdict) = match self {
            Self::NotBegun(code) => return Ok(code),
            Self::Done { run, code, verdict } => (run, code, verdict),
        };
        let code = match code {
            Some(code) => code,
            None => run.rest()?,
        };
        Ok(match verdict {
            Verdict::Failed => FAILED,
            Verdict::Lost if code == 0 => LOST,
            _ => code,
        })
    }
}

/// What came of a recording.
struct Recorded {
    uuid: Uuid,
    sink: Box<dyn Sink>,
    written: Written,
    /// Whether everything that was read is on disk.
    whole: bool,
}

/// Moves packets to disk in a thread while the command runs; then those of the flight recorders.
fn stream<'a>(
    options: &'a Record,
    session: &Session,
    stop: StopOnDrop<'_>,
    begin: impl FnOnce() -> anyhow::Result<Begun<'a>>,
) -> anyhow::Result<Recording<'a>> {
    let setup = &options.setup.channels;
    let late = setup.iter().filter(|channel| channel.is_flight_recorder());
    let late: Vec<_> = late.map(|channel| channel.name.as_str()).collect();
    let source = LiveTrace::open(session)?;
    let (uuid, streams) = (source.uuid(), source.streams()?);
    let source = source.only(|name| !late.contains(&name));
    let mut consumer = Consumer::open(source, |_| output(options, uuid, &streams))?;
    // Hangs up when the consumer is done, for whatever reason.
    let (over, alive) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    // Nobody writes to it: the consumer ends when the trace is stopped and drained.
    let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let (ended, result) = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _alive = alive;
            priority::raise();
            let result = consumer.run(&never);
            if let Err(error) = &result {
                say_partial(error);
            }
            result
        });
        let ended = begin().and_then(|begun| match begun {
            Begun::Not(code) => Ok(Err(code)),
            Begun::Running(mut run) => Ok(Ok((wait(options, &mut run, &over)?, run))),
        });
        drop(stop);
        (ended, thread.join())
    });
    let mut whole = matches!(result, Ok(Ok(_)));
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
        whole = drain(&mut consumer, &never);
        written += consumer.written();
        sink = consumer.into_sink();
    }
    let recorded = Recorded {
        uuid,
        sink,
        written,
        whole,
    };
    Ok(Recording::Done {
        run,
        code: end.code,
        verdict: close(options, session, recorded)?,
    })
}

/// Begins to write a trace.
fn output(options: &Record, uuid: Uuid, streams: &[StreamName]) -> trace::Result<Box<dyn Sink>> {
    options.output_options.begin(&options.dir, uuid, streams)
}

/// Nothing is left of a recording.
fn unwanted(run: Box<Run<'_>>, end: End) -> Recording<'_> {
    say_nothing();
    Recording::Done {
        run,
        code: end.code,
        verdict: Verdict::Fine,
    }
}

/// Takes what the buffers of a trace hold that is over; whether all of it is on disk.
fn drain(consumer: &mut Consumer<LiveTrace>, never: impl AsFd) -> bool {
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
fn flight_recorder<'a>(
    options: &'a Record,
    session: &Session,
    stop: StopOnDrop<'_>,
    begin: impl FnOnce() -> anyhow::Result<Begun<'a>>,
) -> anyhow::Result<Recording<'a>> {
    let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let mut run = match begin()? {
        Begun::Not(code) => return Ok(Recording::NotBegun(code)),
        Begun::Running(run) => run,
    };
    let end = wait(options, &mut run, &never)?;
    drop(stop);
    if !end.is_wanted {
        return Ok(unwanted(run, end));
    }
    let source = LiveTrace::open(session)?;
    let uuid = source.uuid();
    let mut consumer = Consumer::open(source, |source| output(options, uuid, &source.streams()?))?;
    let whole = drain(&mut consumer, &never);
    let recorded = Recorded {
        uuid,
        written: consumer.written(),
        sink: consumer.into_sink(),
        whole,
    };
    Ok(Recording::Done {
        run,
        code: end.code,
        verdict: close(options, session, recorded)?,
    })
}

/// Says that nothing came of what was waited for.
pub fn say_nothing() {
    say("nothing of what was waited for has happened: no trace is left");
}

/// Says what was recorded and what was lost.
fn close(options: &Record, session: &Session, recorded: Recorded) -> anyhow::Result<Verdict> {
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
        recorded.sink.end(state, 0, "")?;
        bail!(
            "session `{}` was destroyed meanwhile: the number of lost events is unknown",
            session.name()
        );
    }
    let (stats, text) = session.stats_and_text()?;
    if session.uuid()? != Some(recorded.uuid) {
        recorded.sink.end(state, 0, "")?;
        bail!("the session was started again meanwhile: the number of lost events is unknown");
    }
    // What the kernel recorded and is not on disk is lost too, however that came.
    let total = stats.all.total;
    let kept = total.recorded.saturating_sub(total.overwritten);
    let left = kept.saturating_sub(written.records);
    let totals = Totals::of(&total, written.records);
    if recorded.whole {
        for line in advice::on_loss(session, &stats)? {
            say(line);
        }
    } else {
        say(format_args!(
            "{left} events were recorded and could not be written, and what came later had no room"
        ));
    }
    if let Err(error) = recorded.sink.end(state, left, &text) {
        say(error);
    }
    say(totals);
    // That old events go is what a flight recorder is for.
    let failed = stats.channels.iter().map(|counted| {
        let mut channels = options.setup.channels.iter();
        let total = counted.stats.total;
        match channels.find(|channel| channel.name == counted.channel) {
            Some(channel) if channel.is_flight_recorder() => total.discarded(),
            _ => total.lost(),
        }
    });
    let failed = left > 0 || failed.sum::<u64>() > 0 || session.aux_losses()?.any();
    Ok(match recorded.whole {
        false => Verdict::Failed,
        true if options.fail_on_loss && failed => Verdict::Lost,
        true => Verdict::Fine,
    })
}
