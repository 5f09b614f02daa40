// SPDX-License-Identifier: GPL-2.0

//! lttng-ust as a writer: a tracepoint provider in C (ust/provider.c), loaded into this process
//! so that the loop, the timing and the CPU are the same.

use crate::machine::{Alarm, Fire, Library};
use crate::writer::{Outcome, Scenario, Writer, SIGNAL_PERIOD_US};
use anyhow::{ensure, Context, Result};
use rustix::process::{kill_process, Pid, Signal};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// Time limit for the session daemon to enable the tracepoints of a library that was just loaded.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);
/// More records than fit a buffer.
const RECORDS_TO_FILL: u64 = 1_000_000;

/// The provider, with its tracepoints enabled.
#[derive(Clone, Copy)]
pub(crate) struct Provider {
    small: Fire,
    medium: Fire,
    large: Fire,
    nested: Fire,
}

impl Provider {
    /// Loads the library at `path`, and waits until its tracepoints are enabled.
    pub(crate) fn load(path: &OsStr) -> Result<Self> {
        let path = CString::new(path.as_bytes())?;
        let library = Library::load(&path)?;
        let mut waited = Duration::ZERO;
        while !library.asks(c"ust_is_enabled")? {
            ensure!(
                waited < PATIENCE,
                "the session daemon does not enable the tracepoints"
            );
            sleep(STEP);
            waited += STEP;
        }
        let function = |name: &CStr| library.fire(name).context("the provider lacks a function");
        Ok(Self {
            small: function(c"ust_small")?,
            medium: function(c"ust_medium")?,
            large: function(c"ust_large")?,
            nested: function(c"ust_nested")?,
        })
    }

    /// The writer for a scenario. The session was created for that.
    pub(crate) fn writer(self, scenario: Scenario, bytes: u64) -> Result<UstWriter> {
        let fire = match (scenario, bytes) {
            (Scenario::Nested, _) => self.nested,
            (_, 6) => self.small,
            (_, 22) => self.medium,
            _ => self.large,
        };
        let mut writer = UstWriter {
            fire,
            fired: 0,
            alarm: None,
        };
        match scenario {
            Scenario::Signal => {
                let signals = Arc::new(AtomicU64::new(0));
                let counter = signals.clone();
                let tick = move || {
                    self.medium.call(1);
                    counter.fetch_add(1, Ordering::Relaxed);
                };
                writer.alarm = Some((Alarm::new(SIGNAL_PERIOD_US, tick)?, signals));
            }
            Scenario::Full => {
                stop_consumer()?;
                writer.fire(RECORDS_TO_FILL);
            }
            _ => {}
        }
        Ok(writer)
    }
}

/// Stops the consumer daemon, so that the buffer gets full and stays full.
fn stop_consumer() -> Result<()> {
    let pid = std::env::var("RTRACE_UST_CONSUMER")
        .ok()
        .and_then(|pid| Pid::from_raw(pid.parse().ok()?))
        .context("RTRACE_UST_CONSUMER must be the consumer daemon's pid")?;
    Ok(kill_process(pid, Signal::STOP)?)
}

/// One of the provider's functions.
pub(crate) struct UstWriter {
    fire: Fire,
    fired: u64,
    alarm: Option<(Alarm, Arc<AtomicU64>)>,
}

impl Writer for UstWriter {
    fn fire(&mut self, records: u64) {
        self.fire.call(records);
        self.fired += records;
    }

    /// The number of lost records is known to the session daemon only.
    fn finish(self: Box<Self>) -> Result<Outcome> {
        let signals = self.alarm.map_or(0, |(alarm, signals)| {
            drop(alarm);
            signals.load(Ordering::Relaxed)
        });
        Ok(Outcome {
            fired: self.fired + signals,
            signals,
            ..Outcome::default()
        })
    }
}
