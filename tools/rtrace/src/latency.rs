// SPDX-License-Identifier: GPL-2.0

//! `rtrace latency`: the longest waits for a CPU, while they happen.

use crate::analysis::meanwhile::{Meanwhile, Wait};
use crate::analysis::{pass, Analysis, Catalogue};
use crate::date;
use crate::launch::cannot_run;
use crate::options::{Latency, Place};
use crate::record::{StopOnDrop, FAILED};
use crate::temporary::Temporary;
use crate::terminal::{duration, print as show, say};
use crate::watch::Watch;
use crate::workload::{self, Code, Event, Run};
use anyhow::{bail, Context};
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tempfile::TempDir;
use trace::ctf::Trace;
use trace::output::make_dir;
use trace::session::Session;
use trace::signals::Signals;
use trace::snapshot;
use trace::Error;

/// The event that a wait is.
pub const EVENT: &str = "latency:wakeup_latency";

/// Measures, says what was found, and gives the exit code.
pub fn latency(place: &Place, options: &Latency) -> ExitCode {
    ExitCode::from(measure(place, options).unwrap_or_else(|error| {
        say(format_args!("{error:#}"));
        FAILED
    }))
}

/// Prints the longest wait of the trace in `dir`.
pub fn print(dir: &Path, rows: usize) -> anyhow::Result<()> {
    let trace = Trace::open(dir)?;
    match Wait::longest(&trace)? {
        Some(wait) => Ok(show(&case(dir, &trace, wait, rows)?)?),
        None => bail!(
            "{} has no {EVENT}: record it, with sched_switch, irq and softirq",
            dir.display()
        ),
    }
}

/// A wait of the trace in `dir`, and what happened meanwhile.
fn case(dir: &Path, trace: &Trace, wait: Wait, rows: usize) -> anyhow::Result<String> {
    let catalogue = Catalogue::new(&trace.metadata);
    let meanwhile: Box<dyn Analysis> = Box::new(Meanwhile::new(dir, &catalogue, wait));
    let answers = pass::read(dir, trace, &catalogue, vec![meanwhile], |_| {})?;
    let mut text = String::new();
    for answer in answers.answers() {
        answer.text(&mut text, rows)?;
    }
    Ok(text)
}

fn measure(place: &Place, options: &Latency) -> anyhow::Result<Code> {
    let tracer = place.tracer()?;
    if !tracer.available_events()?.iter().any(|name| name == EVENT) {
        bail!("the module measures no latencies: it is older than this command");
    }
    if let Some((program, _)) = &options.command {
        if let Err(error) = workload::find(program) {
            return Ok(cannot_run(program, &error));
        }
    }
    let cases = Cases::new(options)?;
    let signals = Signals::catch()?;
    let temporary = Temporary::create(&tracer, None)?;
    let session = temporary.session();
    options.setup.apply(session)?;
    let mut watch = Watch::new(&options.conditions, session)?;
    let condition = options.filter.iter().map(|filter| format!(" if {filter}"));
    let trigger = format!("stacktrace{}", condition.collect::<String>());
    session.set_trigger(EVENT, &trigger)?;
    if let Some(threshold) = options.threshold {
        session.set_latency_threshold(u64::try_from(threshold.as_micros())?)?;
    }
    session.start()?;
    let stop = StopOnDrop(session);
    watch.begin()?;
    let child = match &options.command {
        Some((program, arguments)) => match Command::new(program).args(arguments).spawn() {
            Ok(child) => Some(child),
            Err(error) => return Ok(cannot_run(program, &error)),
        },
        None => {
            say("measuring until Ctrl-C");
            None
        }
    };
    let run = Run::new(child, signals, &options.conditions, watch)?;
    cases.gather(session, stop, run)
}

/// The waits that were found.
struct Cases<'a> {
    options: &'a Latency,
    /// Where their traces are: removed at the end, if nobody wants them.
    dir: PathBuf,
    _temporary: Option<TempDir>,
    /// Snapshots that were taken.
    taken: u64,
    worst: Option<(Wait, PathBuf)>,
}

impl<'a> Cases<'a> {
    fn new(options: &'a Latency) -> anyhow::Result<Self> {
        let (dir, temporary) = match &options.dir {
            Some(dir) => {
                if dir.exists()
                    && fs::read_dir(dir)
                        .with_context(|| dir.display().to_string())?
                        .next()
                        .is_some()
                {
                    bail!("{} is not empty: choose a new directory", dir.display());
                }
                make_dir(dir, options.output_options.access).map_err(Error::write(dir))?;
                (dir.clone(), None)
            }
            None => {
                let temporary =
                    TempDir::with_prefix("rtrace-").context("cannot make a directory")?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        Ok(Self {
            options,
            dir,
            _temporary: temporary,
            taken: 0,
            worst: None,
        })
    }

    /// Looks at one after the other until the end; the exit code.
    fn gather(
        mut self,
        session: &Session,
        stop: StopOnDrop<'_>,
        mut run: Run<'_>,
    ) -> anyhow::Result<Code> {
        // Nobody writes to it.
        let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
        let wanted = self.options.conditions.snapshots.unwrap_or(u64::MAX);
        let mut found = 0;
        let code = loop {
            match run.next(&never)? {
                Event::Ended(code) => break Some(code),
                Event::Happened(_) => found += u64::from(self.take(session)?),
            }
            if found == wanted {
                break None;
            }
        };
        let (measured, missed) = session.latency_counts()?;
        drop(stop);
        let missed = match missed {
            0 => String::new(),
            missed => format!(", {missed} could not be"),
        };
        say(format_args!(
            "{measured} wake-ups of all threads were measured{missed}"
        ));
        match &self.worst {
            Some((wait, dir)) => {
                let trace = Trace::open(dir)?;
                show(&case(dir, &trace, wait.clone(), self.options.rows)?)?;
                if self.options.dir.is_some() {
                    say(format_args!("the trace around it is in {}", dir.display()));
                }
            }
            None => say("no thread had to wait as long as was asked for"),
        }
        match code {
            Some(code) => Ok(code),
            None => run.rest(),
        }
    }

    /// Looks at what the buffers hold: whether there is a wait that counts.
    fn take(&mut self, session: &Session) -> anyhow::Result<bool> {
        let options = self.options;
        let dir = self.dir.join((self.taken + 1).to_string());
        if let Some(error) = snapshot::take(session, &dir, options.output_options)?.failure {
            return Err(error.into());
        }
        let longest = Wait::longest(&Trace::open(&dir)?)?;
        let before = self.worst.as_ref().map(|(wait, _)| wait.latency_ns);
        let is_worst = |wait: &Wait| before.is_none_or(|before| wait.latency_ns > before);
        let told = longest.filter(|wait| options.threshold.is_some() || is_worst(wait));
        let Some(wait) = told else {
            // Of the snapshot before: this one fired while that was taken.
            fs::remove_dir_all(&dir).map_err(Error::write(&dir))?;
            return Ok(false);
        };
        self.taken += 1;
        line(&wait)?;
        if !is_worst(&wait) {
            return Ok(true);
        }
        if options.threshold.is_none() {
            // From now on only longer ones.
            session.set_latency_threshold(wait.latency_ns / 1000 + 1)?;
        }
        let last = self.worst.replace((wait, dir));
        if let (Some((_, dir)), None) = (last, &options.dir) {
            fs::remove_dir_all(&dir).map_err(Error::write(&dir))?;
        }
        Ok(true)
    }
}

/// Prints a wait.
fn line(wait: &Wait) -> anyhow::Result<()> {
    let ran = wait.ran_ns.map_or_else(String::new, date::time_of_day);
    let Wait {
        latency_ns,
        thread,
        cpu,
        prev,
        ..
    } = wait;
    let waited = duration(*latency_ns);
    Ok(show(&format!(
        "{ran}  {thread} waited {waited} for CPU {cpu}, which {prev} left\n"
    ))?)
}
