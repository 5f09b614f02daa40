// SPDX-License-Identifier: GPL-2.0

//! The part of `rtrace report` that reads a trace.

use analysis::choice::Part;
use analysis::summary::Summary;
use ctf::{Item, Metadata};
use std::path::{Path, PathBuf};
use store::Trace;
use terminal::date;

/// Contents of a stream file that may be damaged.
#[derive(Debug, Default)]
pub struct Contents {
    pub packets: u64,
    pub events: u64,
    /// The damaged places.
    pub places: u64,
}

/// Makes a report of a trace with one stream. The stream was read before; `all` is its contents.
pub fn check(metadata: &Metadata, stream: &Path, all: &Contents) {
    let Contents {
        packets,
        events,
        places,
    } = *all;
    let trace = Trace {
        metadata: metadata.clone().into(),
        streams: vec![PathBuf::from(stream)],
        bytes: 0,
        recording: None,
        damages: Vec::new(),
        notes: Vec::new(),
    };
    let summary = Summary::of(Path::new("dir"), &trace, &Part::default(), |_| ());
    let summary = summary.expect("what the walk could read");
    assert_eq!(summary.head.packets, packets);
    assert_eq!(summary.losses.recorded, events);
    assert_eq!(summary.losses.verdict().is_err(), places > 0);
    let counted: u64 = summary.events.iter().map(|event| event.count).sum();
    assert_eq!(counted, events);
    for cpu in &summary.cpus {
        let time = cpu.idle_ns.saturating_add(cpu.busy_ns);
        assert!(time <= summary.head.duration_ns, "{time} ns of CPU time");
    }
    assert_eq!(merged(&trace), (events, places));
    assert_eq!(summary.head.begin_ns.is_some(), packets > 0);
    if let Some(begin) = summary.head.begin_ns {
        date::use_utc();
        assert!(date::readable(begin).ends_with(" UTC"));
    }
}

/// Number of events in the trace, merged by time, and number of damaged places.
fn merged(trace: &Trace) -> (u64, u64) {
    const READ: &str = "what the walk could read";
    let mut merge = trace.merge().expect(READ);
    let (mut now, mut events, mut places) = (0, 0, 0);
    while let Some((_, item)) = merge.next_item().expect(READ) {
        match item {
            Item::Event(event) => {
                assert!(now <= event.timestamp);
                now = event.timestamp;
                events += 1;
            }
            Item::Damaged { .. } => places += 1,
            Item::Packet(_) | Item::Whole { .. } | Item::End { .. } => {}
        }
    }
    (events, places)
}
