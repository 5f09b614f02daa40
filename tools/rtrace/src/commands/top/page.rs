// SPDX-License-Identifier: GPL-2.0

//! The contents of the terminal, and the effects of keys.

use super::table::TopTable;
use crate::args::Column;
use anstyle::Style;
use std::fmt::Write;
use terminal::HEADING;

/// Control sequences: go to the first line; clear the rest of a line; clear the rest of the page.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_PAGE: &str = "\x1b[J";

/// The line below the table.
const KEYS: &str =
    "q end, p pause; sort by: c CPU, s switches, u wake-ups, w wait, y calls, e errors, t TID";

/// The newest table, or the table at the pause.
#[derive(Debug)]
pub struct Page {
    sort: Column,
    is_paused: bool,
    /// Number of tables left to show.
    left: u64,
    table: Option<TopTable>,
}

impl Page {
    /// A page of tables with this order. It ends after `count` tables.
    pub fn new(sort: Column, count: Option<u64>) -> Self {
        Self {
            sort,
            is_paused: false,
            left: count.unwrap_or(u64::MAX),
            table: None,
        }
    }

    /// Takes new tables. Returns whether more are needed.
    pub fn take(&mut self, tables: Vec<TopTable>) -> bool {
        self.left = self.left.saturating_sub(tables.len() as u64);
        if !self.is_paused {
            self.table = tables.into_iter().next_back().or(self.table.take());
        }
        self.left > 0
    }

    /// Executes a key. Returns whether the key ends the program.
    pub fn key(&mut self, key: u8) -> bool {
        match key {
            b'q' => return true,
            b'p' | b' ' => self.is_paused = !self.is_paused,
            b'c' => self.sort = Column::Cpu,
            b's' => self.sort = Column::Switches,
            b'u' => self.sort = Column::Wakeups,
            b'w' => self.sort = Column::Wait,
            b'y' => self.sort = Column::Calls,
            b'e' => self.sort = Column::Errors,
            b't' => self.sort = Column::Tid,
            _ => {}
        }
        false
    }

    /// The text to send to a terminal with this number of lines and columns.
    pub fn text(&mut self, lines: usize, columns: usize) -> String {
        let mut text = HOME.to_owned();
        let mut add = |line: &str, style: Style| {
            let line = cut(line, columns);
            // Writing to a String cannot fail.
            let _ = write!(text, "{style}{line}{style:#}{REST_OF_LINE}\r\n");
        };
        let plain = Style::new();
        match &mut self.table {
            None => add("rtrace top: waiting for the first table", plain),
            Some(table) => {
                table.sort(self.sort);
                let paused = if self.is_paused { "PAUSED " } else { "" };
                add(&format!("rtrace top: {paused}{}", table.head()), plain);
                add("", plain);
                add(&TopTable::names(), HEADING);
                // Without the lines above the table and the line below it.
                for row in table.rows.iter().take(lines.saturating_sub(4)) {
                    add(&table.line(row), plain);
                }
            }
        }
        text.push_str(REST_OF_PAGE);
        let keys = cut(KEYS, columns);
        let _ = write!(text, "\x1b[{lines};1H{HEADING}{keys}{HEADING:#}");
        text
    }
}

fn cut(line: &str, columns: usize) -> String {
    line.chars().take(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::super::table::ThreadRow;
    use super::*;

    /// A table with one row for each time on the CPU. The times are the thread ids, too.
    fn table(times: &[u64]) -> TopTable {
        let rows = times.iter().map(|&time| ThreadRow {
            tid: time as i64,
            comm: "sh".to_owned(),
            cpu_ns: time,
            calls: 1000 - time,
            ..ThreadRow::default()
        });
        TopTable {
            begin_ns: 0,
            duration_ns: 1_000_000_000,
            cpus: 1,
            lost: 0,
            packets_lost: 0,
            unknown_calls: 0,
            rows: rows.collect(),
        }
    }

    /// The first words of the shown rows.
    fn tids(page: &mut Page, lines: usize) -> Vec<String> {
        let text = page.text(lines, 200);
        let rows = text.split("\r\n").skip(3);
        let words = rows.filter_map(|row| row.split_whitespace().next());
        let numbers = words.filter(|word| word.parse::<u64>().is_ok());
        numbers.map(str::to_owned).collect()
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut page = Page::new(Column::Cpu, None);
        assert!(page.text(24, 80).contains("waiting for the first table"));
        assert!(page.take(vec![table(&[9]), table(&[1, 3, 2])]));
        assert_eq!(tids(&mut page, 24), ["3", "2", "1"]);
        assert!(!page.key(b'y'));
        assert_eq!(tids(&mut page, 24), ["1", "2", "3"]);
        assert!(!page.key(b'p'));
        assert!(page.take(vec![table(&[7])]));
        assert_eq!(tids(&mut page, 24), ["1", "2", "3"]);
        assert!(page.text(24, 80).contains("PAUSED"));
        assert!(!page.key(b' ') && page.take(vec![]) && !page.key(b'x'));
        assert_eq!(tids(&mut page, 24), ["1", "2", "3"]);
        assert!(page.take(vec![table(&[7])]));
        assert_eq!(tids(&mut page, 24), ["7"]);
        assert!(page.key(b'q'));
    }

    #[test]
    fn a_page_has_the_size_of_the_terminal() {
        let mut page = Page::new(Column::Tid, Some(2));
        assert!(page.take(vec![table(&[1, 2, 3, 4, 5])]));
        assert_eq!(tids(&mut page, 7), ["1", "2", "3"]);
        assert!(tids(&mut page, 3).is_empty());
        let text = page.text(7, 10);
        let mut plain = anstream::adapter::strip_str(&text).to_string();
        plain.retain(|character| character != '\r');
        assert!(
            plain.lines().all(|line| line.chars().count() <= 10),
            "{plain:?}"
        );
        assert!(!page.take(vec![table(&[1])]));
    }
}
