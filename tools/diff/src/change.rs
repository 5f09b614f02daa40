// SPDX-License-Identifier: GPL-2.0

//! Changes between two traces. A change may exceed the traces' own variation.

use crate::extent::Extent;
use crate::gather::{Figures, Gathered, Window};
use crate::rank_sum::p_value;
use crate::NameKind;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Chance of error of all tests together, if the windows are independent.
pub const ERROR: f64 = 0.01;
/// Windows that each trace needs for a test.
pub const LEAST_WINDOWS: usize = 8;
/// Durations that a window needs for a 99th percentile. It would grow with their number otherwise.
const LEAST_FOR_P99: u64 = 100;

/// The comparison of two traces.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Compared {
    /// The first trace.
    pub a: Compare,
    /// The second trace.
    pub b: Compare,
    /// Length of a window, in nanoseconds.
    pub window_ns: u64,
    /// Number of tests.
    pub tests: usize,
    /// Rows by kind and name. Names with changes that exceed the variation are first.
    pub rows: Vec<NameChanges>,
}

/// One of the traces.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Compare {
    /// Its directory.
    pub dir: PathBuf,
    /// Its length, in nanoseconds.
    pub duration_ns: u64,
    /// Its windows.
    pub windows: usize,
    /// Windows in which events may be missing. They are left out.
    pub lossy_windows: usize,
    /// Number of lost events.
    pub lost: u64,
}

/// Changes of the quantities of a name.
#[derive(Debug, JsonSchema, Serialize)]
pub struct NameChanges {
    /// Kind of thing that has the name.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// Its quantities.
    pub changes: Vec<Change>,
}

impl NameChanges {
    /// Whether a change exceeds the traces' own variation.
    fn exceeds(&self) -> bool {
        self.changes.iter().any(|change| change.exceeds)
    }
}

impl Compared {
    /// Moves the names with changes that exceed the variation before all others, of any kind.
    pub fn mark_first(&mut self) {
        self.rows.sort_by_key(|row| !row.exceeds());
    }
}

/// A quantity in both traces.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Change {
    /// Kind of the quantity.
    pub quantity: Quantity,
    /// Its value in the first trace, if that has one.
    pub a: Option<f64>,
    /// Its value in the second trace, if that has one.
    pub b: Option<f64>,
    /// The p-value of the rank-sum test, if there are enough windows.
    pub p_value: Option<f64>,
    /// Whether the change exceeds the traces' own variation.
    pub exceeds: bool,
}

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Number of occurrences per second.
    CountPerSecond,
    /// Time per second, in nanoseconds.
    NsPerSecond,
    /// The median duration.
    P50Ns,
    /// The 99th percentile of the durations.
    P99Ns,
}

impl Quantity {
    const ALL: [Self; 4] = [
        Self::CountPerSecond,
        Self::NsPerSecond,
        Self::P50Ns,
        Self::P99Ns,
    ];

    /// Returns the value in a whole trace.
    fn of(self, figures: &Figures, extent: Extent) -> Option<f64> {
        let seconds = extent.length() as f64 / 1e9;
        let durations = figures.durations.as_ref();
        match self {
            Self::CountPerSecond => Some(figures.count as f64 / seconds),
            Self::NsPerSecond => Some(durations?.total_ns() as f64 / seconds),
            Self::P50Ns => Some(durations?.percentile_ns(50.0) as f64),
            Self::P99Ns => Some(durations?.percentile_ns(99.0) as f64),
        }
    }

    /// Returns the value in a window, if the window has one.
    fn of_window(self, window: &Window) -> Option<f64> {
        match self {
            Self::CountPerSecond => Some(window.count as f64),
            Self::NsPerSecond => Some(window.total_ns as f64),
            Self::P50Ns => (window.timed > 0).then_some(window.p50_ns as f64),
            Self::P99Ns => (window.timed >= LEAST_FOR_P99).then_some(window.p99_ns as f64),
        }
    }

    /// Whether a window without the name has the value 0.
    fn counts(self) -> bool {
        matches!(self, Self::CountPerSecond | Self::NsPerSecond)
    }

    /// Returns the values of a trace's windows in which no event is missing.
    fn values(self, figures: Option<&Figures>, gathered: &Gathered) -> Vec<f64> {
        let is_whole = |number: usize| gathered.lossy.get(number) == Some(&false);
        let windows = figures.map_or(&[][..], |figures| &figures.windows);
        let windows = windows.iter().filter(|window| is_whole(window.number));
        let mut values: Vec<f64> = windows
            .filter_map(|window| self.of_window(window))
            .collect();
        if self.counts() {
            let whole = gathered.lossy.iter().filter(|lossy| !**lossy).count();
            values.resize(whole, 0.0);
        }
        values
    }
}

/// Compares the figures of two traces.
pub fn compare(traces: &[(&Path, Extent, Gathered, u64)], width: u64) -> Compared {
    let [a, b] = [&traces[0], &traces[1]];
    let keys: BTreeSet<_> = a.2.names.keys().chain(b.2.names.keys()).collect();
    let mut rows: Vec<NameChanges> = keys
        .into_iter()
        .map(|key| {
            let figures =
                [a, b].map(|(_, extent, gathered, _)| (gathered.names.get(key), *extent, gathered));
            let is_timed = figures
                .iter()
                .any(|(figures, ..)| figures.is_some_and(|figures| figures.durations.is_some()));
            let quantities = Quantity::ALL.iter().take(if is_timed { 4 } else { 1 });
            let changes = quantities.map(|quantity| change(*quantity, figures));
            NameChanges {
                kind: key.0,
                name: key.1.clone(),
                changes: changes.collect(),
            }
        })
        .collect();
    let changes = rows.iter_mut().flat_map(|row| &mut row.changes);
    let mut tested: Vec<_> = changes.filter(|change| change.p_value.is_some()).collect();
    let tests = tested.len();
    for change in &mut tested {
        let p_value = change.p_value.unwrap_or(1.0);
        change.exceeds = p_value <= ERROR / tests as f64;
    }
    rows.sort_by(|a, b| {
        let by_weight = weight(b).total_cmp(&weight(a));
        let by_mark = b.exceeds().cmp(&a.exceeds());
        a.kind
            .cmp(&b.kind)
            .then(by_mark)
            .then(by_weight)
            .then(a.name.cmp(&b.name))
    });
    let of = |(dir, extent, gathered, lost): &(&Path, Extent, Gathered, u64)| Compare {
        dir: dir.to_path_buf(),
        duration_ns: extent.length(),
        windows: gathered.lossy.len(),
        lossy_windows: gathered.lossy.iter().filter(|lossy| **lossy).count(),
        lost: *lost,
    };
    Compared {
        a: of(a),
        b: of(b),
        window_ns: width,
        tests,
        rows,
    }
}

/// Returns the change in the time of a name. If the name has no time, returns the change in its count.
fn weight(row: &NameChanges) -> f64 {
    let change = row.changes.get(1).or(row.changes.first());
    change.map_or(0.0, |change| {
        (change.b.unwrap_or(0.0) - change.a.unwrap_or(0.0)).abs()
    })
}

fn change(quantity: Quantity, figures: [(Option<&Figures>, Extent, &Gathered); 2]) -> Change {
    let value = |(figures, extent, _): (Option<&Figures>, Extent, &Gathered)| match figures {
        Some(figures) => quantity.of(figures, extent),
        None => quantity.counts().then_some(0.0),
    };
    let [a, b] = figures.map(|(figures, _, gathered)| quantity.values(figures, gathered));
    let is_enough = a.len() >= LEAST_WINDOWS && b.len() >= LEAST_WINDOWS;
    Change {
        quantity,
        a: value(figures[0]),
        b: value(figures[1]),
        p_value: is_enough.then(|| p_value(&a, &b)),
        exceeds: false,
    }
}
