// SPDX-License-Identifier: GPL-2.0

//! A call of a tool, which a child process answers.

use rustix::process::{
    kill_process, kill_process_group, prlimit, waitid, Pid, Resource, Rlimit, Signal, WaitId,
    WaitIdOptions,
};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// This program, even if its file was replaced.
const PROGRAM: &str = "/proc/self/exe";
/// Longest time of an answer.
pub const MOST_TIME: Duration = Duration::from_secs(300);
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// Time between two looks at a child.
const PAUSE: Duration = Duration::from_millis(20);
/// Largest number of bytes of an answer, and of its messages.
const MOST_OUTPUT: u64 = 4 << 20;
const MOST_MESSAGES: u64 = 64 << 10;
/// Levels of the directories of a trace.
const LEVELS: usize = 3;

/// Permissions and limits of the server.
#[derive(Debug)]
pub struct Limits {
    /// Longest recording.
    pub time: Duration,
    /// Size at which a recording ends.
    pub bytes: u64,
    /// Whether the server records.
    pub may_record: bool,
    /// Whether a recording may run commands.
    pub may_run: bool,
}

/// A command line of this program.
#[derive(Debug)]
pub struct Call {
    pub words: Vec<OsString>,
    /// Directory of the trace that it records, and the size at which it ends.
    pub recording: Option<(PathBuf, u64)>,
    /// Longest time.
    pub time: Duration,
}

/// Output of a call.
#[derive(Debug)]
pub struct Outcome {
    pub output: String,
    pub messages: String,
    /// The exit code; none if a signal ended the process.
    pub code: Option<i32>,
    /// The limit that ended the call.
    pub ended: Option<String>,
    /// Whether a limit ended a recording, which has a trace.
    pub has_recorded: bool,
}

/// The state of the running call, which the thread that reads requests changes.
#[derive(Debug, Default)]
pub struct Running(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Id of the request.
    id: Value,
    is_cancelled: bool,
    /// Whether the server ends.
    has_ended: bool,
}

impl Running {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call.
    pub fn begin(&self, id: Value) {
        let mut state = self.state();
        (state.id, state.is_cancelled) = (id, false);
    }

    /// Cancels the call with this id, if it runs. A call that waits is answered.
    pub fn cancel(&self, id: &Value) {
        let mut state = self.state();
        state.is_cancelled |= state.id == *id;
    }

    /// Returns whether the call was cancelled.
    pub fn was_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// Ends the running call, and all later ones.
    pub fn end(&self) {
        self.state().has_ended = true;
    }

    /// Returns whether the server ends.
    pub fn has_ended(&self) -> bool {
        self.state().has_ended
    }
}

impl Call {
    /// Runs the command line in a directory, until it ends or exceeds a limit.
    pub fn run(&self, options: &[OsString], root: &Path, running: &Running) -> io::Result<Outcome> {
        let mut child = Command::new(PROGRAM)
            .arg0("rtrace")
            .args(options)
            .args(&self.words)
            .current_dir(root)
            // Temporary files are written there, too, and no server of symbols is asked.
            .env("TMPDIR", root)
            .env_remove("DEBUGINFOD_URLS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        if self.recording.is_none() {
            // Also ends the child if this process was killed.
            let seconds = Some(self.time.as_secs());
            let limit = Rlimit {
                current: seconds,
                maximum: seconds,
            };
            let _ = prlimit(Some(pid), Resource::Cpu, limit);
        }
        let (output, messages) = (child.stdout.take(), child.stderr.take());
        thread::scope(|scope| {
            let output = scope.spawn(|| text(output, MOST_OUTPUT));
            let messages = scope.spawn(|| text(messages, MOST_MESSAGES));
            let ended = self.wait(pid, root, running);
            // The child's children may have its pipes. The child is not reaped yet, so the group is still its own.
            let _ = kill_process_group(pid, Signal::KILL);
            let (status, ended) = (child.wait()?, ended?);
            let dir = self.recording.as_ref().map(|(dir, _)| root.join(dir));
            let has_trace = dir.is_some_and(|dir| store::is_trace(&dir));
            Ok(Outcome {
                output: output.join().unwrap_or_default(),
                messages: messages.join().unwrap_or_default(),
                code: status.code(),
                has_recorded: ended.is_some() && has_trace,
                ended,
            })
        })
    }

    /// Waits until the child has ended. Returns the reason for which it was asked to end.
    fn wait(&self, pid: Pid, root: &Path, running: &Running) -> io::Result<Option<String>> {
        let begin = Instant::now();
        let mut ended: Option<(Instant, String)> = None;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), options)?.is_none() {
            match &ended {
                None => {
                    if let Some(reason) = self.reason(begin, root, running) {
                        kill_process(pid, Signal::TERM)?;
                        ended = Some((Instant::now(), reason));
                    }
                }
                Some((at, _)) if at.elapsed() > GRACE => {
                    kill_process_group(pid, Signal::KILL)?;
                }
                Some(_) => {}
            }
            thread::sleep(PAUSE);
        }
        Ok(ended.map(|(_, reason)| reason))
    }

    /// Returns the reason to end the child, if there is one.
    fn reason(&self, begin: Instant, root: &Path, running: &Running) -> Option<String> {
        if running.was_cancelled() || running.has_ended() {
            return Some("cancelled".to_owned());
        }
        if begin.elapsed() > self.time {
            return Some(format!("ended after {} s, its limit", self.time.as_secs()));
        }
        let (dir, most) = self.recording.as_ref()?;
        let size = size(&root.join(dir), LEVELS);
        (size > *most).then(|| format!("ended at {}, above its limit", terminal::bytes(size)))
    }
}

/// Reads a text of limited size. Later bytes are left out.
fn text(pipe: Option<impl Read>, most: u64) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // The text ends at an error.
        let _ = pipe.take(most).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes of the files in a directory.
fn size(dir: &Path, levels: usize) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let data = entry.metadata().ok()?;
        Some(match data.is_dir() {
            true if levels > 1 => size(&entry.path(), levels - 1),
            true => 0,
            false => data.len(),
        })
    });
    sizes.fold(0, u64::saturating_add)
}
