// SPDX-License-Identifier: GPL-2.0

//! Snapshots: the contents of a session's buffers at one moment, as a trace, while recording continues.
//!
//! A snapshot removes packets from the buffers: all that was recorded up to its moment, and nothing after that. So
//! consecutive snapshots have every packet once, except packets that were overwritten before.
//!
//! The kernel takes the packets of a stream at one moment, and the writer continues in other memory. For a stream
//! without this feature, a snapshot contains the packets that can be read before they are overwritten ([`Exposed`]).

use crate::live::LiveTrace;
use crate::session::Session;
use consumer::{Consumer, Exposed, Source, State, Totals, Written};
use std::fs;
use std::path::Path;
use store::{maps, Claim, OutputOptions};
use system::{Error, Result};

/// The result of a snapshot.
#[derive(Debug)]
pub struct Snapshot {
    /// The written packets.
    pub written: Written,
    /// The events in it, and the events that the trace had lost until then. [`None`]: the counters cannot be read.
    pub totals: Option<Totals>,
    /// Streams that may lack packets, because the kernel could not hold them.
    pub exposed: Option<Exposed>,
    /// The reason why it is incomplete, or lacks the state of its end.
    pub failure: Option<Error>,
}

/// Writes a snapshot of the session's current or last trace to the new or empty directory `dir`.
pub fn take(session: &Session, dir: &Path, options: OutputOptions) -> Result<Snapshot> {
    if options.held(dir)?.is_some() {
        return Err(Error::OutputTaken {
            path: dir.to_owned(),
            reason: "holds a trace already: choose a new directory".to_owned(),
        });
    }
    let _claim = Claim::take(dir, options.access)?;
    let mut consumer = Consumer::open(LiveTrace::open(session)?, |source| {
        options.begin(dir, source.uuid(), &source.streams()?)
    })?;
    let taken = consumer.snapshot();
    let (written, exposed) = (consumer.written(), consumer.exposed());
    let uuid = consumer.source().uuid();
    let state = match taken {
        Ok(()) => State::Stopped,
        Err(_) => State::Failed,
    };
    // The trace ends, even if the session's counters or maps cannot be read.
    let stats = session.stats_and_text();
    let text = stats.as_ref().map_or("", |(_, text)| text);
    let ended = consumer.into_sink().end(state, 0, text);
    let saved = session.maps_text().and_then(|maps| match &*maps {
        "" => Ok(()),
        maps => maps::save(dir, uuid, maps, options.access),
    });
    let totals = stats.map(|(stats, _)| Totals {
        recorded: written.records,
        lost: stats.all.total.lost(),
    });
    let (totals, counted) = match totals {
        Ok(totals) => (Some(totals), Ok(())),
        Err(error) => (None, Err(error)),
    };
    Ok(Snapshot {
        written,
        totals,
        exposed,
        failure: taken.and(ended).and(counted).and(saved).err(),
    })
}

/// The number of the next snapshot in `dir`, which holds DIR/1, DIR/2 and so on, is empty, or is missing.
pub fn next_number(dir: &Path) -> Result<u64> {
    if !dir.exists() {
        return Ok(1);
    }
    let (mut last, mut is_empty) = (None, true);
    for entry in fs::read_dir(dir).map_err(Error::read(dir))? {
        let entry = entry.map_err(Error::read(dir))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
        last = last.max(number.filter(|_| entry.path().is_dir()));
        is_empty = false;
    }
    match last {
        None if !is_empty => Err(Error::OutputTaken {
            path: dir.to_owned(),
            reason: "is not empty and has no snapshots: choose another directory".to_owned(),
        }),
        last => Ok(last.unwrap_or(0).saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::Tracer;
    use rtrace_abi::header::Layout;
    use store::Recording;
    use synthetic::{metadata, UUID};
    use uuid::Uuid;

    #[test]
    fn a_snapshot_without_counters_or_maps_has_ended() {
        let tree = tempfile::tempdir().unwrap();
        let session = tree.path().join("rtrace/sessions/default");
        let write = |name: &str, text: &str| {
            let path = session.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let trace = Uuid::from_bytes(UUID);
        write("../../enable", "0\n");
        write("uuid", &trace.to_string());
        write("metadata", &metadata(UUID, Layout::Compact));
        for (name, text) in [("enable", "0\n"), ("channels/channel0/aux_size", "0\n")] {
            write(name, text);
        }
        for name in ["mode", "subbuf_size", "subbuf_count"] {
            write(&format!("channels/channel0/{name}"), "0\n");
        }
        let of_tree = Tracer::find(tree.path()).unwrap();
        let of_tree = of_tree.session("default").unwrap();
        for (number, stats, has_maps, complaint) in [
            (1, "cpu recorded\n?\n", true, "stats"),
            (2, "cpu recorded\ntotal 0\n", false, "maps"),
        ] {
            write("channels/channel0/stats", stats);
            write("maps", "");
            if !has_maps {
                fs::remove_file(session.join("maps")).unwrap();
            }
            let dir = tree.path().join(number.to_string());
            let snapshot = take(&of_tree, &dir, OutputOptions::default()).unwrap();
            let error = snapshot.failure.unwrap().to_string();
            assert!(error.contains(complaint), "{error}");
            assert_eq!(snapshot.totals.is_some(), complaint == "maps");
            let recording = Recording::read(&dir, trace).unwrap().unwrap();
            assert_eq!(recording.state, State::Stopped, "{complaint}");
        }
    }

    #[test]
    fn numbers_go_on() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(next_number(&dir.path().join("none")).unwrap(), 1);
        assert_eq!(next_number(dir.path()).unwrap(), 1);
        for number in ["2", "10"] {
            fs::create_dir(dir.path().join(number)).unwrap();
        }
        assert_eq!(next_number(dir.path()).unwrap(), 11);
        // Other files beside the snapshots do not matter.
        fs::write(dir.path().join("12"), "").unwrap();
        assert_eq!(next_number(dir.path()).unwrap(), 11);
        for number in ["2", "10"] {
            fs::remove_dir(dir.path().join(number)).unwrap();
        }
        let error = next_number(dir.path()).unwrap_err();
        assert!(error.to_string().contains("is not empty"), "{error}");
    }
}
