// SPDX-License-Identifier: GPL-2.0

//! A session's `latency/`: a directory for each kind of latency. Times are in microseconds, as in ftrace's
//! `tracing_max_latency`, `tracing_thresh` and `timerlat_period_us`.

use super::channel::ChannelTarget;
use super::setting;
use crate::session::{Session, Setting};
use crate::source::latency::results::Results;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, Group, READ, READ_WRITE};
use crate::sys::privilege::Rights;
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;

/// Creates the directories with their files.
pub(super) fn make(dir: &mut Dir, target: &ChannelTarget, session: Data<Arc<Session>>) -> Result {
    let mut latencies = dir.group("latency")?;
    make_of::<Wakeups>(&mut latencies, target, session)?;
    make_of::<Preemptions>(&mut latencies, target, session)?;
    make_of::<Timers>(&mut latencies, target, session)
}

fn make_of<L: Latency>(
    latencies: &mut Group<'_>,
    target: &ChannelTarget,
    session: Data<Arc<Session>>,
) -> Result {
    let mut dir = latencies.group(L::NAME)?;
    setting::make(&mut dir, L::SETTINGS, Setting::of_session(true), target)?;
    dir.text::<Max<L>>("max", READ_WRITE, session)?;
    dir.text::<Stats<L>>("stats", READ, session)
}

/// A kind of latency.
trait Latency: 'static {
    /// Name of its directory.
    const NAME: &'static str;
    /// Path of the latency's settings.
    const SETTINGS: &'static str;

    fn results(session: &Session) -> &Results;
}

/// Defines a kind of latency whose results are those of a source.
macro_rules! latency {
    ($kind:ident, $name:literal, $source:ident) => {
        struct $kind;

        impl Latency for $kind {
            const NAME: &'static str = $name;
            const SETTINGS: &'static str = concat!("latency/", $name, "/");

            fn results(session: &Session) -> &Results {
                session.sources().$source.results()
            }
        }
    };
}

latency!(Wakeups, "wakeup", wakeups);
latency!(Preemptions, "preempt", preemptions);
latency!(Timers, "timer", timers);

/// The maximum so far. A written number replaces it.
struct Max<L>(PhantomData<L>);

impl<L: Latency> TextFile for Max<L> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        writeln!(out, "{}", L::results(session).max() / MICROSECOND)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str, _: Rights) -> Result {
        let input = input.trim();
        let microseconds = input.parse::<u64>().ok();
        let nanoseconds = microseconds.and_then(|number| number.checked_mul(MICROSECOND));
        L::results(session).set_max(nanoseconds.ok_or_else(|| {
            let latency = L::NAME;
            session.refuse(fmt!(
                "latency/{latency}/max: '{input}' is not a number of microseconds"
            ))
        })?);
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
