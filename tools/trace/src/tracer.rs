// SPDX-License-Identifier: GPL-2.0

//! The tracer's control files under debugfs.

use crate::error::{Error, Result};
use crate::settings::{ChangedSetting, Settings};
use crate::stats::Stats;
use crate::uuid::Uuid;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where debugfs usually is.
pub const DEBUGFS: &str = "/sys/kernel/debug";

pub use rtrace_abi::names::{DEFAULT_SESSION, FIRST_CHANNEL};

/// The most that is written to a control file at once: patterns are parsed write by write.
const WRITE_LIMIT: usize = 1024;

/// The rtrace tree of a mounted debugfs.
#[derive(Clone, Debug)]
pub struct Tracer {
    root: PathBuf,
}

impl Tracer {
    /// Finds the tree under `debugfs`, or says what is missing.
    pub fn find(debugfs: &Path) -> Result<Self> {
        let root = debugfs.join("rtrace");
        let reason = match fs::metadata(root.join("enable")) {
            Ok(_) => return Ok(Self { root }),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::NotRoot { path: root })
            }
            Err(_) if fs::read_dir(debugfs).is_ok_and(|mut dir| dir.next().is_none()) => {
                "debugfs is not mounted".to_owned()
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => "the module is not loaded".to_owned(),
            Err(e) => e.to_string(),
        };
        Err(Error::NoTracer { path: root, reason })
    }

    /// The tree's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The module's version.
    pub fn version(&self) -> Result<String> {
        Ok(self.read("version")?.trim().to_owned())
    }

    /// The clock in use.
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

    /// Every event there is, as `sys:event`.
    pub fn available_events(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("available_events")?))
    }

    /// The events that are enabled, as `sys:event`.
    pub fn enabled_events(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("set_event")?))
    }

    /// Enables what `patterns` say, in order, and nothing else.
    pub fn set_events<S: AsRef<str>>(&self, patterns: &[S]) -> Result<()> {
        let path = self.root.join("set_event");
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .map_err(|cause| self.refused(&path, "", cause))?;
        for chunk in chunks(patterns) {
            file.write_all(chunk.as_bytes())
                .map_err(|cause| self.refused(&path, chunk.trim(), cause))?;
        }
        Ok(())
    }

    /// The `format` text of an event named `sys:event`.
    pub fn format(&self, event: &str) -> Result<String> {
        self.read(&format!("events/{}/format", event.replacen(':', "/", 1)))
    }

    /// A session by name; an error that names those there are if it is none of them.
    pub fn session(&self, name: &str) -> Result<Session> {
        let there = self.sessions()?;
        if there.iter().any(|session| session == name) {
            Ok(Session {
                tracer: self.clone(),
                name: name.to_owned(),
            })
        } else {
            Err(Error::NoSession {
                session: name.to_owned(),
                there,
            })
        }
    }

    /// The names of the sessions, in order.
    fn sessions(&self) -> Result<Vec<String>> {
        let path = self.root.join("sessions");
        let entries = fs::read_dir(&path).map_err(Error::read(&path))?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(Error::read(&path))?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a control file.
    pub(crate) fn read(&self, name: &str) -> Result<String> {
        let path = self.root.join(name);
        fs::read_to_string(&path).map_err(Error::read(&path))
    }

    /// Writes a control file; the error carries the kernel's own words.
    pub(crate) fn write(&self, name: &str, value: &str) -> Result<()> {
        let path = self.root.join(name);
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|cause| self.refused(&path, value, cause))
    }

    fn refused(&self, path: &Path, value: &str, cause: io::Error) -> Error {
        Error::Refused {
            path: path.to_owned(),
            value: value.replace('\n', " "),
            detail: self.read("error_log").unwrap_or_default(),
            cause,
        }
    }
}

/// A session's control files.
#[derive(Clone, Debug)]
pub struct Session {
    tracer: Tracer,
    name: String,
}

impl Session {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tracer that it belongs to.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Whether it records at the moment.
    pub fn is_active(&self) -> Result<bool> {
        Ok(self.tracer.read(&self.file("enable"))?.trim() != "0")
    }

    /// Starts a new trace.
    pub fn start(&self) -> Result<()> {
        self.tracer.write(&self.file("enable"), "1")
    }

    /// Ends the trace; what is in the buffers stays readable.
    pub fn stop(&self) -> Result<()> {
        self.tracer.write(&self.file("enable"), "0")
    }

    /// Opens the metadata file.
    pub fn open_metadata(&self) -> Result<File> {
        let path = self.path("metadata");
        File::open(&path).map_err(|cause| self.no_trace_or_read(&path, cause))
    }

    /// The identity of the current trace, or of the last one; none before the first start.
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

    /// Frees the buffers of the last trace; what nobody read of it is gone. `EBUSY` while the
    /// session records.
    pub fn free(&self) -> Result<()> {
        self.tracer.write(&self.file("free_buffer"), "1")
    }

    /// Puts every setting back to its default. `EBUSY` while the session records.
    pub fn reset(&self) -> Result<()> {
        self.tracer.write(&self.file("reset"), "1")
    }

    /// The settings that are not the defaults.
    pub fn changed_settings(&self) -> Result<Vec<ChangedSetting>> {
        let name = self.file("reset");
        let text = self.tracer.read(&name)?;
        let parsed: Option<_> = text.lines().map(ChangedSetting::parse).collect();
        parsed.ok_or_else(|| Error::Read {
            path: self.tracer.root.join(name),
            cause: io::Error::new(
                io::ErrorKind::InvalidData,
                "a line is not `FILE VALUE DEFAULT`",
            ),
        })
    }

    /// The channel's settings: those of the next start.
    pub fn settings(&self) -> Result<Settings> {
        Settings::read(|name| self.tracer.read(&self.channel_file(name)))
    }

    /// Changes the channel's settings, one file after the other.
    pub fn apply(&self, settings: &Settings) -> Result<()> {
        settings.write(|name, value| self.tracer.write(&self.channel_file(name), value))
    }

    /// The channel's counters.
    pub fn stats(&self) -> Result<Stats> {
        Ok(self.stats_and_text()?.0)
    }

    /// The channel's counters, and the text that they are from.
    pub fn stats_and_text(&self) -> Result<(Stats, String)> {
        let name = self.channel_file("stats");
        let text = self.tracer.read(&name)?;
        match Stats::parse(&text) {
            Ok(stats) => Ok((stats, text)),
            Err(what) => Err(Error::Read {
                path: self.tracer.root.join(name),
                cause: io::Error::new(io::ErrorKind::InvalidData, what),
            }),
        }
    }

    /// The channel's directory, which holds the stream files.
    pub fn channel(&self) -> PathBuf {
        self.path(&format!("channels/{FIRST_CHANNEL}"))
    }

    /// A read error of the metadata or a stream, told apart from "no trace yet".
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

    fn file(&self, name: &str) -> String {
        format!("sessions/{}/{name}", self.name)
    }

    fn channel_file(&self, name: &str) -> String {
        self.file(&format!("channels/{FIRST_CHANNEL}/{name}"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tracer.root.join(self.file(name))
    }
}

/// Whether a file of a session had nothing to give yet.
pub(crate) fn is_no_trace(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NODATA))
}

fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Joins words into lines of at most [`WRITE_LIMIT`] bytes; a longer word has its own.
fn chunks<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words.iter().map(AsRef::as_ref) {
        match out.last_mut() {
            Some(last) if last.len() + word.len() < WRITE_LIMIT => {
                last.push_str(word);
                last.push('\n');
            }
            _ => out.push(format!("{word}\n")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_keep_words_whole() {
        let words: Vec<String> = (0..1000).map(|i| format!("syscalls:event_{i}")).collect();
        let chunks = chunks(&words);
        assert!(chunks
            .iter()
            .all(|c| c.len() <= WRITE_LIMIT && c.ends_with('\n')));
        assert_eq!(lines(&chunks.concat()), words);
    }

    #[test]
    fn a_missing_session_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("rtrace");
        fs::create_dir_all(root.join("sessions/default")).unwrap();
        fs::create_dir_all(root.join("sessions/boot")).unwrap();
        fs::write(root.join("enable"), "0\n").unwrap();
        let tracer = Tracer::find(dir.path()).unwrap();
        assert_eq!(tracer.session("boot").unwrap().name(), "boot");
        for name in ["other", "", "..", "default/"] {
            let error = tracer.session(name).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("there is no session `{name}` (there is: boot, default)")
            );
        }
    }

    #[test]
    fn a_missing_tree_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let error = Tracer::find(dir.path()).unwrap_err().to_string();
        assert!(error.contains("not mounted"), "{error}");
        fs::create_dir(dir.path().join("other")).unwrap();
        let error = Tracer::find(dir.path()).unwrap_err().to_string();
        assert!(error.contains("not loaded"), "{error}");
    }

    #[test]
    fn control_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("rtrace");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("enable"), "0\n").unwrap();
        fs::write(root.join("clock"), "[tsc] mono\n").unwrap();
        fs::write(root.join("set_event"), "").unwrap();
        let tracer = Tracer::find(dir.path()).unwrap();
        assert_eq!(tracer.clock().unwrap(), "tsc");
        tracer
            .set_events(&["sched:*", "!sched:sched_stat_*"])
            .unwrap();
        assert_eq!(
            tracer.enabled_events().unwrap(),
            ["sched:*", "!sched:sched_stat_*"]
        );
    }
}
