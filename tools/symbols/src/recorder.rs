// SPDX-License-Identifier: GPL-2.0

//! Records all changes of code during a recording: the state at the start from /proc, and from then on the kernel's
//! records for perf.

use super::history::{History, Snapshot};
use super::kept::{is_made, Kept};
use super::kernel::Kernel;
use super::made::Made;
use super::mappings::{self, MapLine, MappedFile, Mappings, Times};
use super::perf::{Change, Cpus};
use super::programs::Programs;
use super::running;
use anyhow::Context;
use rustix::io::Errno;
use rustix::time::{clock_gettime, ClockId};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::beside::MAPPINGS;
use system::access::Access;
use terminal::say;
use uuid::Uuid;

/// The interval of reads while programs begin. The file of a program that ends earlier is found by its path alone.
const BUSY: Duration = Duration::from_millis(10);

/// The interval of reads while nothing changes.
const QUIET: Duration = Duration::from_millis(80);

/// Records from its creation until it [ends](Self::end).
pub struct Recorder {
    stop: Arc<AtomicBool>,
    passes: Arc<Passes>,
    clocks: [u64; 2],
    /// The lines of all mappings, to read them.
    lines: File,
    thread: JoinHandle<io::Result<Watch>>,
}

/// Reads of the kernel's records, so that another thread can wait for one.
#[derive(Default)]
struct Passes {
    /// Number of requested reads.
    wanted: AtomicU64,
    /// The requests before the last complete read.
    done: AtomicU64,
}

/// The changes of a recording.
pub struct Recorded {
    /// Two clocks at one moment: CLOCK_MONOTONIC and CLOCK_REALTIME.
    clocks: [u64; 2],
    /// The lines of all mappings.
    lines: File,
    /// The kernel's code, by CLOCK_MONOTONIC.
    kernel: Kernel,
    kept: Arc<Kept>,
}

/// The changes so far.
struct Watch {
    clocks: [u64; 2],
    lines: BufWriter<File>,
    history: History,
    kept: Kept,
    made: Made,
}

impl Recorder {
    /// Begins. If it does not end, it leaves no file on the disk of `dir`.
    pub fn begin(dir: &Path) -> anyhow::Result<Self> {
        let there = dir.ancestors().find(|dir| dir.exists());
        let file = tempfile::tempfile_in(there.unwrap_or(Path::new(".")));
        let file = file.and_then(|file| Ok((file.try_clone()?, file)));
        let (lines, file) = file.with_context(|| dir.display().to_string())?;
        let mut watch = Watch {
            clocks: [now(ClockId::Monotonic), now(ClockId::Realtime)],
            lines: BufWriter::new(file),
            history: History::default(),
            kept: Kept::default(),
            made: Made::default(),
        };
        let mut cpus =
            Cpus::open().context("cannot record the mappings of programs (perf_event_open)")?;
        if !cpus.sees_modules() {
            say("tracefs does not show the event module_load: functions of modules that are loaded or unloaded \
                 during the recording will have no name");
            watch.history.miss();
        }
        // Changes in the meantime are recorded already.
        running::processes(|change| watch.take(change))
            .and_then(|()| watch.snapshot(&mut cpus))
            .context("cannot write the mappings of programs")?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let passes = Arc::new(Passes::default());
        let passed = passes.clone();
        let clocks = watch.clocks;
        let thread = thread::spawn(move || watch.run(cpus, &is_over, &passed));
        Ok(Self {
            stop,
            passes,
            clocks,
            lines,
            thread,
        })
    }

    /// The programs, by the changes until a moment ago.
    pub fn programs(&self) -> anyhow::Result<Programs> {
        programs(&self.lines).context("cannot read the mappings of programs")
    }

    /// The changes until now, without the first `from` bytes of their lines, by the clock of a trace. Adds the bytes
    /// that were read to `from`.
    pub(super) fn changes(&self, from: &mut u64, clock: &ctf::Clock) -> anyhow::Result<Mappings> {
        let wanted = self.passes.wanted.fetch_add(1, Ordering::AcqRel) + 1;
        self.thread.thread().unpark();
        // A thread that failed says so at the end.
        while self.passes.done.load(Ordering::Acquire) < wanted && !self.thread.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        let changes = changes(&self.lines, from, self.clocks, clock);
        changes.context("cannot read the mappings of programs")
    }

    /// Ends the recording of changes.
    pub fn end(self) -> anyhow::Result<Recorded> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let written = self
            .thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes it has panicked")));
        let recorded = written.and_then(Watch::end);
        recorded.context("cannot write the mappings of programs")
    }
}

impl Recorded {
    /// Writes the mappings beside the trace in `dir`.
    pub fn write(&self, dir: &Path, trace: Uuid, access: Access) -> system::Result<()> {
        MAPPINGS.write(dir, access, |to| {
            let [monotonic, realtime] = self.clocks;
            to.write_all(mappings::head(trace, monotonic, realtime).as_bytes())?;
            let mut from = &self.lines;
            from.rewind()?;
            io::copy(&mut from, to).map(drop)
        })
    }

    /// The programs, by all changes.
    pub fn programs(&self) -> anyhow::Result<Programs> {
        let mut programs = programs(&self.lines).context("cannot read the mappings of programs")?;
        programs.keep(self.kept());
        Ok(programs)
    }

    /// The kernel's code, by the clock of a trace.
    pub(super) fn kernel(&self, clock: &ctf::Clock) -> Kernel {
        let [monotonic, realtime] = self.clocks;
        let times = Times::new(clock, monotonic, realtime);
        self.kernel.clone().timed(|ns| times.trace(ns))
    }

    /// The files that were kept open.
    pub(super) fn kept(&self) -> Arc<Kept> {
        self.kept.clone()
    }
}

impl Watch {
    fn run(mut self, mut cpus: Cpus, is_over: &AtomicBool, passes: &Passes) -> io::Result<Self> {
        let (mut is_blind, mut interval) = (false, BUSY);
        loop {
            // Before the read, so that records that follow are read, too.
            let is_last = is_over.load(Ordering::Acquire);
            let wanted = passes.wanted.load(Ordering::Acquire);
            let any = cpus.read(|change| self.take(change))?;
            if self.history.lacks() {
                self.snapshot(&mut cpus)?;
            }
            self.made.look(&mut self.kept);
            self.lines.flush()?;
            passes.done.store(wanted, Ordering::Release);
            if is_last {
                return Ok(self);
            }
            interval = if any { BUSY } else { QUIET.min(2 * interval) };
            thread::park_timeout(interval);
            match cpus.open_new() {
                // A CPU of the list has gone offline meanwhile. The next pass has a new list.
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
                Err(error) if !is_blind => {
                    say(format_args!(
                        "cannot record the mappings of programs on a new CPU, so some of their \
                         functions will have no name: {error}"
                    ));
                    is_blind = true;
                    self.history.miss();
                }
                _ => {}
            }
        }
    }

    /// Reads the kernel's functions, and all changes that happened before.
    fn snapshot(&mut self, cpus: &mut Cpus) -> io::Result<()> {
        let snapshot = Snapshot::read(|| now(ClockId::Monotonic));
        cpus.read(|change| self.take(change))?;
        self.history.add(&snapshot);
        Ok(())
    }

    fn take(&mut self, change: Change) -> io::Result<()> {
        let out = &mut self.lines;
        match change {
            Change::Map {
                ns,
                pid,
                begin,
                len,
                offset,
                id,
                path,
            } => {
                let line = MapLine {
                    ns,
                    pid,
                    address: begin,
                    len,
                    offset,
                    id: id.as_deref(),
                    path: &path,
                };
                writeln!(out, "{line}")?;
                if is_made(&path) {
                    self.made.map(ns, pid, begin, len);
                }
                // A file that was mapped before the recording can be read at the end, by its build id.
                let file = MappedFile { path, id };
                if ns > 0 || file.build_id().is_none() {
                    let end = begin.saturating_add(len);
                    let since = self.since_epoch(ns);
                    let mapped = || running::open_mapped(pid, begin, end, &file);
                    self.kept.keep(&file, mapped, since);
                }
                Ok(())
            }
            Change::Fork {
                ns,
                pid,
                tid,
                parent,
            } => writeln!(out, "fork {ns} {pid} {tid} {parent}"),
            Change::Exec { ns, pid } => {
                self.made.end(pid);
                writeln!(out, "exec {ns} {pid}")
            }
            Change::Exit { ns, pid, tid } => {
                if pid == tid {
                    self.made.end(pid);
                }
                writeln!(out, "exit {ns} {pid} {tid}")
            }
            Change::Load {
                ns,
                owner,
                functions,
            } => {
                self.history.load(ns, owner, functions);
                Ok(())
            }
            Change::Unload { ns, owner } => {
                self.history.unload(ns, &owner);
                Ok(())
            }
            Change::Lost { ns, count } => {
                say(format_args!(
                    "{count} changes of programs' mappings were lost: some of their functions will have no name"
                ));
                self.history.miss();
                writeln!(out, "lost {ns} {count}")
            }
        }
    }

    /// The nanoseconds since the epoch of a time of CLOCK_MONOTONIC; for 0, of the start.
    fn since_epoch(&self, ns: u64) -> i128 {
        let [monotonic, realtime] = self.clocks.map(i128::from);
        match ns {
            0 => realtime,
            ns => realtime + i128::from(ns) - monotonic,
        }
    }

    fn end(mut self) -> io::Result<Recorded> {
        for line in self.made.lines() {
            writeln!(self.lines, "{line}")?;
        }
        Ok(Recorded {
            clocks: self.clocks,
            lines: self.lines.into_inner()?,
            kernel: self
                .history
                .end(|| Snapshot::read(|| now(ClockId::Monotonic))),
            kept: Arc::new(self.kept),
        })
    }
}

/// The programs, by the complete lines in a file. Their times are those of CLOCK_MONOTONIC.
fn programs(file: &File) -> anyhow::Result<Programs> {
    let clock = ctf::Clock {
        frequency: 1_000_000_000,
        offset_s: 0,
        offset: 0,
    };
    let mappings = changes(file, &mut 0, [0, 0], &clock)?;
    Ok(Programs::new(mappings, Vec::new()))
}

/// The changes in the complete lines of a file after its first `from` bytes, by a trace's clock. Adds the bytes of these
/// lines to `from`.
fn changes(
    file: &File,
    from: &mut u64,
    [monotonic, realtime]: [u64; 2],
    clock: &ctf::Clock,
) -> anyhow::Result<Mappings> {
    // The file's position is the writer's.
    let len = file.metadata()?.len().saturating_sub(*from);
    let mut text = vec![0; usize::try_from(len)?];
    file.read_exact_at(&mut text, *from)?;
    let complete = text.iter().rposition(|byte| *byte == b'\n');
    text.truncate(complete.map_or(0, |last| last + 1));
    *from += text.len() as u64;
    let trace = Uuid::nil();
    let mut all = mappings::head(trace, monotonic, realtime).into_bytes();
    all.extend(text);
    let mappings = Mappings::parse(MAPPINGS.lines(all.as_slice()), trace, clock)?;
    Ok(mappings.unwrap_or_default())
}

fn now(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
