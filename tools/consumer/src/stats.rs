// SPDX-License-Identifier: GPL-2.0

//! The counters of a trace: of each channel, as its `stats` file shows them, and their sum.

use rtrace_abi::names::FIRST_CHANNEL;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// The number of events that a trace has and lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Totals {
    /// Events recorded.
    pub recorded: u64,
    /// Events that fired and are not in the trace.
    pub lost: u64,
}

impl Totals {
    /// The totals of a trace with these counters, of which `recorded` events were read. Every event that the kernel
    /// recorded and no file has is lost, too.
    pub fn of(all: &Counters, recorded: u64) -> Self {
        let kept = all.recorded.saturating_sub(all.overwritten);
        Self {
            recorded,
            lost: all.lost().saturating_add(kept.saturating_sub(recorded)),
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events recorded, {} lost", self.recorded, self.lost)
    }
}

/// The counters of one CPU, or of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Counters {
    /// Records committed.
    pub recorded: u64,
    /// Records that were overwritten before a reader had them.
    pub overwritten: u64,
    /// Discarded: the buffer was full.
    pub full: u64,
    /// Discarded: nested writers wrapped round the buffer.
    pub wrapped: u64,
    /// Discarded: larger than a sub-buffer.
    pub too_large: u64,
    /// Discarded: fired by a probe that was recording.
    pub nested: u64,
    /// Discarded: the CPU has no buffer.
    pub no_buffer: u64,
    /// Discarded: another CPU was acting in place of an isolated one.
    pub busy: u64,
    /// Missed: the kernel called no probe. Only in the sum of all CPUs.
    pub missed: u64,
    /// Packets finished.
    pub packets: u64,
    /// Bytes of finished packets.
    pub bytes: u64,
    /// Packets that readers took and returned.
    pub read_packets: u64,
    /// Records in these packets.
    pub read_records: u64,
}

impl Counters {
    /// Events that fired and were never written.
    pub fn discarded(&self) -> u64 {
        [
            self.full,
            self.wrapped,
            self.too_large,
            self.nested,
            self.no_buffer,
            self.busy,
            self.missed,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Records that no reader can get any more.
    pub fn lost(&self) -> u64 {
        self.discarded().saturating_add(self.overwritten)
    }

    /// Records written that are still in the buffers.
    pub fn unread(&self) -> u64 {
        self.recorded
            .saturating_sub(self.overwritten)
            .saturating_sub(self.read_records)
    }

    /// The totals from the kernel's point of view.
    pub fn totals(&self) -> Totals {
        Totals {
            recorded: self.recorded.saturating_sub(self.overwritten),
            lost: self.lost(),
        }
    }

    /// Adds another table's counters.
    fn add(&mut self, other: &Self) {
        for (sum, value) in [
            (&mut self.recorded, other.recorded),
            (&mut self.overwritten, other.overwritten),
            (&mut self.full, other.full),
            (&mut self.wrapped, other.wrapped),
            (&mut self.too_large, other.too_large),
            (&mut self.nested, other.nested),
            (&mut self.no_buffer, other.no_buffer),
            (&mut self.busy, other.busy),
            (&mut self.missed, other.missed),
            (&mut self.packets, other.packets),
            (&mut self.bytes, other.bytes),
            (&mut self.read_packets, other.read_packets),
            (&mut self.read_records, other.read_records),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    fn set(&mut self, column: &str, value: u64) {
        let field = match column {
            "recorded" => &mut self.recorded,
            "overwritten" => &mut self.overwritten,
            "full" => &mut self.full,
            "wrapped" => &mut self.wrapped,
            "too_large" => &mut self.too_large,
            "nested" => &mut self.nested,
            "no_buffer" => &mut self.no_buffer,
            "busy" => &mut self.busy,
            "missed" => &mut self.missed,
            "packets" => &mut self.packets,
            "bytes" => &mut self.bytes,
            "read_packets" => &mut self.read_packets,
            "read_records" => &mut self.read_records,
            // A newer module may have more counters.
            _ => return,
        };
        *field = value;
    }
}

/// One CPU's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct CpuCounters {
    /// The CPU.
    pub cpu: u32,
    /// Its counters.
    #[serde(flatten)]
    pub counters: Counters,
}

/// A table: of a channel, or of all channels of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Stats {
    /// One row per CPU.
    pub cpus: Vec<CpuCounters>,
    /// Their sum.
    pub total: Counters,
}

impl Stats {
    /// Parses the text table: a header line, a row per CPU, and the row `total`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let header = lines.next().ok_or("the table is empty")?;
        let columns: Vec<&str> = header.split_whitespace().skip(1).collect();
        let mut stats = Self::default();
        for line in lines {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let mut counters = Counters::default();
            for column in &columns {
                let value = words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .ok_or_else(|| format!("row `{name}`: column `{column}` has no number"))?;
                counters.set(column, value);
            }
            if name == "total" {
                stats.total = counters;
            } else {
                let cpu = name.trim_start_matches("cpu").parse();
                let cpu = cpu.map_err(|_| format!("row `{name}` is not a CPU"))?;
                stats.cpus.push(CpuCounters { cpu, counters });
            }
        }
        Ok(stats)
    }

    /// Adds another table's rows.
    fn add(&mut self, other: &Self) {
        for row in &other.cpus {
            match self.cpus.iter_mut().find(|known| known.cpu == row.cpu) {
                Some(known) => known.counters.add(&row.counters),
                None => self.cpus.push(*row),
            }
        }
        self.cpus.sort_by_key(|row| row.cpu);
        self.total.add(&other.total);
    }
}

/// The counters of a channel.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ChannelStats {
    /// The channel's name.
    pub channel: String,
    /// Its counters.
    #[serde(flatten)]
    pub stats: Stats,
}

/// The counters of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct TraceStats {
    /// The sums of its channels.
    #[serde(flatten)]
    pub all: Stats,
    /// The counters of each channel.
    pub channels: Vec<ChannelStats>,
}

impl TraceStats {
    /// Parses the text tables of channels, each after a line `channel NAME`. A table without such a line belongs to
    /// the channel that each session has.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tables: Vec<(&str, String)> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("channel ") {
                Some(name) => tables.push((name.trim(), String::new())),
                None => {
                    if tables.is_empty() {
                        tables.push((FIRST_CHANNEL, String::new()));
                    }
                    if let Some((_, table)) = tables.last_mut() {
                        *table += line;
                        table.push('\n');
                    }
                }
            }
        }
        let mut this = Self::default();
        for (name, table) in tables {
            let stats = Stats::parse(&table).map_err(|what| format!("channel `{name}`: {what}"))?;
            this.all.add(&stats);
            this.channels.push(ChannelStats {
                channel: name.to_owned(),
                stats,
            });
        }
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let stats = Stats::parse(
            "cpu recorded overwritten full wrapped too_large nested no_buffer busy missed packets \
             bytes read_packets read_records\n\
             0 10 1 2 3 4 5 6 5 0 7 8 9 4\n\
             1 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             total 10 1 2 3 4 5 6 5 3 7 8 9 4\n",
        )
        .unwrap();
        assert_eq!(stats.cpus.len(), 2);
        assert_eq!(stats.total.discarded(), 28);
        assert_eq!(stats.total.lost(), 29);
        assert_eq!(stats.total.unread(), 5);
        assert_eq!(
            stats.total.totals(),
            Totals {
                recorded: 9,
                lost: 29
            }
        );
    }

    #[test]
    fn tables_of_channels() {
        let one = "cpu recorded full\n0 1 2\n1 3 0\ntotal 4 2\n";
        let other = "cpu recorded\n2 5\n1 6\ntotal 11\n";
        let stats = TraceStats::parse(&format!("channel a\n{one}channel b\n{other}")).unwrap();
        let sums: Vec<_> = stats
            .all
            .cpus
            .iter()
            .map(|row| row.counters.recorded)
            .collect();
        assert_eq!(sums, [1, 9, 5]);
        assert_eq!((stats.all.total.recorded, stats.all.total.full), (15, 2));
        let names: Vec<_> = stats.channels.iter().map(|c| c.channel.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(stats.channels[1].stats, Stats::parse(other).unwrap());
        // The form of older versions, with one channel.
        let before = TraceStats::parse(one).unwrap();
        assert_eq!(before.channels[0].channel, "channel0");
        assert_eq!(before.all, Stats::parse(one).unwrap());
        assert_eq!(TraceStats::parse(""), Ok(TraceStats::default()));
        let error = TraceStats::parse(&format!("{one}channel b\ncpu full\n0\n")).unwrap_err();
        assert!(error.contains("channel `b`"), "{error}");
    }

    #[test]
    fn rubbish() {
        for text in [
            "",
            "cpu recorded\n0\n",
            "cpu recorded\nx 1\n",
            "cpu recorded\n0 -1\n",
        ] {
            assert!(Stats::parse(text).is_err(), "{text}");
        }
    }
}
