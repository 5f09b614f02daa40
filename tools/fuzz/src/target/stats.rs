// SPDX-License-Identifier: GPL-2.0

//! The `stats` file of a channel, and those of several channels. An accepted text, written as tables and read
//! again, is the same. Sums do not overflow.

use consumer::stats::{Counters, Stats, TraceStats};

pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(stats) = TraceStats::parse(text) {
        assert_eq!(TraceStats::parse(&tables(&stats)), Ok(stats.clone()));
        stats.all.cpus.iter().for_each(|row| sums(&row.counters));
        sums(&stats.all.total);
    }
    let Ok(stats) = Stats::parse(text) else {
        return;
    };
    assert_eq!(Stats::parse(&table(&stats)), Ok(stats.clone()));
    for counters in stats.cpus.iter().map(|row| &row.counters) {
        sums(counters);
    }
    sums(&stats.total);
}

fn sums(counters: &Counters) {
    assert!(counters.discarded() <= counters.lost());
    assert!(counters.unread() <= counters.recorded);
    assert_eq!(counters.totals().lost, counters.lost());
}

/// The tables of all channels.
pub(super) fn tables(stats: &TraceStats) -> String {
    let mut tables = String::new();
    for channel in &stats.channels {
        tables += &format!("channel {}\n{}", channel.channel, table(&channel.stats));
    }
    tables
}

fn table(stats: &Stats) -> String {
    let mut out =
        "cpu recorded overwritten full wrapped too_large nested no_buffer busy missed packets \
                   bytes read_packets read_records\n"
            .to_owned();
    for row in &stats.cpus {
        out += &format!("{} {}\n", row.cpu, line(&row.counters));
    }
    out + &format!("total {}\n", line(&stats.total))
}

fn line(counters: &Counters) -> String {
    [
        counters.recorded,
        counters.overwritten,
        counters.full,
        counters.wrapped,
        counters.too_large,
        counters.nested,
        counters.no_buffer,
        counters.busy,
        counters.missed,
        counters.packets,
        counters.bytes,
        counters.read_packets,
        counters.read_records,
    ]
    .map(|number| number.to_string())
    .join(" ")
}
