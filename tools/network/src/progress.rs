// SPDX-License-Identifier: GPL-2.0

//! Progress of a trace's reception, for its watchers.
//!
//! Once a second, a sender closes the packets being written and reports the number of finished packets of each
//! stream. When all these packets have been received, the trace is complete up to a certain time: the latest
//! time in the packets of the previous report. Each older event was in a packet of this report.

use consumer::stats::TraceStats;
use consumer::State;
use ctf::StreamName;
use rtrace_abi::packet::PacketHeader;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of reports after which the packets of a report are not awaited any more: some may have been
/// overwritten before they were read.
const PATIENCE: u32 = 10;

/// Progress of a trace's reception.
#[derive(Debug, Default)]
pub struct Progress {
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// A snapshot of the progress.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// Number of changes so far.
    pub changes: u64,
    /// Number of descriptions so far.
    pub descriptions: u64,
    /// The streams, in the order in which they were first opened.
    pub streams: Vec<Opened>,
    /// All events up to this clock value have been received.
    pub complete: u64,
    /// How the trace ended, if it has.
    pub ended: Option<State>,
}

/// A stream that is being received.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its name.
    pub name: StreamName,
    /// Size of its complete packets in bytes.
    pub bytes: u64,
    /// Number of its next packet.
    next: u64,
}

#[derive(Debug, Default)]
struct Inner {
    reached: Reached,
    /// The latest time in the packets of the report before the awaited one.
    before: u64,
    /// The report whose packets are awaited.
    awaited: Option<Count>,
    /// The latest time in all packets.
    newest: u64,
}

/// A report: the number of finished packets of each stream.
#[derive(Debug)]
struct Count {
    /// The streams with packets that were not received yet. The value is the number after the last awaited
    /// packet.
    missing: BTreeMap<StreamName, u64>,
    /// The latest time in the packets that were received.
    newest: u64,
    /// Number of reports since.
    age: u32,
}

impl Progress {
    /// Notes a description.
    pub fn described(&self) {
        self.change(|inner| inner.reached.descriptions += 1);
    }

    /// Notes a stream, whose file has this many bytes and whose next packet is `next`. Returns its number here.
    pub fn opened(&self, name: &StreamName, bytes: u64, next: u64) -> usize {
        self.change(|inner| {
            let streams = &mut inner.reached.streams;
            let known = streams.iter().position(|stream| stream.name == *name);
            let number = known.unwrap_or(streams.len());
            if known.is_none() {
                streams.push(Opened {
                    name: name.clone(),
                    bytes,
                    next,
                });
                if let Some(count) = &mut inner.awaited {
                    count.is_here(name, next);
                }
                inner.settle();
            }
            number
        })
    }

    /// Notes a packet of a stream.
    pub fn came(&self, number: usize, header: &PacketHeader) {
        let (end, size) = (header.timestamp_end, header.packet_size / 8);
        let sequence = header.packet_seq_num;
        self.change(|inner| {
            let stream = &mut inner.reached.streams[number];
            stream.bytes += size;
            stream.next = sequence + 1;
            inner.newest = inner.newest.max(end);
            if let Some(count) = &mut inner.awaited {
                let missing = count.missing.get(&stream.name);
                if missing.is_some_and(|next| sequence < *next) {
                    count.newest = count.newest.max(end);
                }
                count.is_here(&stream.name, stream.next);
            }
            inner.settle();
        });
    }

    /// Notes a report of the sender.
    pub fn counted(&self, stats: &TraceStats) {
        self.change(|inner| {
            if let Some(awaited) = &mut inner.awaited {
                awaited.age += 1;
            } else {
                let here = inner.reached.streams.iter();
                let here: BTreeMap<_, _> = here.map(|stream| (&stream.name, stream.next)).collect();
                let rows = stats.channels.iter().flat_map(|channel| {
                    let rows = channel.stats.cpus.iter();
                    rows.map(|row| {
                        let name = StreamName {
                            channel: channel.channel.clone(),
                            cpu: row.cpu,
                        };
                        (name, row.counters.packets)
                    })
                });
                let is_missing = |(name, packets): &(StreamName, u64)| {
                    here.get(name).copied().unwrap_or(0) < *packets
                };
                inner.awaited = Some(Count {
                    missing: rows.filter(is_missing).collect(),
                    // The packets that were received were finished before.
                    newest: inner.newest,
                    age: 0,
                });
            }
            inner.settle();
        });
    }

    /// Notes the end: nothing more will be received.
    pub fn ended(&self, state: State) {
        self.change(|inner| {
            inner.reached.complete = u64::MAX;
            inner.reached.ended = Some(state);
        });
    }

    /// Whether the trace has ended.
    pub fn has_ended(&self) -> bool {
        self.lock().reached.ended.is_some()
    }

    /// Waits for more than `changes` changes, or for `time`.
    pub fn wait(&self, changes: u64, time: Duration) -> Reached {
        let inner = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(inner, time, |inner| inner.reached.changes <= changes);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inner.reached.clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let result = change(&mut inner);
        inner.reached.changes += 1;
        self.changed.notify_all();
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Only an assertion in a test panics within a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Checks whether all packets of the report have been received.
    fn settle(&mut self) {
        let Some(count) = self
            .awaited
            .take_if(|count| count.age >= PATIENCE || count.missing.is_empty())
        else {
            return;
        };
        let complete = mem::replace(&mut self.before, count.newest);
        self.reached.complete = self.reached.complete.max(complete);
    }
}

impl Count {
    /// Notes that the packets of a stream below `next` have been received.
    fn is_here(&mut self, name: &StreamName, next: u64) {
        if self.missing.get(name).is_some_and(|until| *until <= next) {
            self.missing.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace_abi::packet::MAGIC;

    fn name(cpu: u32) -> StreamName {
        StreamName {
            channel: "channel0".to_owned(),
            cpu,
        }
    }

    fn header(sequence: u64, begin: u64, end: u64) -> PacketHeader {
        PacketHeader {
            magic: MAGIC,
            uuid: [0; 16],
            stream_id: 0,
            stream_instance_id: 0,
            timestamp_begin: begin,
            timestamp_end: end,
            content_size: 4096 * 8,
            packet_size: 4096 * 8,
            packet_seq_num: sequence,
            events_discarded: 0,
            cpu_id: 0,
        }
    }

    fn stats(packets: [u64; 2]) -> TraceStats {
        let [one, two] = packets;
        let text = format!("cpu packets\n0 {one}\n1 {two}\ntotal 0\n");
        TraceStats::parse(&text).unwrap()
    }

    fn complete(progress: &Progress) -> u64 {
        progress.wait(0, Duration::ZERO).complete
    }

    #[test]
    fn complete_up_to_what_was_counted_before() {
        let progress = Progress::default();
        assert_eq!(progress.opened(&name(0), 0, 0), 0);
        assert_eq!(progress.opened(&name(1), 0, 0), 1);
        progress.came(0, &header(0, 10, 20));
        progress.counted(&stats([1, 1]));
        assert_eq!(complete(&progress), 0);
        // This packet was sent before the other stream's, but is not in the report.
        progress.came(0, &header(1, 50, 60));
        progress.came(1, &header(0, 5, 30));
        assert_eq!(complete(&progress), 0);
        progress.counted(&stats([2, 2]));
        assert_eq!(complete(&progress), 0);
        // CPU 1 may have had events after 30.
        progress.came(1, &header(1, 31, 70));
        assert_eq!(complete(&progress), 30);
        progress.counted(&stats([2, 2]));
        assert_eq!(complete(&progress), 70);
        // The same stream again, by another connection.
        assert_eq!(progress.opened(&name(1), 8192, 2), 1);
        let reached = progress.wait(0, Duration::ZERO);
        assert_eq!(reached.streams.len(), 2);
        assert_eq!(reached.streams[1].bytes, 8192);
        progress.ended(State::Over);
        assert_eq!(complete(&progress), u64::MAX);
    }

    #[test]
    fn what_was_overwritten_is_not_waited_for() {
        let progress = Progress::default();
        progress.opened(&name(0), 0, 0);
        progress.came(0, &header(0, 10, 20));
        progress.counted(&stats([1, 0]));
        progress.counted(&stats([3, 0]));
        progress.came(0, &header(1, 25, 30));
        for _ in 0..PATIENCE {
            assert_eq!(complete(&progress), 0);
            progress.counted(&stats([3, 0]));
        }
        assert_eq!(complete(&progress), 20);
    }
}
