// SPDX-License-Identifier: GPL-2.0

//! `rtrace latency`: measures and reports the longest waits for a CPU, the longest times until a CPU is given up, or
//! the longest delays of interrupts.

mod choice;

use crate::args::{trace, LatencyArgs};
use crate::schema::Schema;
use analysis::choice::Part;
use analysis::delay::{Delay, What};
use analysis::form::Questions;
use analysis::loss::Losses;
use analysis::meanwhile::Meanwhile;
use analysis::{pass, Catalogue, SendAnalysis};
use anyhow::{bail, Context};
use choice::TIMERS;
use control::snapshot::{self, Snapshot};
use control::Session;
use ctf::LatencyKind;
use record::exit::{Code, DONE};
use record::place::Place;
use record::recording::new_directory;
use record::run::condition::{Condition, Conditions, Happened};
use record::run::launch;
use record::run::watch::Watch;
use record::run::workload::{never, Run, RunEvent};
use record::session::on_drop::StopOnDrop;
use record::session::tasks::{self, check_namespace, Ends};
use record::session::temporary::Temporary;
use std::fs;
use std::path::{Path, PathBuf};
use store::{Claim, Trace};
use system::signals::Signals;
use system::Error;
use tempfile::TempDir;
use terminal::{date, duration, print as show, say, tell};

/// Event that samples a processor with interrupts off, where the processor can be sampled then.
const SAMPLES: &str = "profile:profile_cycles";

/// Measures and prints the latencies, or prints the longest one of a trace. Returns the exit code.
pub fn latency(place: &Place, mut args: LatencyArgs) -> anyhow::Result<Code> {
    match args.input.take() {
        Some(dir) => print(&trace(dir)?, &args),
        None => measure(place, &args),
    }
}

/// Prints the longest latency of the trace in `dir`.
fn print(dir: &Path, args: &LatencyArgs) -> anyhow::Result<Code> {
    let measured = args.measured();
    let trace = Trace::open(dir)?;
    match Delay::longest(measured, &trace)? {
        Some(delay) => {
            let losses = case(dir, &trace, delay, (!args.json).then_some(args.rows))?;
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
        &Part::default(),
        |_| {},
    )?;
    let Some(rows) = rows else {
        Schema::Report.print(&answers.object::<Questions>()?, None)?;
        return Ok(answers.losses);
    };
    let mut text = String::new();
    for answer in answers.answers() {
        answer.text(&mut text, rows)?;
    }
    show(&text)?;
    Ok(answers.losses)
}

fn measure(place: &Place, args: &LatencyArgs) -> anyhow::Result<Code> {
    let tracer = place.tracer()?;
    let available = tracer.available_events()?;
    let is_there = |event: &str| available.iter().any(|name| name == event);
    let measured = args.measured();
    let event = measured.pattern();
    if !is_there(event) {
        bail!("the module has no {event}: it is older than this command");
    }
    if let Err(code) = launch::find(&args.command) {
        return Ok(code);
    }
    let ends = match args.pids.as_slice() {
        [] => None,
        pids => {
            check_namespace()?;
            Some(Ends::of(pids)?)
        }
    };
    let cases = Cases::new(args)?;
    let filter = choice::filter(args);
    let conditions = Conditions {
        snapshot_on: vec![Condition::Event {
            pattern: event.to_owned(),
            filter: filter.clone(),
        }],
        duration: args.duration,
        ..Conditions::default()
    };
    let signals = Signals::catch()?;
    let temporary = Temporary::create(&tracer, None)?;
    let session = temporary.session();
    choice::setup(args, filter.as_ref()).apply(session)?;
    let mut watch = Watch::new(&conditions, session)?;
    match measured {
        LatencyKind::Wakeup | LatencyKind::Preempt => {
            let condition = filter.iter().map(|filter| format!(" if {filter}"));
            let trigger = format!("stacktrace{}", condition.collect::<String>());
            session.set_trigger(event, &trigger)?;
        }
        LatencyKind::Timer if is_there(SAMPLES) => {
            let channel = session
                .channel(TIMERS)?
                .context("the channel of the timers was removed")?;
            channel.set_events(&[event, SAMPLES])?;
        }
        LatencyKind::Timer => {}
    }
    if args.lazy {
        session.count_lazy_preemptions(true)?;
    }
    if let Some(period) = args.period {
        session.set_timer_latency_period(u64::try_from(period.as_micros())?)?;
    }
    if let Some(threshold) = args.threshold {
        let threshold = u64::try_from(threshold.as_micros())?;
        session.set_latency_threshold(measured, threshold)?;
    }
    watch.begin()?;
    session.start()?;
    let stop = StopOnDrop {
        session,
        patience: None,
    };
    let child = match launch::spawn(&args.command, tasks::run) {
        Ok(child) => child,
        Err(code) => return Ok(code),
    };
    if child.is_none() {
        tell(format_args!(
            "measuring until {}; times are in {}",
            conditions.end(),
            date::zone_name(None)
        ));
    }
    let run = Run::new(child, signals, &conditions, watch, ends)?;
    cases.gather(session, stop, run)
}

/// Delays found so far.
struct Cases<'a> {
    args: &'a LatencyArgs,
    measured: LatencyKind,
    /// The directory of their traces: the user's, or a temporary one.
    dir: PathBuf,
    _claim: Option<Claim>,
    temporary: Option<TempDir>,
    /// Number of snapshots taken.
    taken: u64,
    worst: Option<(Delay, PathBuf)>,
}

impl<'a> Cases<'a> {
    fn new(args: &'a LatencyArgs) -> anyhow::Result<Self> {
        let kept = args.output.clone();
        let (dir, claim, temporary) = match kept.or(args.threshold.map(|_| new_directory())) {
            Some(dir) => {
                let claim = Claim::take(&dir, args.access.access())?;
                let mut held = fs::read_dir(&dir).with_context(|| dir.display().to_string())?;
                if held.next().is_some() {
                    bail!("{} is not empty: choose a new directory", dir.display());
                }
                (dir, Some(claim), None)
            }
            None => {
                let temporary =
                    TempDir::with_prefix("rtrace-").context("cannot create a directory")?;
                (temporary.path().to_owned(), None, Some(temporary))
            }
        };
        Ok(Self {
            args,
            measured: args.measured(),
            dir,
            _claim: claim,
            temporary,
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
        let never = never()?;
        let wanted = self.args.count.unwrap_or(u64::MAX);
        let mut found = 0;
        let code = loop {
            match run.next(&never)? {
                RunEvent::Ended(code) => break Some(code),
                RunEvent::Happened(Happened::End(what)) => {
                    say(what);
                    break None;
                }
                RunEvent::Happened(Happened::Snapshot(..)) => {
                    found += u64::from(self.take(session)?)
                }
            }
            if found == wanted {
                break None;
            }
        };
        let (measured, missed) = session.latency_counts(self.measured)?;
        drop(stop);
        let missed = match missed {
            0 => String::new(),
            missed => format!(", {missed} could not be measured"),
        };
        let (one, many) = match self.measured {
            LatencyKind::Wakeup => ("wait for a CPU", "waits for a CPU"),
            LatencyKind::Preempt => ("request to give up a CPU", "requests to give up a CPU"),
            LatencyKind::Timer => ("expiry of a timer", "expiries of timers"),
        };
        // The module counts what it measures before a filter chooses.
        tell(format_args!(
            "{measured} {many} were measured, of all threads and CPUs{missed}"
        ));
        match &self.worst {
            Some((delay, dir)) => {
                let trace = Trace::open(dir)?;
                case(dir, &trace, delay.clone(), Some(self.args.rows))?;
                if self.temporary.is_none() {
                    tell(format_args!("the trace around it is in {}", dir.display()));
                }
            }
            None => say(format_args!("no {one} {}", self.missing())),
        }
        run.code(code)
    }

    /// Says what no delay did: its length, and the choice of threads and CPUs.
    fn missing(&self) -> String {
        let least = self.args.threshold.map(|least| {
            let least = least.as_nanos().try_into().unwrap_or(u64::MAX);
            match self.measured {
                LatencyKind::Timer => format!("was late by {} or more", duration(least)),
                _ => format!("took {} or more", duration(least)),
            }
        });
        let least = least.unwrap_or_else(|| "was measured".to_owned());
        match choice::chosen(self.args).as_str() {
            "" => least,
            chosen => format!("{least} ({chosen} only)"),
        }
    }

    /// Takes a snapshot. Returns whether it has a delay that counts.
    fn take(&mut self, session: &Session) -> anyhow::Result<bool> {
        let threshold = self.args.threshold;
        let dir = self.dir.join((self.taken + 1).to_string());
        let Snapshot {
            exposed, failure, ..
        } = snapshot::take(session, &dir, self.args.access.output())?;
        if let Some(error) = failure {
            return Err(error.into());
        }
        if let Some(exposed) = exposed {
            say(exposed);
        }
        let longest = Delay::longest(self.measured, &Trace::open(&dir)?)?;
        let before = self.worst.as_ref().map(|(delay, _)| delay.latency_ns);
        let is_worst = |delay: &Delay| before.is_none_or(|before| delay.latency_ns > before);
        let told = longest.filter(|delay| threshold.is_some() || is_worst(delay));
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
        if threshold.is_none() {
            // From now on, only longer delays fire the trigger.
            session.set_latency_threshold(self.measured, delay.latency_ns / 1000 + 1)?;
        }
        let last = self.worst.replace((delay, dir));
        if let (Some((_, dir)), Some(_)) = (last, &self.temporary) {
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
