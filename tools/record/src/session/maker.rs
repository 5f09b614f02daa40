// SPDX-License-Identifier: GPL-2.0

//! The process that made a session or an event for itself, as part of its name.

use anyhow::Context;
use rustix::io::Errno;
use rustix::process::{getpid, test_kill_process, Pid};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Prefix of all these names.
const PREFIX: &str = "record";

/// Separator in the name of a session.
const IN_SESSIONS: char = '-';

/// Separator in the name of a subsystem of events, which is a C identifier.
const IN_SUBSYSTEMS: char = '_';

/// The number of the PID namespace in which the system was booted (the kernel's
/// `PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// A process, by its number in its PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    pid: i32,
    namespace: u64,
}

impl Maker {
    /// This process.
    pub fn me() -> anyhow::Result<Self> {
        let namespace = match fs::metadata("/proc/self/ns/pid") {
            Ok(namespace) => namespace.ino(),
            // The kernel is built without namespaces.
            Err(e) if e.kind() == io::ErrorKind::NotFound => FIRST_NAMESPACE,
            Err(e) => return Err(e).context("cannot determine the PID namespace"),
        };
        Ok(Self {
            pid: getpid().as_raw_nonzero().get(),
            namespace,
        })
    }

    /// Whether the process is in the PID namespace in which the system was booted. The kernel's events have the numbers
    /// of that namespace.
    pub fn is_in_first_namespace(self) -> bool {
        self.namespace == FIRST_NAMESPACE
    }

    /// The name of the maker's session: `record-PID`, or outside the first namespace `record-PID-NAMESPACE`.
    pub fn session(self) -> String {
        self.name(IN_SESSIONS)
    }

    /// The subsystem of the maker's events: the same name with `_`.
    pub fn subsystem(self) -> String {
        self.name(IN_SUBSYSTEMS)
    }

    /// The maker of a session with this name. `None` if the name has another form.
    pub fn of_session(name: &str) -> Option<Self> {
        Self::parse(name, IN_SESSIONS)
    }

    /// The maker of the events in a subsystem with this name. `None` if the name has another form.
    pub fn of_subsystem(name: &str) -> Option<Self> {
        Self::parse(name, IN_SUBSYSTEMS)
    }

    /// Whether the process has ended. If this is not known, the process counts as running: in another namespace, or if
    /// another process has the number now.
    pub fn is_gone(self, me: &Self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        // The earlier process with this process's number has ended.
        self == *me
            || (self.namespace == me.namespace && test_kill_process(pid) == Err(Errno::SRCH))
    }

    fn name(self, between: char) -> String {
        let Self { pid, namespace } = self;
        if namespace == FIRST_NAMESPACE {
            format!("{PREFIX}{between}{pid}")
        } else {
            format!("{PREFIX}{between}{pid}{between}{namespace}")
        }
    }

    fn parse(name: &str, between: char) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?.strip_prefix(between)?;
        let (pid, namespace) = match rest.split_once(between) {
            Some((pid, namespace)) => (pid, namespace.parse().ok()?),
            None => (rest, FIRST_NAMESPACE),
        };
        let maker = Self {
            pid: pid.parse().ok()?,
            namespace,
        };
        (maker.name(between) == name).then_some(maker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_made_them() {
        for (name, pid, namespace) in [
            ("record-17", 17, FIRST_NAMESPACE),
            ("record-17-4026532198", 17, 4_026_532_198),
        ] {
            let maker = Maker { pid, namespace };
            assert_eq!(maker.session(), name);
            assert_eq!(Maker::of_session(name), Some(maker));
            let subsystem = name.replace('-', "_");
            assert_eq!(maker.subsystem(), subsystem);
            assert_eq!(Maker::of_subsystem(&subsystem), Some(maker));
        }
        for other in [
            "default",
            "record",
            "record-",
            "record-x",
            "record--1",
            "record-017",
            "record-1-",
            "record-1-2-3",
            "record-17-4026531836",
            "records-1",
            "record_17",
        ] {
            assert_eq!(Maker::of_session(other), None, "{other}");
        }
    }

    #[test]
    fn who_runs_is_not_gone() {
        let me = Maker {
            pid: 1 << 30,
            namespace: Maker::me().unwrap().namespace,
        };
        let of = |pid, namespace| Maker { pid, namespace };
        // No PID is that large.
        assert!(of((1 << 30) + 1, me.namespace).is_gone(&me));
        assert!(!of((1 << 30) + 1, me.namespace + 1).is_gone(&me));
        assert!(!Maker::me().unwrap().is_gone(&me));
        assert!(me.is_gone(&me));
        assert!(!of(0, me.namespace).is_gone(&me));
    }
}
