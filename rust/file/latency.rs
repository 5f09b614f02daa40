// SPDX-License-Identifier: GPL-2.0

//! A session's `max_latency`, `latency_thresh` and `latency_stats`; the same of preemptions, with
//! `preempt_latency_lazy`; and of its timers, with `timer_latency_period`. Times are in microseconds, as in ftrace's
//! `tracing_max_latency`, `tracing_thresh` and `timerlat_period_us`.

use super::parse_switch;
use crate::session::Session;
use crate::source::latency::results::Results;
use crate::source::latency::timer::TimerLatency;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE};
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;

/// Makes them.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    make_of::<Wakeups>(dir, session)?;
    make_of::<Preemptions>(dir, session)?;
    make_of::<Timers>(dir, session)?;
    dir.text::<PreemptLatencyLazy>("preempt_latency_lazy", READ_WRITE, session)?;
    dir.text::<TimerLatencyPeriod>("timer_latency_period", READ_WRITE, session)
}

fn make_of<L: Latency>(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.text::<Max<L>>(L::MAX, READ_WRITE, session)?;
    dir.text::<Threshold<L>>(L::THRESHOLD, READ_WRITE, session)?;
    dir.text::<Stats<L>>(L::STATS, READ, session)
}

/// Writes what is not as it is by default.
pub(super) fn write_differences(session: &Session, out: &mut Text) -> Result {
    for (file, results) in [
        (Wakeups::THRESHOLD, session.wakeups()),
        (Preemptions::THRESHOLD, session.preemptions()),
        (Timers::THRESHOLD, session.timers()),
    ] {
        let threshold = results.threshold() / MICROSECOND;
        if threshold != 0 {
            writeln!(out, "{file} {threshold} 0")?;
        }
    }
    if session.counts_lazy_preemptions() {
        writeln!(out, "preempt_latency_lazy 1 0")?;
    }
    let (period, usual) = (session.timer_period(), TimerLatency::PERIOD);
    if period != usual {
        writeln!(out, "timer_latency_period {period} {usual}")?;
    }
    Ok(())
}

/// A latency that is measured: its files.
trait Latency: 'static {
    const MAX: &'static str;
    const THRESHOLD: &'static str;
    const STATS: &'static str;

    fn results(session: &Session) -> &Results;
}

struct Wakeups;

impl Latency for Wakeups {
    const MAX: &'static str = "max_latency";
    const THRESHOLD: &'static str = "latency_thresh";
    const STATS: &'static str = "latency_stats";

    fn results(session: &Session) -> &Results {
        session.wakeups()
    }
}

struct Preemptions;

impl Latency for Preemptions {
    const MAX: &'static str = "max_preempt_latency";
    const THRESHOLD: &'static str = "preempt_latency_thresh";
    const STATS: &'static str = "preempt_latency_stats";

    fn results(session: &Session) -> &Results {
        session.preemptions()
    }
}

struct Timers;

impl Latency for Timers {
    const MAX: &'static str = "max_timer_latency";
    const THRESHOLD: &'static str = "timer_latency_thresh";
    const STATS: &'static str = "timer_latency_stats";

    fn results(session: &Session) -> &Results {
        session.timers()
    }
}

/// A number of microseconds that was written to `file`, in nanoseconds.
fn parse(session: &Session, file: &str, input: &str) -> Result<u64> {
    let input = input.trim();
    let microseconds = input.parse::<u64>().ok();
    let nanoseconds = microseconds.and_then(|number| number.checked_mul(MICROSECOND));
    nanoseconds
        .ok_or_else(|| session.refuse(fmt!("{file}: '{input}' is no number of microseconds")))
}

/// The longest one that was measured; to write one has it begin anew.
struct Max<L>(PhantomData<L>);

impl<L: Latency> TextFile for Max<L> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", L::results(session).max() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let nanoseconds = parse(session, L::MAX, input)?;
        L::results(session).set_max(nanoseconds);
        Ok(())
    }
}

/// Shorter ones are no event.
struct Threshold<L>(PhantomData<L>);

impl<L: Latency> TextFile for Threshold<L> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", L::results(session).threshold() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let nanoseconds = parse(session, L::THRESHOLD, input)?;
        L::results(session).set_threshold(nanoseconds);
        Ok(())
    }
}

/// How many were measured, and how many were not.
struct Stats<L>(PhantomData<L>);

impl<L: Latency> TextFile for Stats<L> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        let results = L::results(session);
        let (measured, missed) = (results.measured(), results.missed());
        writeln!(out, "measured missed\n{measured} {missed}")?;
        Ok(())
    }
}

/// Whether lazy requests count.
struct PreemptLatencyLazy;

impl TextFile for PreemptLatencyLazy {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", u8::from(session.counts_lazy_preemptions()))?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let counts = parse_switch(session, "preempt_latency_lazy", input)?;
        session.count_lazy_preemptions(counts);
        Ok(())
    }
}

/// How often timers fire.
struct TimerLatencyPeriod;

impl TextFile for TimerLatencyPeriod {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.timer_period())?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_timer_period(input.trim())
    }
}
