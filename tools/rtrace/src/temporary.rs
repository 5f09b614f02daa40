// SPDX-License-Identifier: GPL-2.0

//! Sessions that `rtrace record` makes for itself.
//!
//! Their name says who made them, unless the user chose it. A maker that was killed by SIGKILL
//! leaves its session behind, which the next one removes, if the name says whose it was.

use crate::terminal::say;
use anyhow::Context;
use rustix::io::Errno;
use rustix::process::{getpid, test_kill_process, Pid};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use trace::live::LiveTrace;
use trace::session::Session;
use trace::tracer::Tracer;
use trace::Error;

/// What the names of all of them begin with.
const PREFIX: &str = "record-";

/// The number of the PID namespace in which the system was booted (the kernel's
/// `PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// A session of this process. Dropping it destroys it.
#[derive(Debug)]
pub struct Temporary(Session);

impl Temporary {
    /// Makes one, called `name` or after this process, and removes those whose makers were killed.
    pub fn create(tracer: &Tracer, name: Option<&str>) -> anyhow::Result<Self> {
        let me = Maker::me().context("cannot tell the PID namespace")?;
        for name in tracer.sessions()? {
            if Maker::parse(&name).is_some_and(|maker| maker.is_gone(&me)) {
                remove(tracer, &name);
            }
        }
        let name = name.map_or_else(|| me.name(), str::to_owned);
        Ok(Self(tracer.create_session(&name)?))
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Self(session) = self;
        let destroyed = session.tracer().destroy_session(session.name());
        // Somebody else may have done it.
        if let Err(error) = destroyed.or_else(|e| if session.exists() { Err(e) } else { Ok(()) }) {
            say(format_args!(
                "session `{}` could not be destroyed: {error}",
                session.name()
            ));
        }
    }
}

/// Removes a session that was left behind, unless somebody reads what it has.
fn remove(tracer: &Tracer, name: &str) {
    let removed = tracer.session(name).and_then(|session| {
        let is_read = match LiveTrace::open(&session) {
            Ok(trace) => trace.is_being_read()?,
            Err(Error::NoTrace { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_read {
            tracer.destroy_session(name)?;
            say(format_args!(
                "removed session `{name}`, left by an rtrace record that was killed"
            ));
        }
        Ok(())
    });
    match removed {
        // Somebody else was first.
        Err(_) if tracer.session(name).is_err() => {}
        Err(error) => say(format_args!(
            "session `{name}`, left by an rtrace record that was killed, stays: {error}"
        )),
        Ok(()) => {}
    }
}

/// Who makes a session: a process, by its number in its PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Maker {
    pid: i32,
    namespace: u64,
}

impl Maker {
    fn me() -> io::Result<Self> {
        let namespace = match fs::metadata("/proc/self/ns/pid") {
            Ok(namespace) => namespace.ino(),
            // The kernel has no namespaces.
            Err(e) if e.kind() == io::ErrorKind::NotFound => FIRST_NAMESPACE,
            Err(e) => return Err(e),
        };
        Ok(Self {
            pid: getpid().as_raw_nonzero().get(),
            namespace,
        })
    }

    /// `record-PID`, and where that is not the first namespace `record-PID-NAMESPACE`.
    fn name(self) -> String {
        let Self { pid, namespace } = self;
        if namespace == FIRST_NAMESPACE {
            format!("{PREFIX}{pid}")
        } else {
            format!("{PREFIX}{pid}-{namespace}")
        }
    }

    /// The maker of a session with this name; none if it is called otherwise.
    fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        let (pid, namespace) = match rest.split_once('-') {
            Some((pid, namespace)) => (pid, namespace.parse().ok()?),
            None => (rest, FIRST_NAMESPACE),
        };
        let maker = Self {
            pid: pid.parse().ok()?,
            namespace,
        };
        (maker.name() == name).then_some(maker)
    }

    /// Whether there is no such process any more. Where that cannot be told it is taken to be
    /// there: in another namespace, or if another process has the number now.
    fn is_gone(self, me: &Self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        // Who had this process's number is gone.
        self == *me
            || (self.namespace == me.namespace && test_kill_process(pid) == Err(Errno::SRCH))
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
            assert_eq!(maker.name(), name);
            assert_eq!(Maker::parse(name), Some(maker));
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
        ] {
            assert_eq!(Maker::parse(other), None, "{other}");
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
