// SPDX-License-Identifier: GPL-2.0

//! A session's control files.

use crate::aux_losses::AuxLosses;
use crate::channel::Channel;
use crate::settings::ChangedSetting;
use crate::tracer::{lines, Tracer, FIRST_CHANNEL};
use consumer::stats::TraceStats;
use ctf::LatencyKind;
use rustix::io::Errno;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use system::{Error, Result};
use uuid::Uuid;

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    tracer: Tracer,
    name: String,
}

/// A set of tasks whose events a session records or excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSet {
    /// Only events of these tasks, if there are any.
    Only,
    /// No events of these tasks.
    Not,
}

/// A set of kernel functions that a session traces or excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionSet {
    /// These functions.
    Only,
    /// Not these functions, even if they are in the other set.
    Not,
}

impl FunctionSet {
    fn file(self) -> &'static str {
        match self {
            Self::Only => "set_ftrace_filter",
            Self::Not => "set_ftrace_notrace",
        }
    }
}

impl TaskSet {
    fn file(self) -> &'static str {
        match self {
            Self::Only => "set_event_pid",
            Self::Not => "set_event_notrace_pid",
        }
    }
}

impl Session {
    /// The existing session of this name.
    pub(crate) fn new(tracer: &Tracer, name: &str) -> Self {
        Self {
            tracer: tracer.clone(),
            name: name.to_owned(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tracer that it belongs to.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Whether it still exists.
    pub fn exists(&self) -> bool {
        self.path("").is_dir()
    }

    /// Whether it records at the moment.
    pub fn is_active(&self) -> Result<bool> {
        Ok(self.read("enable")?.trim() != "0")
    }

    /// Starts a new trace.
    pub fn start(&self) -> Result<()> {
        self.write("enable", "1")
    }

    /// Starts a new trace, unless a signal arrives meanwhile. Returns whether it started.
    pub fn try_start(&self) -> Result<bool> {
        let path = self.path("enable");
        // One write(2), because `write_all` would repeat an interrupted one.
        let written = OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write(b"1"));
        match written {
            Ok(_) => Ok(true),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(cause) => Err(self.refused(&path, "1", cause)),
        }
    }

    /// Ends the trace. The contents of the buffers stay readable.
    pub fn stop(&self) -> Result<()> {
        self.write("enable", "0")
    }

    /// The clock of the next trace, or of the active one.
    pub fn clock(&self) -> Result<String> {
        let text = self.read("clock")?;
        let chosen = text.split_whitespace().find_map(|word| {
            word.strip_prefix('[')
                .and_then(|word| word.strip_suffix(']'))
        });
        Ok(chosen.unwrap_or(text.trim()).to_owned())
    }

    /// Chooses the clock of the next trace.
    pub fn set_clock(&self, name: &str) -> Result<()> {
        self.write("clock", name)
    }

    /// The number of samples per second and CPU.
    pub fn sample_frequency(&self) -> Result<u32> {
        let text = self.read("sample_freq")?;
        text.trim().parse().map_err(|cause| Error::Read {
            path: self.path("sample_freq"),
            cause: io::Error::new(io::ErrorKind::InvalidData, cause),
        })
    }

    /// Sets the number of samples per second and CPU, for the next trace.
    pub fn set_sample_frequency(&self, hertz: u32) -> Result<()> {
        self.write("sample_freq", &hertz.to_string())
    }

    /// Its channels: the first one, then the others by name.
    pub fn channels(&self) -> Result<Vec<Channel>> {
        let mut names = self.tracer.names(&self.file("channels"))?;
        names.sort_by_key(|name| name != FIRST_CHANNEL);
        Ok(names.iter().map(|name| Channel::new(self, name)).collect())
    }

    /// The channel of this name, if it exists.
    pub fn channel(&self, name: &str) -> Result<Option<Channel>> {
        let mut channels = self.channels()?.into_iter();
        Ok(channels.find(|channel| channel.name() == name))
    }

    /// The channel that each session has.
    pub fn first_channel(&self) -> Channel {
        Channel::new(self, FIRST_CHANNEL)
    }

    /// Adds a channel, with the default settings and no event enabled. `EBUSY` while the session
    /// records.
    pub fn create_channel(&self, name: &str) -> Result<Channel> {
        self.write("create_channel", name)?;
        Ok(Channel::new(self, name))
    }

    /// Opens the metadata file.
    pub fn open_metadata(&self) -> Result<File> {
        let path = self.path("metadata");
        File::open(&path).map_err(|cause| self.no_trace_or_read(&path, cause))
    }

    /// The identity of the current or last trace. [`None`]: before the first start.
    pub fn uuid(&self) -> Result<Option<Uuid>> {
        let path = self.path("uuid");
        match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().map(Some).map_err(|cause| Error::Read {
                path,
                cause: io::Error::new(io::ErrorKind::InvalidData, cause),
            }),
            Err(e) if is_no_trace(&e) => Ok(None),
            Err(e) => Err(Error::Read { path, cause: e }),
        }
    }

    /// The current threads of a set. [`follow_tasks`](Self::follow_tasks) changes the set.
    pub fn tasks(&self, set: TaskSet) -> Result<Vec<u32>> {
        let text = self.read(set.file())?;
        let parsed = text.split_whitespace().map(str::parse);
        parsed
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| self.unreadable(set.file(), "expected a list of thread ids"))
    }

    /// Records only the events of these threads, and of their children if these are followed. An empty list means all
    /// threads.
    pub fn set_tasks(&self, ids: &[u32]) -> Result<()> {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        self.replace(TaskSet::Only.file(), &ids.join(" "))
    }

    /// Excludes the events of these threads, and of their children if these are followed.
    pub fn exclude_tasks(&self, ids: &[u32]) -> Result<()> {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        self.replace(TaskSet::Not.file(), &ids.join(" "))
    }

    /// Whether the children of threads in the sets join the sets.
    pub fn follows_tasks(&self) -> Result<bool> {
        Ok(self.read("event_fork")?.trim() != "0")
    }

    /// Sets whether the children of threads in the sets join the sets.
    pub fn follow_tasks(&self, follow: bool) -> Result<()> {
        self.write("event_fork", if follow { "1" } else { "0" })
    }

    /// The paths of the cgroups whose tasks are recorded. [`None`]: all tasks are.
    pub fn cgroups(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("set_event_cgroup")?))
    }

    /// Records only tasks in these cgroups. An empty list means all tasks.
    pub fn set_cgroups(&self, paths: &[String]) -> Result<()> {
        self.replace("set_event_cgroup", &paths.join("\n"))
    }

    /// Sets a set of functions, by patterns in the syntax of its file. May take seconds.
    pub fn set_functions(&self, set: FunctionSet, patterns: &[String]) -> Result<()> {
        self.replace(set.file(), &patterns.join("\n"))
    }

    /// Sets the maximum depth of traced calls in a graph; 0: no limit.
    pub fn set_max_graph_depth(&self, depth: u32) -> Result<()> {
        self.write("max_graph_depth", &depth.to_string())
    }

    /// Sets the threshold of a latency's event, in microseconds.
    pub fn set_latency_threshold(&self, latency: LatencyKind, microseconds: u64) -> Result<()> {
        let file = format!("latency/{}/thresh", latency.name());
        self.write(&file, &microseconds.to_string())
    }

    /// Sets whether lazy requests to give up a CPU are measured, too.
    pub fn count_lazy_preemptions(&self, count: bool) -> Result<()> {
        self.write("latency/preempt/lazy", if count { "1" } else { "0" })
    }

    /// Sets the period of the measured timers, in microseconds.
    pub fn set_timer_latency_period(&self, microseconds: u64) -> Result<()> {
        self.write("latency/timer/period", &microseconds.to_string())
    }

    /// The number of measured latencies, and of missed ones.
    pub fn latency_counts(&self, latency: LatencyKind) -> Result<(u64, u64)> {
        let file = format!("latency/{}/stats", latency.name());
        let text = self.read(&file)?;
        let mut rows = text.lines().skip(1);
        let numbers = rows.next().and_then(|row| row.split_once(' '));
        let counts = numbers
            .and_then(|(measured, missed)| Some((measured.parse().ok()?, missed.parse().ok()?)));
        counts.ok_or_else(|| self.unreadable(&file, "expected a table of two numbers"))
    }

    /// The channel for markers, or `none`.
    pub fn marker_channel(&self) -> Result<String> {
        Ok(self.read("marker_channel")?.trim().to_owned())
    }

    /// Sets the channel for markers in the next trace, or `none`. `EBUSY` while the session records.
    pub fn set_marker_channel(&self, name: &str) -> Result<()> {
        self.write("marker_channel", name)
    }

    /// Records a text, if the session is active.
    pub fn mark(&self, text: &str) -> Result<()> {
        self.write("marker", text)
    }

    /// Records lines about the state of the system, if the session is active; see abi.md.
    pub fn record_state(&self, lines: &str) -> Result<()> {
        self.write("statedump", lines)
    }

    /// Its triggers, as `sys:event TRIGGER`.
    pub fn triggers(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("set_trigger")?))
    }

    /// Sets a trigger at the events that `pattern` picks.
    pub fn set_trigger(&self, pattern: &str, trigger: &str) -> Result<()> {
        self.write("set_trigger", &format!("{pattern} {trigger}"))
    }

    /// Frees the buffers of the last trace, read or not. `EBUSY` while the session records.
    pub fn free(&self) -> Result<()> {
        self.write("free_buffer", "1")
    }

    /// Restores the default of every setting. `EBUSY` while the session records.
    pub fn reset(&self) -> Result<()> {
        self.write("reset", "1")
    }

    /// The settings that differ from the defaults.
    pub fn changed_settings(&self) -> Result<Vec<ChangedSetting>> {
        let text = self.read("reset")?;
        let parsed: Option<_> = text.lines().map(ChangedSetting::parse).collect();
        parsed.ok_or_else(|| self.unreadable("reset", "a line is not `FILE VALUE DEFAULT`"))
    }

    /// The counters of the current or last trace.
    pub fn stats(&self) -> Result<TraceStats> {
        Ok(self.stats_and_text()?.0)
    }

    /// The counters, and their text: each channel's table, after a line `channel NAME`.
    pub fn stats_and_text(&self) -> Result<(TraceStats, String)> {
        let mut all = String::new();
        for channel in self.channels()? {
            // A channel that was made after the last trace has no counters.
            if let Some(table) = channel.stats_text()? {
                let _ = write!(all, "channel {}\n{table}", channel.name());
            }
        }
        match TraceStats::parse(&all) {
            Ok(stats) => Ok((stats, all)),
            Err(what) => Err(self.unreadable("channels/*/stats", &what)),
        }
    }

    /// The losses of its channels' AUX areas in the current or last trace.
    pub fn aux_losses(&self) -> Result<AuxLosses> {
        let mut sum = AuxLosses::default();
        for channel in self.channels()? {
            sum += channel.aux_losses()?;
        }
        Ok(sum)
    }

    /// The error of a read of the metadata or a stream. "No trace yet" has an error of its own.
    pub(crate) fn no_trace_or_read(&self, path: &Path, cause: io::Error) -> Error {
        if is_no_trace(&cause) {
            Error::NoTrace {
                session: self.name.clone(),
            }
        } else {
            Error::Read {
                path: path.to_owned(),
                cause,
            }
        }
    }

    /// Reads one of its files.
    pub(crate) fn read(&self, name: &str) -> Result<String> {
        self.tracer.read(&self.file(name))
    }

    /// Writes one of its files.
    pub(crate) fn write(&self, name: &str, value: &str) -> Result<()> {
        self.tracer
            .write(&self.file(name), value, &self.file("error_log"))
    }

    /// Replaces the contents of one of its files. A newline ends the value, as in [`write`](Self::write).
    pub(crate) fn replace(&self, name: &str, value: &str) -> Result<()> {
        let path = self.path(name);
        let text = match value {
            "" => String::new(),
            _ => format!("{value}\n"),
        };
        fs::write(&path, text).map_err(|cause| self.refused(&path, value, cause))
    }

    /// The error for one of its files whose text has a wrong form.
    pub(crate) fn unreadable(&self, name: &str, what: &str) -> Error {
        Error::Read {
            path: self.path(name),
            cause: io::Error::new(io::ErrorKind::InvalidData, what),
        }
    }

    /// The error for one of its files that refused a value.
    pub(crate) fn refused(&self, path: &Path, value: &str, cause: io::Error) -> Error {
        self.tracer
            .refused(path, value, &self.file("error_log"), cause)
    }

    /// The path of one of its files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.tracer.root().join(self.file(name))
    }

    fn file(&self, name: &str) -> String {
        format!("sessions/{}/{name}", self.name)
    }
}

/// Whether a file of a session has no contents yet.
pub(crate) fn is_no_trace(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NODATA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("rtrace");
        let session = root.join("sessions/other");
        for channel in ["aux", FIRST_CHANNEL, "zero"] {
            fs::create_dir_all(session.join("channels").join(channel)).unwrap();
        }
        fs::write(root.join("enable"), "0\n").unwrap();
        fs::write(session.join("clock"), "[tsc] mono\n").unwrap();
        let session = Tracer::find(dir.path()).unwrap().session("other").unwrap();
        assert_eq!(session.clock().unwrap(), "tsc");
        let channels = session.channels().unwrap();
        let names: Vec<_> = channels.iter().map(Channel::name).collect();
        assert_eq!(names, [FIRST_CHANNEL, "aux", "zero"]);
        let set_event = session.path("channels/aux/set_event");
        fs::write(&set_event, "").unwrap();
        channels[1]
            .set_events(&["sched:*", "!sched:sched_stat_*"])
            .unwrap();
        assert_eq!(
            channels[1].enabled_events().unwrap(),
            ["sched:*", "!sched:sched_stat_*"]
        );
    }

    #[test]
    fn counters_of_all_channels() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("rtrace");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("enable"), "0\n").unwrap();
        for (channel, text) in [
            ("channel0", "cpu recorded\n0 1\ntotal 1\n"),
            ("aux", "cpu recorded\n0 2\ntotal 2\n"),
        ] {
            let channel = root.join("sessions/default/channels").join(channel);
            fs::create_dir_all(&channel).unwrap();
            fs::write(channel.join("stats"), text).unwrap();
        }
        let tracer = Tracer::find(dir.path()).unwrap();
        let stats = tracer.session("default").unwrap().stats().unwrap();
        assert_eq!(stats.all.total.recorded, 3);
        assert_eq!(stats.all.cpus.len(), 1);
        assert_eq!(stats.channels[1].channel, "aux");
        assert_eq!(stats.channels[1].stats.total.recorded, 2);
    }
}
