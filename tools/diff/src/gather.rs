// SPDX-License-Identifier: GPL-2.0

//! Figures of a trace, from the rows of its tables. Figures exist for the whole trace, and for windows of equal
//! length.
//!
//! The tables come from the engine that answers `rtrace report`, so the figures are the same. A row counts in the
//! window in which its interval ends. Memory: two histograms for each name, at most [`NAMES`] names of a kind, and
//! five numbers for each window of a name.

use crate::extent::Extent;
use crate::NameKind;
use analysis::durations::Durations;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use symbols::Symbols;
use tables::{Cell, Column, Rows};

/// Names of a kind. Further names count as [`OTHERS`].
const NAMES: usize = 4096;
const OTHERS: &str = "(other names)";

/// The event at the return of a traced function.
const RETURN: &str = "funcgraph_exit";

/// Figures of a name.
#[derive(Default)]
pub struct Figures {
    /// Number of occurrences.
    pub count: u64,
    /// The known durations.
    pub durations: Option<Durations>,
    /// Windows in which it occurred, in their order.
    pub windows: Vec<Window>,
    current: Option<(usize, u64, Durations)>,
}

/// Figures of a window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub number: usize,
    pub count: u64,
    pub total_ns: u64,
    /// Number of known durations.
    pub timed: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// The figures of a trace.
pub struct Gathered {
    /// By kind and name.
    pub names: HashMap<(NameKind, String), Figures>,
    /// Windows in which events may be missing. They do not count.
    pub lossy: Vec<bool>,
    extent: Extent,
    /// Length of a window.
    width: u64,
    kinds: HashMap<NameKind, usize>,
}

impl Gathered {
    /// For figures of a trace, with windows of this length in nanoseconds.
    pub fn new(extent: Extent, width: u64) -> Self {
        // A part of a window at the end does not count.
        let windows = extent.length() / width;
        Self {
            names: HashMap::new(),
            lossy: vec![false; usize::try_from(windows).unwrap_or(0)],
            extent,
            width,
            kinds: HashMap::new(),
        }
    }

    fn window(&self, ns: i64) -> usize {
        let since = u64::try_from(ns.saturating_sub(self.extent.begin)).unwrap_or(0);
        usize::try_from(since / self.width).unwrap_or(usize::MAX)
    }

    /// Takes an interval in which events may be missing.
    fn lose(&mut self, ns: i64, duration: u64) {
        let (from, to) = (
            self.window(ns),
            self.window(ns.saturating_add_unsigned(duration)),
        );
        let lossy = self.lossy.iter_mut().enumerate();
        for (_, lossy) in lossy.filter(|(number, _)| (from..=to).contains(number)) {
            *lossy = true;
        }
    }

    fn add(&mut self, kind: NameKind, name: &str, ns: i64, duration: Option<u64>) {
        let window = self.window(ns.saturating_add_unsigned(duration.unwrap_or(0)));
        // Most names are known.
        let mut key = (kind, name.to_owned());
        if !self.names.contains_key(&key) {
            let names = self.kinds.entry(kind).or_default();
            match *names < NAMES {
                true => *names += 1,
                false => key.1 = OTHERS.to_owned(),
            }
        }
        self.names
            .entry(key)
            .or_default()
            .add(kind, window, duration);
    }

    /// Takes no further rows, and ends the last window.
    fn end(&mut self) {
        self.names.values_mut().for_each(Figures::close);
    }
}

impl Figures {
    fn add(&mut self, kind: NameKind, window: usize, duration: Option<u64>) {
        // There may be thousands of thread names, and hundreds of calls.
        let new = || match kind.has_many_names() {
            true => Durations::coarse(),
            false => Durations::new(),
        };
        // A row that is late counts in the window of the row before.
        if self
            .current
            .as_ref()
            .is_some_and(|(current, ..)| *current < window)
        {
            self.close();
        }
        let (_, count, durations) = self.current.get_or_insert_with(|| (window, 0, new()));
        self.count += 1;
        *count += 1;
        if let Some(duration) = duration {
            durations.add(duration);
            self.durations.get_or_insert_with(new).add(duration);
        }
    }

    fn close(&mut self) {
        if let Some((number, count, durations)) = self.current.take() {
            self.windows.push(Window {
                number,
                count,
                total_ns: durations.total_ns(),
                timed: durations.count(),
                p50_ns: durations.percentile_ns(50.0),
                p99_ns: durations.percentile_ns(99.0),
            });
        }
    }
}

/// Takes the rows of a trace.
#[derive(Clone)]
pub struct Gather {
    to: Rc<RefCell<Gathered>>,
    symbols: Rc<Symbols>,
    /// The time 0 of the trace's clock, since the epoch.
    epoch: i128,
    /// Meaning of each table's rows, and the places of their cells.
    tables: Vec<Option<Table>>,
}

#[derive(Clone)]
struct Table {
    says: Says,
    duration: Option<usize>,
    name: Option<usize>,
    /// The columns `kind` of interrupts and `tid` of samples.
    other: Option<usize>,
}

/// Meaning of a table's rows.
#[derive(Clone, PartialEq, Eq)]
enum Says {
    Calls,
    Interrupts,
    Samples,
    Losses,
    /// Returns of functions, whose address is in the column of the name.
    Returns,
    /// Returns of a probed function, with the name of the event.
    Probed(String),
    /// Intervals of threads.
    Threads(NameKind),
}

impl Gather {
    /// For the figures of a trace with these symbols.
    pub fn new(to: Gathered, symbols: Symbols, epoch: i128) -> Self {
        Self {
            to: Rc::new(RefCell::new(to)),
            symbols: Rc::new(symbols),
            epoch,
            tables: Vec::new(),
        }
    }

    /// Returns the figures after all rows have been taken.
    pub fn finish(self) -> Gathered {
        self.to.borrow_mut().end();
        self.to
            .replace(Gathered::new(Extent { begin: 0, end: 0 }, 1))
    }
}

impl Rows for Gather {
    fn table(&mut self, name: &str, columns: &[Column]) -> Option<Vec<bool>> {
        let place = |name| columns.iter().position(|column| column.name == name);
        let (says, key, other) = match name {
            "syscalls" => (Says::Calls, "name", ""),
            "interrupts" => (Says::Interrupts, "name", "kind"),
            "samples" => (Says::Samples, "function", "tid"),
            "slices" => (Says::Threads(NameKind::Running), "comm", ""),
            "wakeups" => (Says::Threads(NameKind::Woken), "comm", ""),
            "offcpu" => (Says::Threads(NameKind::Waiting), "comm", ""),
            "losses" => (Says::Losses, "", ""),
            RETURN => (Says::Returns, "func", ""),
            _ if place("duration_ns").is_some() => (Says::Probed(name.to_owned()), "", ""),
            _ => {
                self.tables.push(None);
                return None;
            }
        };
        let duration = match says {
            Says::Returns => "duration",
            _ => "duration_ns",
        };
        let table = Table {
            says,
            duration: place(duration),
            name: place(key),
            other: place(other),
        };
        let wanted = [table.duration, table.name, table.other];
        self.tables.push(Some(table));
        let wanted = (0..columns.len()).map(|place| wanted.contains(&Some(place)));
        Some(wanted.collect())
    }

    fn row(&mut self, table: usize, ns: i64, cells: &[Cell]) -> io::Result<()> {
        let Some(table) = &self.tables[table] else {
            return Ok(());
        };
        let cell = |place: Option<usize>| place.map_or(&Cell::Empty, |place| &cells[place]);
        let duration = match cell(table.duration) {
            Cell::Integer(ns) => u64::try_from(*ns).ok(),
            _ => None,
        };
        let name = match cell(table.name) {
            Cell::Text(name) => name.as_str(),
            _ => "?",
        };
        let mut to = self.to.borrow_mut();
        // A return comes at the end of its call.
        let begin = || ns.saturating_sub_unsigned(duration.unwrap_or(0));
        match (&table.says, cell(table.other)) {
            (Says::Returns, _) => {
                let Cell::Integer(address) = cell(table.name) else {
                    return Ok(());
                };
                let at = u64::try_from(i128::from(ns) - self.epoch).unwrap_or(0);
                match self.symbols.kernel(at, *address as u64) {
                    Some(symbol) => {
                        to.add(NameKind::FunctionCalls, &symbol.name, begin(), duration)
                    }
                    None => {
                        let name = format!("{address:#x}");
                        to.add(NameKind::FunctionCalls, &name, begin(), duration);
                    }
                }
            }
            (Says::Probed(name), _) => to.add(NameKind::FunctionCalls, name, begin(), duration),
            (Says::Losses, _) => to.lose(ns, duration.unwrap_or(0)),
            (Says::Calls, _) => to.add(NameKind::Calls, name, ns, duration),
            (Says::Interrupts, Cell::Text(kind)) if kind == "soft" => {
                to.add(NameKind::Softirqs, name, ns, duration);
            }
            (Says::Interrupts, _) => to.add(NameKind::Interrupts, name, ns, duration),
            // Samples of idle CPUs do not count.
            (Says::Samples, Cell::Integer(0)) => {}
            (Says::Samples, _) => to.add(NameKind::Functions, name, ns, None),
            (Says::Threads(kind), _) => to.add(*kind, name, ns, duration),
        }
        Ok(())
    }
}
