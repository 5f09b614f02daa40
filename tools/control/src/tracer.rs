// SPDX-License-Identifier: GPL-2.0

//! The tracer's control files: in the file system `rtrace`, or in debugfs.

use crate::session::Session;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use system::{Error, Result};

/// The usual mount point of debugfs.
pub const DEBUGFS: &str = "/sys/kernel/debug";

/// The directory of the mount point of the file system `rtrace`.
const OWN: &str = "/sys/kernel";

/// The usual mount point of tracefs. Below another debugfs it is `tracing`.
const TRACEFS: &str = "/sys/kernel/tracing";

/// The directory of the tracer's directory `rtrace` on this machine: of the file system `rtrace` if that is mounted, else
/// debugfs.
pub fn usual_place() -> PathBuf {
    let is_mounted = match fs::metadata(Path::new(OWN).join("rtrace/enable")) {
        Ok(_) => true,
        // The mount point itself is open to all.
        Err(e) => e.kind() == io::ErrorKind::PermissionDenied,
    };
    PathBuf::from(if is_mounted { OWN } else { DEBUGFS })
}

pub use rtrace_abi::names::{DEFAULT_SESSION, FIRST_CHANNEL};

/// How to make the tracer's files available without debugfs.
const MOUNT: &str = ": mount -t rtrace rtrace /sys/kernel/rtrace";

/// The file with the reason of the last refused write to a file at the top.
const ERROR_LOG: &str = "error_log";

/// The file of what is removed when it is closed.
const ON_CLOSE: &str = "on_close";

/// The file of the events that users have defined.
const DYNAMIC_EVENTS: &str = "dynamic_events";

/// The tracer's tree of files.
#[derive(Clone, Debug)]
pub struct Tracer {
    root: PathBuf,
}

impl Tracer {
    /// Finds the tree in the directory `place`. The error tells what is missing.
    pub fn find(place: &Path) -> Result<Self> {
        let root = place.join("rtrace");
        let is_own = place == Path::new(OWN);
        let reason = match fs::metadata(root.join("enable")) {
            // Lockdown closes the files of debugfs that can be written.
            Ok(_) => match File::open(root.join("enable")) {
                Err(e) if e.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {
                    let fix = if is_own { "" } else { MOUNT };
                    format!("the kernel is locked down{fix}")
                }
                _ => return Ok(Self { root }),
            },
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::NotAllowed { path: root })
            }
            // The module has made the mount point.
            Err(_) if place == Path::new(DEBUGFS) && Path::new(OWN).join("rtrace").exists() => {
                format!("debugfs is off or not mounted{MOUNT}")
            }
            Err(_) if fs::read_dir(place).is_ok_and(|mut dir| dir.next().is_none()) => {
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

    /// The debugfs of the tracer's kernel.
    pub fn debugfs(&self) -> &Path {
        let place = self.root.parent().filter(|place| *place != Path::new(OWN));
        place.unwrap_or(Path::new(DEBUGFS))
    }

    /// The module's version.
    pub fn version(&self) -> Result<String> {
        Ok(self.read("version")?.trim().to_owned())
    }

    /// Every existing event, as `sys:event`.
    pub fn available_events(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("available_events")?))
    }

    /// The events of modules that are not loaded, as `sys:event`. They can be chosen, too.
    pub fn awaited_events(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("awaited_events")?))
    }

    /// The names of all contexts.
    pub fn available_contexts(&self) -> Result<Vec<String>> {
        Ok(lines(&self.read("available_contexts")?))
    }

    /// The tasks that wait for their memory in a probe. While there are any, the module cannot be unloaded.
    pub fn waiting(&self) -> Result<Vec<Waiting>> {
        let lines = lines(&self.read("waiting")?).into_iter();
        Ok(lines.filter_map(|line| Waiting::parse(&line)).collect())
    }

    /// The `format` text of an event named `sys:event`.
    pub fn format(&self, event: &str) -> Result<String> {
        self.read(&format!("events/{}/format", event.replacen(':', "/", 1)))
    }

    /// The events of ftrace, as `sys:event`. None, if tracefs is not mounted, or the user may not read it.
    pub fn ftrace_events(&self) -> Vec<String> {
        let text = self.ftrace_file("available_events");
        text.map_or(Vec::new(), |text| lines(&text))
    }

    /// The `format` text of ftrace for an event named `sys:event`.
    pub fn ftrace_format(&self, event: &str) -> Option<String> {
        self.ftrace_file(&format!("events/{}/format", event.replacen(':', "/", 1)))
    }

    fn ftrace_file(&self, name: &str) -> Option<String> {
        let place = self.root.parent()?;
        // In the usual debugfs, this path would make the kernel mount tracefs, and warn about it.
        let is_usual = [DEBUGFS, OWN].iter().any(|usual| place == Path::new(usual));
        let tracefs = if is_usual {
            PathBuf::from(TRACEFS)
        } else {
            place.join("tracing")
        };
        fs::read_to_string(tracefs.join(name)).ok()
    }

    /// The dynamic events, oldest first.
    pub fn dynamic_events(&self) -> Result<Vec<DynamicEvent>> {
        let lines = lines(&self.read(DYNAMIC_EVENTS)?).into_iter();
        Ok(lines.filter_map(DynamicEvent::parse).collect())
    }

    /// Defines dynamic events, one per line: all or none.
    pub fn define(&self, lines: &[String]) -> Result<()> {
        self.write(DYNAMIC_EVENTS, &lines.join("\n"), ERROR_LOG)
    }

    /// Deletes dynamic events, named `subsystem/event`: all or none.
    pub fn undefine(&self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let lines: Vec<_> = names.iter().map(|name| format!("-:{name}")).collect();
        self.define(&lines)
    }

    /// The session of this name. The error names the existing sessions.
    pub fn session(&self, name: &str) -> Result<Session> {
        let there = self.sessions()?;
        if there.iter().any(|session| session == name) {
            Ok(Session::new(self, name))
        } else {
            Err(Error::NoSession {
                session: name.to_owned(),
                there,
            })
        }
    }

    /// Makes a session, with the default settings.
    pub fn create_session(&self, name: &str) -> Result<Session> {
        self.write("create_session", name, ERROR_LOG)?;
        Ok(Session::new(self, name))
    }

    /// Stops a session and removes it. The readers of its trace read on to the end.
    pub fn destroy_session(&self, name: &str) -> Result<()> {
        self.write("destroy_session", name, ERROR_LOG)
    }

    /// Opens a list of what does not outlive this process, whatever ends the process.
    pub fn on_close(&self) -> Result<OnClose> {
        let path = self.root.join(ON_CLOSE);
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => Ok(OnClose {
                tracer: self.clone(),
                file,
            }),
            Err(cause) => Err(self.refused(&path, "", ERROR_LOG, cause)),
        }
    }

    /// Records a text in every session that is active.
    pub fn mark(&self, text: &str) -> Result<()> {
        self.write("marker", text, ERROR_LOG)
    }

    /// The names of the sessions, in order.
    pub fn sessions(&self) -> Result<Vec<String>> {
        self.names("sessions")
    }

    /// The names of the entries in a directory, in order.
    pub(crate) fn names(&self, dir: &str) -> Result<Vec<String>> {
        let path = self.root.join(dir);
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

    /// Writes a control file. The error has the kernel's reason, from the file `log`.
    ///
    /// A newline ends the value. Without it, write(2) could not write an empty text, and the kernel would wait for the
    /// rest of a list's last item if the value had a multiple of 1024 bytes.
    pub(crate) fn write(&self, name: &str, value: &str, log: &str) -> Result<()> {
        let path = self.root.join(name);
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
            .map_err(|cause| self.refused(&path, value, log, cause))
    }

    /// The error for a control file that refused a value.
    pub(crate) fn refused(&self, path: &Path, value: &str, log: &str, cause: io::Error) -> Error {
        // The log names the file of each refusal. An entry for another file is old.
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let mut detail = self.read(log).unwrap_or_default();
        if !detail.starts_with(&format!("{file}: ")) {
            detail.clear();
        }
        Error::Refused {
            path: path.to_owned(),
            value: value.trim_end().replace('\n', " "),
            detail,
            cause,
        }
    }
}

/// Sessions and events that the kernel removes when this is dropped, or when the process is killed.
#[derive(Debug)]
pub struct OnClose {
    tracer: Tracer,
    file: File,
}

impl OnClose {
    /// Adds a session, which is then destroyed.
    pub fn session(&mut self, name: &str) -> Result<()> {
        self.add(&format!("session {name}"))
    }

    /// Adds the dynamic events of a subsystem, which are then deleted unless another session records them.
    pub fn events(&mut self, subsystem: &str) -> Result<()> {
        self.add(&format!("events {subsystem}"))
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|cause| {
            let path = self.tracer.root.join(ON_CLOSE);
            self.tracer.refused(&path, line, ERROR_LOG, cause)
        })
    }
}

/// An event that a user has defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicEvent {
    /// Its subsystem.
    pub subsystem: String,
    /// Its name in the subsystem.
    pub name: String,
    /// The line that defines it.
    pub definition: String,
}

impl DynamicEvent {
    /// Parses a line of the kernel. [`None`]: the line has another form.
    fn parse(definition: String) -> Option<Self> {
        let (_, name) = definition.split(' ').next()?.split_once(':')?;
        let (subsystem, name) = name.split_once('/')?;
        Some(Self {
            subsystem: subsystem.to_owned(),
            name: name.to_owned(),
            definition,
        })
    }
}

/// `subsystem/event`.
impl fmt::Display for DynamicEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.subsystem, self.name)
    }
}

/// A task that waits for its memory in a probe.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Waiting {
    /// Its thread id.
    pub tid: u32,
    /// The time that it has waited.
    pub seconds: u64,
    /// Its name.
    pub comm: String,
}

impl Waiting {
    /// The task of a line as the kernel writes it. [`None`]: the line has another form.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        Some(Self {
            tid: words.next()?.parse().ok()?,
            seconds: words.next()?.parse().ok()?,
            comm: words.next()?.to_owned(),
        })
    }
}

/// `NAME (TID), N s`.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), {} s", self.comm, self.tid, self.seconds)
    }
}

/// The lines of a list.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
                format!("session `{name}` does not exist (existing sessions: boot, default)")
            );
        }
    }

    #[test]
    fn debugfs_is_beside_each_tree() {
        for (root, debugfs) in [
            ("/sys/kernel/rtrace", DEBUGFS),
            ("/sys/kernel/debug/rtrace", DEBUGFS),
            ("/run/tracing/rtrace", "/run/tracing"),
        ] {
            let root = PathBuf::from(root);
            assert_eq!(Tracer { root }.debugfs(), Path::new(debugfs));
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
}
