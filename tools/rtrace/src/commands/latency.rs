// SPDX-License-Identifier: GPL-2.0

//! `rtrace latency`: measures and reports the longest waits for a CPU, the longest times until a CPU is given up, or
//! the longest delays of interrupts.

use crate::args::{trace, LatencyArgs};
use crate::exit::{Code, DONE};
use crate::options::{self, Latency as Options, TIMERS};
use crate::place::Place;
use crate::run::condition::Happened;
use crate::run::launch::cannot_run;
use crate::run::watch::Watch;
use crate::run::workload::{self, Event, Run};
use crate::session::on_drop::StopOnDrop;
use crate::session::tasks::{self, check_namespace, Ends};
use crate::session::temporary::Temporary;
use analysis::choice::Choice;
use analysis::delay::{Delay, What};
use analysis::loss::Losses;
use analysis::meanwhile::Meanwhile;
use analysis::{pass, Catalogue, SendAnalysis};
use anyhow::{bail, Context};
use control::snapshot::{self, Snapshot};
use control::{Latency, Session};
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use store::{Claim, Trace};
use system::signals::Signals;
use system::Error;
use tempfile::TempDir;
use terminal::{date, duration, print as show, print_json, say, tell};

/// Event that samples a processor with interrupts off, where the processor can be sampled then.
const SAMPLES: &str = "profile:profile_cycles";

/// Measures and prints the latencies, or prints the longest one of a trace. Returns the exit code.
pub fn latency(place: &Place, args: LatencyArgs) -> anyhow::Result<Code> {
    if let Some(dir) = &args.input {
        let rows = (!args.json).then_some(args.rows);
        return print(&trace(dir.clone())?, args.measured(), rows);
    }
    measure(place, &options::latency(args))
}

/// Prints the longest latency of the trace in `dir`.
fn print(dir: &Path, measured: Latency, rows: Option<usize>) -> anyhow::Result<Code> {
    let trace = Trace::open(dir)?;
    match Delay::longest(measured, &trace)? {
        Some(delay) => {
            let losses = case(dir, &trace, delay, rows)?;
            losses.warnings().iter().for_each(say);
            losses.verdict()?;
            Ok(DONE)
        }
        None => bail!(
            "{} has no {}: record it, with sched_switch, irq and softirq",
            dir.display(),
            measured.pattern()
        ),
    }
}

/// Prints a delay of the trace in `dir` and what happened meanwhile: as text with `rows` rows, or as JSON.
fn case(dir: &Path, trace: &Trace, delay: Delay, rows: Option<usize>) -> anyhow::Result<Losses> {
    let catalogue = Catalogue::new(&trace.metadata);
    let meanwhile: SendAnalysis<'_> = Box::new(Meanwhile::new(dir, &catalogue, delay));
    let answers = pass::read(
        dir,
        trace,
        &catalogue,
        vec![meanwhile],
        &Choice::default(),
        |_| {},
    )?;
    let Some(rows) = rows else {
        print_json(&answers.object()?)?;
        return Ok(answers.losses);
    };
    let mut text = String::new();
    for answer in answers.answers() {
        answer.text(&mut text, rows)?;
    }
    show(&text)?;
    Ok(answers.losses)
}

fn measure(place: &Place, options: &Options) -> anyhow::Result<Code> {
    let tracer = place.tracer()?;
    let available = tracer.available_events()?;
    let is_there = |event: &str| available.iter().any(|name| name == event);
    let event = options.measured.pattern();
    if !is_there(event) {
        bail!("the module has no {event}: it is older than this command");
    }
    if let Some((program, _)) = &options.command {
        if let Err(error) = workload::find(program) {
            return Ok(cannot_run(program, &error));
        }
    }
    let ends = match options.pids.as_slice() {
        [] => None,
        pids => {
            check_namespace()?;
            Some(Ends::of(pids)?)
        }
    };
    let cases = Cases::new(options)?;
    let signals = Signals::catch()?;
    let temporary = Temporary::create(&tracer, None)?;
    let session = temporary.session();
    options.setup.apply(session)?;
    let mut watch = Watch::new(&options.conditions, session)?;
    match options.measured {
        Latency::Wakeup | Latency::Preempt => {
            let condition = options.filter.iter().map(|filter| format!(" if {filter}"));
            let trigger = format!("stacktrace{}", condition.collect::<String>());
            session.set_trigger(event, &trigger)?;
        }
        Latency::Timer if is_there(SAMPLES) => {
            let channel = session
                .channel(TIMERS)?
                .context("the channel of the timers was removed")?;
            channel.set_events(&[event, SAMPLES])?;
        }
        Latency::Timer => {}
    }
    if options.lazy {
        session.count_lazy_preemptions(true)?;
    }
    if let Some(period) = options.period {
        session.set_timer_latency_period(u64::try_from(period.as_micros())?)?;
    }
    if let Some(threshold) = options.threshold {
        let threshold = u64::try_from(threshold.as_micros())?;
        session.set_latency_threshold(options.measured, threshold)?;
    }
    watch.begin()?;
    session.start()?;
    let stop = StopOnDrop {
        session,
        patience: None,
    };
    let child = match &options.command {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            match tasks::run(command) {
                Ok(child) => Some(child),
                Err(error) => return Ok(cannot_run(program, &error)),
            }
        }
        None => {
            let until = match options.conditions.duration {
                Some(_) => "the time has passed, or Ctrl-C",
                None => "Ctrl-C",
            };
            tell(format_args!(
                "measuring until {until}; times are in {}",
                date::zone_name(None)
            ));
            None
        }
    };
    let run = Run::new(child, signals, &options.conditions, watch, ends)?;
    cases.gather(session, stop, run)
}

/// Delays found so far.
struct Cases<'a> {
    options: &'a Options,
    /// The directory of their traces: the user's, or a temporary one.
    dir: PathBuf,
    _claim: Option<Claim>,
    _temporary: Option<TempDir>,
    /// Number of snapshots taken.
    taken: u64,
    worst: Option<(Delay, PathBuf)>,
}

impl<'a> Cases<'a> {
    fn new(options: &'a Options) -> anyhow::Result<Self> {
        let (dir, claim, temporary) = match &options.dir {
            Some(dir) => {
                let claim = Claim::take(dir, options.output_options.access)?;
                let mut held = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
                if held.next().is_some() {
                    bail!("{} is not empty: choose a new directory", dir.display());
                }
                (dir.clone(), Some(claim), None)
            }
            None => {
                let temporary =
                    TempDir::with_prefix("rtrace-").context("cannot create a directory")?;
                (temporary.path().to_owned(), None, Some(temporary))
            }
        };
        Ok(Self {
            options,
            dir,
            _claim: claim,
            _temporary: temporary,
            taken: 0,
            worst: None,
        })
    }

    /// Examines one snapshot after the other until the end. Returns the exit code.
    fn gather(
        mut self,
        session: &Session,
        stop: StopOnDrop<'_>,
        mut run: Run<'_>,
    ) -> anyhow::Result<Code> {
        // `never` never becomes readable: `_kept` keeps the pipe open, and no code writes to it.
        let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
        let wanted = self.options.conditions.snapshots.unwrap_or(u64::MAX);
        let mut found = 0;
        let code = loop {
            match run.next(&never)? {
                Event::Ended(code) => break Some(code),
                Event::Happened(Happened::End(what)) => {
                    say(what);
                    break None;
                }
                Event::Happened(Happened::Snapshot(_)) => found += u64::from(self.take(session)?),
            }
            if found == wanted {
                break None;
            }
        };
        let (measured, missed) = session.latency_counts(self.options.measured)?;
        drop(stop);
        let missed = match missed {
            0 => String::new(),
            missed => format!(", {missed} could not be measured"),
        };
        let (one, many) = match self.options.measured {
            Latency::Wakeup => ("wait for a CPU", "waits for a CPU"),
            Latency::Preempt => ("request to give up a CPU", "requests to give up a CPU"),
            Latency::Timer => ("expiry of a timer", "expiries of timers"),
        };
        // The module counts what it measures before a filter chooses.
        tell(format_args!(
            "{measured} {many} were measured, of all threads and CPUs{missed}"
        ));
        match &self.worst {
            Some((delay, dir)) => {
                let trace = Trace::open(dir)?;
                case(dir, &trace, delay.clone(), Some(self.options.rows))?;
                if self.options.dir.is_some() {
                    tell(format_args!("the trace around it is in {}", dir.display()));
                }
            }
            None => say(format_args!("no {one} {}", self.missing())),
        }
        match code {
            Some(code) => Ok(code),
            None => run.rest(),
        }
    }

    /// Says what no delay did: its length, and the choice of threads and CPUs.
    fn missing(&self) -> String {
        let options = self.options;
        let least = options.threshold.map(|least| {
            let least = least.as_nanos().try_into().unwrap_or(u64::MAX);
            match options.measured {
                Latency::Timer => format!("was late by {} or more", duration(least)),
                _ => format!("took {} or more", duration(least)),
            }
        });
        let least = least.unwrap_or_else(|| "was measured".to_owned());
        match options.chosen.as_str() {
            "" => least,
            chosen => format!("{least} ({chosen} only)"),
        }
    }

    /// Takes a snapshot. Returns whether it has a delay that counts.
    fn take(&mut self, session: &Session) -> anyhow::Result<bool> {
        let options = self.options;
        let dir = self.dir.join((self.taken + 1).to_string());
        let Snapshot {
            exposed, failure, ..
        } = snapshot::take(session, &dir, options.output_options)?;
        if let Some(error) = failure {
            return Err(error.into());
        }
        if let Some(exposed) = exposed {
            say(exposed);
        }
        let longest = Delay::longest(options.measured, &Trace::open(&dir)?)?;
        let before = self.worst.as_ref().map(|(delay, _)| delay.latency_ns);
        let is_worst = |delay: &Delay| before.is_none_or(|before| delay.latency_ns > before);
        let told = longest.filter(|delay| options.threshold.is_some() || is_worst(delay));
        let Some(delay) = told else {
            // The delay is in the previous snapshot: its trigger fired while that snapshot was taken.
            fs::remove_dir_all(&dir).map_err(Error::write(&dir))?;
            return Ok(false);
        };
        self.taken += 1;
        line(&delay)?;
        if !is_worst(&delay) {
            return Ok(true);
        }
        if options.threshold.is_none() {
            // From now on, only longer delays fire the trigger.
            session.set_latency_threshold(options.measured, delay.latency_ns / 1000 + 1)?;
        }
        let last = self.worst.replace((delay, dir));
        if let (Some((_, dir)), None) = (last, &options.dir) {
            fs::remove_dir_all(&dir).map_err(Error::write(&dir))?;
        }
        Ok(true)
    }
}

/// Prints a delay.
fn line(delay: &Delay) -> anyhow::Result<()> {
    let came = delay.came_ns.map_or_else(String::new, date::time_of_day);
    let Delay { thread, cpu, .. } = delay;
    let late = duration(delay.latency_ns);
    Ok(show(&match &delay.what {
        What::Wakeup {
            preempted, prev, ..
        } => {
            let begin = if *preempted { "preempted" } else { "woken" };
            format!(
                "{came}  {thread} was {begin} and waited {late} for CPU {cpu}, which {prev} left\n"
            )
        }
        What::Preempt { next, .. } => {
            format!("{came}  {thread} kept CPU {cpu} for {late}, which {next} got then\n")
        }
        What::Timer { .. } => {
            format!("{came}  a timer of CPU {cpu} expired {late} late and interrupted {thread}\n")
        }
    })?)
}
