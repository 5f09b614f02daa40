// SPDX-License-Identifier: GPL-2.0

//! A session's `latency/`: a directory for each latency that is measured. Times are in microseconds, as in ftrace's
//! `tracing_max_latency`, `tracing_thresh` and `timerlat_period_us`.

use super::parse_switch;
use crate::session::Session;
use crate::source::latency::results::Results;
use crate::source::latency::timer::TimerLatency;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, Group, READ, READ_WRITE};
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;

/// Makes the directories with their files.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    let mut latencies = dir.group("latency")?;
    make_of::<Wakeups>(&mut latencies, session)?;
    let mut preempt = make_of::<Preemptions>(&mut latencies, session)?;
    preempt.text::<Lazy>("lazy", READ_WRITE, session)?;
    let mut timer = make_of::<Timers>(&mut latencies, session)?;
    timer.text::<Period>("period", READ_WRITE, session)
}

fn make_of<'a, L: Latency>(
    latencies: &'a mut Group<'_>,
    session: Data<Arc<Session>>,
) -> Result<Group<'a>> {
    let mut dir = latencies.group(L::NAME)?;
    dir.text::<Max<L>>("max", READ_WRITE, session)?;
    dir.text::<Threshold<L>>("thresh", READ_WRITE, session)?;
    dir.text::<Stats<L>>("stats", READ, session)?;
    Ok(dir)
}

/// Writes a line for each setting that is not the default one.
pub(super) fn write_differences(session: &Session, out: &mut Text) -> Result {
    write_threshold::<Wakeups>(session, out)?;
    write_threshold::<Preemptions>(session, out)?;
    write_threshold::<Timers>(session, out)?;
    if session.counts_lazy_preemptions() {
        writeln!(out, "latency/preempt/lazy 1 0")?;
    }
    let (period, usual) = (session.timer_period(), TimerLatency::PERIOD);
    if period != usual {
        writeln!(out, "latency/timer/period {period} {usual}")?;
    }
    Ok(())
}

fn write_threshold<L: Latency>(session: &Session, out: &mut Text) -> Result {
    let threshold = L::results(session).threshold() / MICROSECOND;
    if threshold != 0 {
        writeln!(out, "latency/{}/thresh {threshold} 0", L::NAME)?;
    }
    Ok(())
}

/// A latency that is measured.
trait Latency: 'static {
    /// Name of its directory.
    const NAME: &'static str;

    fn results(session: &Session) -> &Results;
}

struct Wakeups;

impl Latency for Wakeups {
    const NAME: &'static str = "wakeup";

    fn results(session: &Session) -> &Results {
        session.wakeups()
    }
}

struct Preemptions;

impl Latency for Preemptions {
    const NAME: &'static str = "preempt";

    fn results(session: &Session) -> &Results {
        session.preemptions()
    }
}

struct Timers;

impl Latency for Timers {
    const NAME: &'static str = "timer";

    fn results(session: &Session) -> &Results {
        session.timers()
    }
}

/// A number of microseconds that was written to `file` of a latency, in nanoseconds.
fn parse<L: Latency>(session: &Session, file: &str, input: &str) -> Result<u64> {
    let input = input.trim();
    let microseconds = input.parse::<u64>().ok();
    let nanoseconds = microseconds.and_then(|number| number.checked_mul(MICROSECOND));
    nanoseconds.ok_or_else(|| {
        session.refuse(fmt!(
            "latency/{}/{file}: '{input}' is no number of microseconds",
            L::NAME
        ))
    })
}

/// The longest one that was measured. A number that is written to it takes its place.
struct Max<L>(PhantomData<L>);

impl<L: Latency> TextFile for Max<L> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", L::results(session).max() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let nanoseconds = parse::<L>(session, "max", input)?;
        L::results(session).set_max(nanoseconds);
        Ok(())
    }
}

/// Latencies below this threshold are measured, not recorded.
struct Threshold<L>(PhantomData<L>);

impl<L: Latency> TextFile for Threshold<L> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", L::results(session).threshold() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let nanoseconds = parse::<L>(session, "thresh", input)?;
        L::results(session).set_threshold(nanoseconds);
        Ok(())
    }
}

/// The number that was measured, and the number that was missed.
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
struct Lazy;

impl TextFile for Lazy {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", u8::from(session.counts_lazy_preemptions()))?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        let counts = parse_switch(session, "latency/preempt/lazy", input)?;
        session.count_lazy_preemptions(counts);
        Ok(())
    }
}

/// Microseconds from one expiry of the timers to the next.
struct Period;

impl TextFile for Period {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", session.timer_period())?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.set_timer_period(input.trim())
    }
}
