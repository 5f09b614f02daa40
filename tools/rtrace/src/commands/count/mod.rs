// SPDX-License-Identifier: GPL-2.0

//! `rtrace count`: counts events by key in the kernel, or those of a recorded trace.

mod map;
mod place;
mod recorded;

use crate::args::{self, wrong, CountArgs};
use crate::schema::Schema;
use analysis::choice::Part;
use analysis::maps::{self, MapObject};
use analysis::{frame, pass, Catalogue, SendAnalysis};
use anyhow::Context;
use control::Session;
use record::exit::{Code, DONE};
use record::place::Place;
use record::probe::Probes;
use record::recipes::{self, Recipe};
use record::run::condition::{Conditions, Happened};
use record::run::launch;
use record::run::watch::Watch;
use record::run::workload::{Run, RunEvent};
use record::session::cgroup;
use record::session::functions::Functions;
use record::session::maker::Maker;
use record::session::setup::are_calls;
use record::session::tasks::{threads, Tasks};
use record::session::temporary::Temporary;
use recorded::Recorded;
use rtrace_input::map::{LinePart, MapLine};
use rustix::pipe::{pipe_with, PipeFlags};
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::path::Path;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use store::maps::{has_user_stack, MapKey, MapRow, MapTable};
use store::Trace;
use symbols::Recorder;
use system::container::Container;
use system::signals::Signals;
use terminal::{print_on, progress, say, tell};
use unwind::Loader;

/// Counts and prints the tables, or prints the recipes. Returns the exit code.
pub fn count(place: &Place, args: &CountArgs) -> anyhow::Result<Code> {
    if args.recipes {
        terminal::print(&recipes::all())?;
        return Ok(DONE);
    }
    let recipe = &map::recipe(args)?;
    match &args.input {
        Some(dir) => return of_trace(&args::trace(dir.clone())?, args, recipe),
        None if args.range.from.is_some() || args.range.to.is_some() => {
            return Err(wrong("--from and --to are for the trace of -i").into());
        }
        None => {}
    }
    let program = match launch::find(&args.command) {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let tasks = Tasks {
        cgroups: (!args.cgroups.is_empty()).then(|| args.cgroups.clone().into()),
        ..Tasks::new(&args.pids, args.only)
    };
    let conditions = Conditions {
        duration: args.duration,
        ..Conditions::default()
    };
    let signals = Signals::catch()?;
    let tracer = place.tracer()?;
    let me = Maker::me()?;
    // Defined before the session, so that its maps no longer use the events when they are deleted.
    let probes = (!recipe.probes.is_empty()).then(|| Probes::define(&tracer, &recipe.probes, &me));
    let _probes = probes.transpose()?;
    let temporary = Temporary::create(&tracer, None)?;
    let session = temporary.session();
    tasks.apply(session)?;
    Functions::new(&args.functions, &args.graph).apply(session)?;
    let ends = tasks.ends()?;
    let watch = Watch::new(&conditions, session)?;
    // Before the maps count, so that their first stacks are whole, and have names.
    let has_stacks = recipe.maps.iter().any(|line| has_user_stack(line));
    let _unwinding = has_stacks
        .then(|| Loader::begin(&tracer, program.as_slice()))
        .transpose()?;
    let symbols = has_stacks
        .then(|| Recorder::begin(&env::temp_dir()))
        .transpose()?;
    let lines = recipe.maps.iter();
    let lines = lines.map(|line| recipes::with_subsystem(line, &me.subsystem()));
    let lines: Vec<_> = lines.collect();
    let is_without_own = tasks.is_none() && lines.iter().all(|line| is_of_calls(line));
    if is_without_own {
        session.exclude_tasks(&threads(process::id()).unwrap_or_default())?;
    }
    for line in &lines {
        session.set_map(line)?;
    }
    let child = match launch::spawn(&args.command, |command| tasks.spawn(session, command)) {
        Ok(child) => child,
        Err(code) => return Ok(code),
    };
    if is_without_own {
        // Threads that begin from here on are left out, too; COMMAND has begun already.
        session.follow_tasks(true)?;
    }
    if child.is_none() {
        tell(format_args!("counting until {}", conditions.end()));
    }
    let mut run = Run::new(child, signals, &conditions, watch, ends)?;
    let mut counts = Counts::new(session, args, symbols);
    // Hangs up when the printer ends: it failed, or the reader of its output is gone.
    let (over, alive) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let (end, ended) = mpsc::channel::<()>();
    let (event, printed) = thread::scope(|scope| {
        let printer = scope.spawn(move || {
            let _alive = alive;
            counts.print_until(&ended)
        });
        let event = run.next(&over);
        drop(end);
        (event, printer.join())
    });
    let code = match event? {
        RunEvent::Ended(code) => Some(code),
        RunEvent::Happened(Happened::End(what)) => {
            say(what);
            None
        }
        RunEvent::Happened(Happened::Snapshot(..)) => None,
    };
    printed.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
    run.code(code)
}

/// Whether a map counts calls only.
fn is_of_calls(line: &str) -> bool {
    let Ok(MapLine::Define(map)) = MapLine::parse(line) else {
        return false;
    };
    let lists = [Some(map.events), map.begins].into_iter().flatten();
    are_calls(lists.flat_map(LinePart::items).map(|item| item.text))
}

/// Counts the events of the trace in `dir`, and prints the tables.
fn of_trace(dir: &Path, args: &CountArgs, recipe: &Recipe) -> anyhow::Result<Code> {
    if let Some(probe) = recipe.probes.first() {
        let what = "a recorded trace has only the probes that were recorded";
        return Err(wrong(format_args!("-k {probe}: {what}")).into());
    }
    let trace = Trace::open(dir)?;
    let catalogue = Catalogue::new(&trace.metadata);
    let part = Part {
        from: args.range.from,
        to: args.range.to,
        pids: args.pids.clone(),
        ..Part::default()
    };
    let mut tables: Vec<_> = recipe.maps.iter().map(|_| Vec::new()).collect();
    let maps = recipe.maps.iter().zip(&mut tables);
    let analyses = maps.map(|(line, out)| {
        let map = Recorded::new(line, dir, &catalogue, out);
        let map = map.with_context(|| dir.display().to_string())?;
        Ok(Box::new(map) as SendAnalysis<'_>)
    });
    let analyses = analyses.collect::<anyhow::Result<_>>()?;
    let bar = progress::reading(trace.bytes)?;
    let progress = |bytes| bar.inc(bytes);
    let answers = pass::read(dir, &trace, &catalogue, analyses, &part, progress)?;
    bar.finish_and_clear();
    let ns = trace.metadata.clock.nanoseconds(answers.extent.ticks());
    for table in tables.iter_mut().flatten() {
        print(table, args, Duration::from_nanos(ns))?;
    }
    answers.warnings.iter().for_each(say);
    if answers.losses.lost > 0 || !answers.losses.lost_is_exact {
        let mut text = String::new();
        frame::lower_bounds(&mut text)?;
        say(text.trim());
        say(frame::totals(&answers.losses));
    }
    answers.losses.verdict()?;
    Ok(DONE)
}

/// Prints a table that was counted for `time`. Returns whether the output still has a reader.
fn print(table: &mut MapTable, args: &CountArgs, time: Duration) -> anyhow::Result<bool> {
    maps::sort(table, args.sort.as_deref());
    let seconds = time.as_secs_f64();
    if args.json {
        let mut object = MapObject::new(table);
        object.seconds = Some(seconds);
        return Ok(print_on(&Schema::Count.line(&object)?)?);
    }
    let mut text = String::new();
    if args.interval.is_some() {
        writeln!(text, "\nafter {seconds:.1} s")?;
    }
    maps::write(table, args.rows, &mut text)?;
    let is_read = print_on(&text)?;
    maps::warnings(table).iter().for_each(say);
    Ok(is_read)
}

/// The tables of a session's map.
struct Counts<'a> {
    session: &'a Session,
    args: &'a CountArgs,
    begin: Instant,
    /// The tables as they were when they were last printed.
    before: Vec<MapTable>,
    /// The functions of programs, if a key is the user's call stack.
    symbols: Option<Recorder>,
    /// The paths of the cgroups that were seen, by their ids, if a key is the container.
    cgroups: BTreeMap<u64, String>,
}

impl<'a> Counts<'a> {
    fn new(session: &'a Session, args: &'a CountArgs, symbols: Option<Recorder>) -> Self {
        let begin = Instant::now();
        let mut counts = Self {
            session,
            args,
            begin,
            before: Vec::new(),
            symbols,
            cgroups: BTreeMap::new(),
        };
        if map::container(args).is_some() {
            counts.find_cgroups();
        }
        counts
    }

    /// Reads which cgroups there are now. Earlier ones stay known.
    fn find_cgroups(&mut self) {
        match cgroup::all() {
            Ok(cgroups) => self.cgroups.extend(cgroups),
            Err(error) => say(format_args!("cannot list the cgroups: {error}")),
        }
    }

    /// Replaces the ids of cgroups by the names of their containers.
    fn name_containers(&mut self, tables: &mut [MapTable]) {
        let Some(column) = map::container(self.args) else {
            return;
        };
        self.find_cgroups();
        for table in tables {
            table.keys[column] = map::CONTAINER.to_owned();
            table.name_keys(|place, key| match key {
                MapKey::Number(id) if place == column => Some(self.container(*id)),
                _ => None,
            });
        }
    }

    /// The name of the container of a cgroup; `-` if it belongs to none.
    fn container(&self, id: i128) -> String {
        let path = u64::try_from(id).ok().and_then(|id| self.cgroups.get(&id));
        match path.map(|path| Container::of(path)) {
            Some(Some(container)) => container.to_string(),
            Some(None) => "-".to_owned(),
            // Made and removed between two looks.
            None => format!("[cgroup {id}]"),
        }
    }

    /// Prints a table at each interval, and the last one when the other side of `ended` is dropped. Ends early if the
    /// reader of the output is gone.
    fn print_until(&mut self, ended: &mpsc::Receiver<()>) -> anyhow::Result<()> {
        let mut intervals = 0;
        loop {
            let left = self.args.interval.map_or(Duration::MAX, |interval| {
                intervals += 1;
                let due = interval.saturating_mul(intervals);
                due.saturating_sub(self.begin.elapsed())
            });
            let is_last = ended.recv_timeout(left) != Err(RecvTimeoutError::Timeout);
            if !self.print(is_last)? || is_last {
                return Ok(());
            }
        }
    }

    /// Gives names to the functions of the user's call stacks.
    fn name(&mut self, tables: &mut [MapTable], is_last: bool) -> anyhow::Result<()> {
        let symbols = match is_last {
            // Files that were replaced since have names, too.
            true => self.symbols.take().map(|symbols| symbols.end()?.programs()),
            false => self.symbols.as_ref().map(Recorder::programs),
        };
        if let Some(mut programs) = symbols.transpose()? {
            programs.name_maps(tables);
        }
        Ok(())
    }

    /// Prints the tables. Returns whether the output still has a reader.
    fn print(&mut self, is_last: bool) -> anyhow::Result<bool> {
        let mut tables = self.session.maps()?;
        if self.args.interval.is_some() && !self.args.cumulative {
            // The kernel goes on counting: to clear the maps after they were read would lose what came meanwhile.
            let before = std::mem::replace(&mut self.before, tables.clone());
            for (table, before) in tables.iter_mut().zip(&before) {
                subtract(table, before);
            }
        }
        let time = self.begin.elapsed();
        self.name(&mut tables, is_last)?;
        self.name_containers(&mut tables);
        let mut is_read = true;
        for table in &mut tables {
            is_read = print(table, self.args, time)?;
        }
        Ok(is_read)
    }
}

/// Leaves in a table what was added since `before`. Rows without a new event vanish.
fn subtract(table: &mut MapTable, before: &MapTable) {
    let less = |numbers: &mut [i128], earlier: &[i128]| {
        for (number, earlier) in numbers.iter_mut().zip(earlier) {
            *number -= earlier;
        }
    };
    let key = |row: &MapRow| (row.keys.clone(), row.bucket);
    let earlier: BTreeMap<_, _> = before.rows.iter().map(|row| (key(row), row)).collect();
    for row in &mut table.rows {
        if let Some(earlier) = earlier.get(&key(row)) {
            less(&mut row.numbers, &earlier.numbers);
        }
    }
    // The first number is the count.
    table.rows.retain(|row| row.numbers[0] != 0);
    less(&mut table.overflow, &before.overflow);
    table.lacking -= before.lacking;
    if let (Some(unpaired), Some(before)) = (&mut table.unpaired, &before.unpaired) {
        unpaired.unmatched -= before.unmatched;
        unpaired.repeated -= before.repeated;
        unpaired.dropped -= before.dropped;
    }
    if let (Some(stackless), Some(before)) = (&mut table.stackless, before.stackless) {
        *stackless -= before;
    }
}
