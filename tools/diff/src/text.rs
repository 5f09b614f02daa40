// SPDX-License-Identifier: GPL-2.0

//! A comparison as text.

use crate::change::{Change, Compare, Compared, NameChanges, Quantity, ERROR, LEAST_WINDOWS};
use crate::NameKind;
use std::fmt::{self, Write};
use terminal::{duration, printable};

impl NameKind {
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Calls => "System calls",
            Self::Running => "Threads: running on a CPU",
            Self::Woken => "Threads: from a wake-up until they run",
            Self::Waiting => "Threads: off the CPU",
            Self::Interrupts => "Interrupts",
            Self::Softirqs => "Softirqs",
            Self::Functions => "Functions, by samples",
            Self::FunctionCalls => "Calls of functions",
        }
    }

    /// The kind in a row, as in JSON.
    fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Running => "running",
            Self::Woken => "woken",
            Self::Waiting => "waiting",
            Self::Interrupts => "interrupts",
            Self::Softirqs => "softirqs",
            Self::Functions => "functions",
            Self::FunctionCalls => "function_calls",
        }
    }
}

impl Quantity {
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::CountPerSecond => "count/s",
            Self::NsPerSecond => "time/s",
            Self::P50Ns => "p50",
            Self::P99Ns => "p99",
        }
    }

    pub(crate) fn show(self, value: Option<f64>) -> String {
        match (self, value) {
            (_, None) => "-".to_owned(),
            (Self::CountPerSecond, Some(value)) => format!("{value:.1}"),
            (_, Some(value)) => duration(value.round() as u64),
        }
    }
}

impl Change {
    pub(crate) fn show(&self) -> String {
        match (self.a, self.b) {
            (Some(a), Some(b)) if a > 0.0 => format!("{:+.1}%", (b / a - 1.0) * 100.0),
            (Some(_), Some(b)) if b > 0.0 => "new".to_owned(),
            (None, Some(_)) => "new".to_owned(),
            (Some(_), None) => "gone".to_owned(),
            _ => "-".to_owned(),
        }
    }
}

impl Compared {
    /// Returns the comparison as text, with at most `names` names of a kind.
    pub fn text(&self, names: usize) -> Result<String, fmt::Error> {
        let mut out = String::new();
        self.head(&mut out)?;
        for rows in self.rows.chunk_by(|a, b| a.kind == b.kind) {
            table(rows, names, &mut out)?;
        }
        Ok(out)
    }

    /// Writes the traces, and the meaning of a mark.
    pub(crate) fn head(&self, out: &mut String) -> fmt::Result {
        for (letter, trace) in [("A", &self.a), ("B", &self.b)] {
            trace.text(letter, out)?;
        }
        let window = duration(self.window_ns);
        writeln!(
            out,
            "* exceeds the variation between windows of {window} ({} tests, chance of error {}% if the windows are independent)",
            self.tests,
            ERROR * 100.0
        )?;
        writeln!(
            out,
            "Neighbouring windows of one run often are not, so there are more wrong marks: compare several runs of each"
        )?;
        let whole = |trace: &Compare| trace.windows - trace.lossy_windows;
        if whole(&self.a).min(whole(&self.b)) < LEAST_WINDOWS {
            writeln!(
                out,
                "A trace has fewer than {LEAST_WINDOWS} windows without losses: its variation is unknown"
            )?;
        }
        Ok(())
    }
}

impl Compare {
    fn text(&self, letter: &str, out: &mut String) -> fmt::Result {
        let dir = self.dir.display().to_string();
        let length = duration(self.duration_ns);
        write!(
            out,
            "{letter}: {}, {length}, {} windows",
            printable(&dir),
            self.windows
        )?;
        if self.lossy_windows > 0 {
            let (lossy, lost) = (self.lossy_windows, self.lost);
            write!(
                out,
                ", {lossy} of them left out: events are missing ({lost} lost)"
            )?;
        }
        writeln!(out)
    }
}

fn table(rows: &[NameChanges], names: usize, out: &mut String) -> fmt::Result {
    let Some(kind) = rows.first().map(|row| row.kind) else {
        return Ok(());
    };
    let (heading, word) = (kind.heading(), kind.word());
    let marked = rows.iter().flat_map(|row| &row.changes);
    let marked = marked.filter(|change| change.exceeds).count();
    writeln!(out, "\n{heading} ({marked} changes exceed the variation)")?;
    writeln!(
        out,
        "{:<width$} {:<24} {:<8} {:>12} {:>12} {:>10}",
        "",
        "name",
        "quantity",
        "A",
        "B",
        "change",
        width = word.len()
    )?;
    for row in rows.iter().take(names) {
        // In each row: users choose rows with grep.
        let name = printable(&row.name);
        for change in &row.changes {
            let quantity = change.quantity;
            let mark = if change.exceeds { " *" } else { "" };
            writeln!(
                out,
                "{word} {name:<24} {:<8} {:>12} {:>12} {:>10}{mark}",
                quantity.heading(),
                quantity.show(change.a),
                quantity.show(change.b),
                change.show()
            )?;
        }
    }
    match rows.len().saturating_sub(names) {
        0 => Ok(()),
        left => writeln!(out, "  ... {left} more names (-n 0 shows all)"),
    }
}
