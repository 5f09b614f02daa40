// SPDX-License-Identifier: GPL-2.0

//! `rtrace diff`: changes between two traces.
//!
//! Each trace is cut into windows of equal length: a twentieth of the shorter trace. Each window has a value
//! for each quantity. A change exceeds the traces' own variation if one trace's values tend to be larger than
//! the other one's. The [rank-sum test](rank_sum) decides this. The chance of error is at most 1% for all tests
//! of a comparison together (Bonferroni's correction).

#![forbid(unsafe_code)]

mod change;
mod extent;
mod gather;
mod html;
mod rank_sum;
mod text;

pub use change::{Change, Compared, NameChanges, Quantity};

use analysis::loss::Losses;
use anyhow::{bail, Context};
use extent::Extent;
use gather::{Gather, Gathered};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::path::Path;
use store::Trace;
use symbols::Symbols;
use system::signals::Signals;
use terminal::progress;

/// Windows of the shorter trace.
const WINDOWS: u64 = 20;
/// Windows of the longer trace, at most.
const MOST_WINDOWS: u64 = 1000;

/// Kind of thing that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// System calls, by name.
    Calls,
    /// Intervals in which threads ran, by thread name.
    Running,
    /// Times from a wake-up until a thread ran, by thread name.
    Woken,
    /// Intervals in which threads were off their CPUs until they were woken, by thread name.
    Waiting,
    /// Interrupts, by name.
    Interrupts,
    /// Softirqs, by name.
    Softirqs,
    /// Functions, by samples of a profile.
    Functions,
    /// Calls of functions (`-G`), by function, and of probes with a result (`-k 'f -> ret'`), by event.
    FunctionCalls,
}

impl NameKind {
    fn has_many_names(self) -> bool {
        matches!(
            self,
            Self::Running | Self::Woken | Self::Waiting | Self::FunctionCalls
        )
    }
}

/// Compares the traces in two directories. If a trace is damaged, the second result is an error, and the
/// comparison covers the readable part.
pub fn compare(a: &Path, b: &Path) -> anyhow::Result<(Compared, anyhow::Result<()>)> {
    let mut signals = Signals::catch()?;
    let mut stop = || match signals.pending().is_empty() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::Interrupted,
            "stopped by a signal",
        )),
    };
    let traces = [(a, Trace::open(a)?), (b, Trace::open(b)?)];
    let extents = [Extent::of(&traces[0].1)?, Extent::of(&traces[1].1)?];
    let lengths = extents.map(Extent::length);
    let width =
        (lengths[0].min(lengths[1]) / WINDOWS).max(lengths[0].max(lengths[1]) / MOST_WINDOWS);
    if lengths.contains(&0) {
        bail!("a trace without events cannot be compared");
    }
    let (mut gathered, mut verdict) = (Vec::new(), Ok(()));
    for ((dir, trace), extent) in traces.iter().zip(extents) {
        let name = || dir.display().to_string();
        let (figures, losses) =
            gather(dir, trace, Gathered::new(extent, width), &mut stop).with_context(name)?;
        verdict = verdict.and(losses.verdict().with_context(name));
        gathered.push((*dir, extent, figures, losses.lost));
    }
    Ok((change::compare(&gathered, width), verdict))
}

/// Returns the figures of a trace, and its losses.
fn gather(
    dir: &Path,
    trace: &Trace,
    figures: Gathered,
    stop: &mut dyn FnMut() -> io::Result<()>,
) -> anyhow::Result<(Gathered, Losses)> {
    let bar = progress::reading(trace.bytes)?;
    let epoch = trace.metadata.clock.since_epoch(0);
    let gather = Gather::new(figures, Symbols::of(dir, &trace.metadata), epoch);
    let progress = |bytes| {
        bar.inc(bytes);
        stop()
    };
    let read = export::read(dir, trace, Box::new(gather.clone()), progress);
    bar.finish_and_clear();
    let read = read?;
    read.warnings.iter().for_each(terminal::say);
    Ok((gather.finish(), read.losses))
}
