// SPDX-License-Identifier: GPL-2.0

//! A session's `max_latency`, `latency_thresh` and `latency_stats`. Times are in microseconds, as in ftrace's
//! `tracing_max_latency` and `tracing_thresh`.

use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE};
use core::fmt::Write;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;

/// Makes them.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<MaxLatency>("max_latency", READ_WRITE, session)?;
    dir.text::<LatencyThresh>("latency_thresh", READ_WRITE, session)?;
    dir.text::<LatencyStats>("latency_stats", READ, session)
}

/// Writes what is not as it is by default.
pub(super) fn write_differences(session: &Session, out: &mut Text) -> Result {
    let threshold = session.wakeups().threshold() / MICROSECOND;
    if threshold != 0 {
        writeln!(out, "latency_thresh {threshold} 0")?;
    }
    Ok(())
}

/// A number of microseconds that was written to `file`, in nanoseconds.
fn parse(session: &Session, file: &str, input: &str) -> Result<u64> {
    let input = input.trim();
    let microseconds = input.parse::<u64>().ok();
    let nanoseconds = microseconds.and_then(|number| number.checked_mul(MICROSECOND));
    nanoseconds
        .ok_or_else(|| session.refuse(fmt!("{file}: '{input}' is no number of microseconds")))
}

/// The longest latency that was measured; to write one has it begin anew.
struct MaxLatency;

impl TextFile for MaxLatency {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.wakeups().max() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let nanoseconds = parse(session, "max_latency", input)?;
        session.wakeups().set_max(nanoseconds);
        Ok(())
    }
}

/// Shorter latencies are no event.
struct LatencyThresh;

impl TextFile for LatencyThresh {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.wakeups().threshold() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let nanoseconds = parse(session, "latency_thresh", input)?;
        session.wakeups().set_threshold(nanoseconds);
        Ok(())
    }
}

/// How many were measured, and how many were not.
struct LatencyStats;

impl TextFile for LatencyStats {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let wakeups = session.wakeups();
        writeln!(
            out,
            "measured missed\n{} {}",
            wakeups.measured(),
            wakeups.missed()
        )?;
        Ok(())
    }
}
