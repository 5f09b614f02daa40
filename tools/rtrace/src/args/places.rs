// SPDX-License-Identifier: GPL-2.0

//! Positions of options: a pattern belongs to the `--channel` before it, and a `--filter` to the `-e`, `-k` or `-u`
//! before it.

use clap::ArgMatches;
use std::ops::Range;

/// Position of each pattern: the number of `--channel` options before it.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// For each -e.
    pub events: Vec<usize>,
    /// For each -x.
    pub exclude: Vec<usize>,
    /// For each --filter: the option before it.
    pub filters: Vec<Filtered>,
}

/// The events that a --filter applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filtered {
    /// The patterns of the -e before it, as a range of all patterns. Empty if no -e, -k or -u stands before
    /// it.
    Patterns(Range<usize>),
    /// The -k or -u with this index. Each -u counts after all -k.
    Probe(usize),
}

impl Places {
    /// Reads the positions from the command line of a subcommand.
    pub fn of(matches: &ArgMatches) -> Self {
        let indices = |id| -> Vec<usize> { matches.indices_of(id).into_iter().flatten().collect() };
        // Some commands have no --channel.
        let channels = match matches.try_contains_id("channels") {
            Ok(_) => indices("channels"),
            Err(_) => Vec::new(),
        };
        let places = |id| {
            let before = |at: usize| channels.iter().filter(|channel| **channel < at).count();
            indices(id).into_iter().map(before).collect()
        };
        Self {
            events: places("events"),
            exclude: places("exclude"),
            filters: filters(matches),
        }
    }
}

/// The nearest -e, -k or -u before each --filter.
fn filters(matches: &ArgMatches) -> Vec<Filtered> {
    // Some commands have no -k and no -u.
    let indices = |id| -> Vec<usize> {
        let known = matches.try_contains_id(id).is_ok();
        let indices = known.then(|| matches.indices_of(id)).flatten();
        indices.into_iter().flatten().collect()
    };
    let mut options = Vec::new();
    let events = indices("events");
    let mut end = 0;
    for values in matches
        .get_occurrences::<String>("events")
        .into_iter()
        .flatten()
    {
        let begin = end;
        end += values.count();
        options.push((events[begin], Filtered::Patterns(begin..end)));
    }
    let probes = ["probes", "usdt"].into_iter().flat_map(indices).enumerate();
    options.extend(probes.map(|(probe, at)| (at, Filtered::Probe(probe))));
    let before = |filter: usize| {
        let before = options.iter().filter(|(at, _)| *at < filter);
        let nearest = before.max_by_key(|(at, _)| *at);
        nearest.map_or(Filtered::Patterns(0..0), |(_, found)| found.clone())
    };
    indices("filters").into_iter().map(before).collect()
}
