// SPDX-License-Identifier: GPL-2.0

//! The traces that are found in a dump of a kernel's memory.

use ctf::StreamReader;
use recovery::dump::{self, Memory};
use rtrace_abi::dump::{Root, MAGIC, VERSION};
use rtrace_abi::header::Layout;
use rtrace_abi::region::{checksum, BufferPlace, RegionHeader, NAME_MAX};
use std::collections::BTreeMap;
use std::path::Path;
use store::Trace;
use synthetic::{metadata, region, PacketBuilder, Slot, SUBBUF, UUID};
use system::access::Access;

const BEGIN: u64 = 1 << 40;

/// The addresses in these dumps.
const ROOT: u64 = 0xffff_ffff_c000_0040;
const TRACE: u64 = 0xffff_8000_0000_1000;
const TEXT: u64 = 0xffff_8000_0000_2000;
const BYTES: u64 = 0xffff_8000_0001_0000;
const ENTRIES: u64 = 0xffff_8000_0010_0000;
const BUFFERS: u64 = 0xffff_8000_1000_0000;

/// Pieces of memory by address.
#[derive(Clone, Default)]
struct Pieces(BTreeMap<u64, Vec<u8>>);

impl Pieces {
    fn words(&mut self, at: u64, words: &[u64]) {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        self.0.insert(at, bytes.collect());
    }

    /// Changes the word at `offset` of the piece that begins at `at`.
    fn change(mut self, at: u64, offset: usize, word: u64) -> Self {
        let piece = self.0.get_mut(&at).unwrap();
        piece[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        self
    }

    fn without(mut self, at: u64) -> Self {
        self.0.remove(&at).unwrap();
        self
    }
}

impl Memory for Pieces {
    fn find(&mut self, align: usize, bytes: &[u8]) -> system::Result<Vec<u64>> {
        let is_there = |at: u64, piece: &[u8]| at % align as u64 == 0 && piece.starts_with(bytes);
        let found = self.0.iter().filter(|(at, piece)| is_there(**at, piece));
        Ok(found.map(|(&at, _)| at).collect())
    }

    fn read(&mut self, at: u64, len: usize) -> system::Result<Option<Vec<u8>>> {
        let (begin, piece) = match self.0.range(..=at).next_back() {
            Some((begin, piece)) => (*begin, piece),
            None => return Ok(None),
        };
        let from = (at - begin) as usize;
        Ok(piece.get(from..from + len).map(<[u8]>::to_owned))
    }
}

/// A packet of a CPU with this number of records.
fn packet(cpu: u32, sequence: u64, records: u64) -> Vec<u8> {
    let begin = BEGIN + 1000 * sequence;
    let packet = PacketBuilder::new(Layout::Large, cpu, sequence, begin);
    let packet = (0..records).fold(packet, |packet, n| packet.softirq(begin + n, 1));
    packet.close(begin + 999, SUBBUF)
}

/// A dump with the buffers of one trace's `channel0`, in the order in which they were made.
fn dump(buffers: &[(u32, Vec<Slot>)]) -> Pieces {
    let mut pieces = Pieces::default();
    let text = metadata(UUID, Layout::Large);
    pieces.0.insert(TRACE, UUID.to_vec());
    pieces.0.get_mut(&TRACE).unwrap().extend(TEXT.to_le_bytes());
    pieces.words(TEXT, &[BYTES, text.len() as u64, checksum(text.as_bytes())]);
    pieces.0.insert(BYTES, text.clone().into_bytes());
    let mut first = 0;
    for (index, (cpu, slots)) in (0..).zip(buffers) {
        let bytes = region(&text, &[(*cpu, slots.clone())]);
        let header = RegionHeader::parse(&bytes).unwrap();
        let place = BufferPlace::parse(&bytes[header.table_at as usize..]).unwrap();
        let buffer = &bytes[place.at as usize..];
        let (slots, subbufs) = buffer.split_at(header.slots_bytes(64).unwrap() as usize);
        let (slots_at, subbufs_at) = (BUFFERS + (index << 24), BUFFERS + (index << 24) + (1 << 20));
        pieces.0.insert(slots_at, slots.to_vec());
        for (n, subbuf) in (0..).zip(subbufs.chunks_exact(SUBBUF)) {
            pieces
                .0
                .insert(subbufs_at + n * SUBBUF as u64, subbuf.to_vec());
        }
        let at = ENTRIES + 4096 * index;
        let (size, count) = (header.subbuf_size, header.subbuf_count);
        let words = [
            first,
            TRACE,
            slots_at,
            subbufs_at,
            0,
            size,
            count,
            u64::from(*cpu),
        ];
        pieces.words(at, &words);
        let mut name = [0; NAME_MAX];
        name[..8].copy_from_slice(b"channel0");
        pieces.0.get_mut(&at).unwrap().extend(name);
        first = at;
    }
    pieces.0.insert(ROOT, MAGIC.to_vec());
    let root = pieces.0.get_mut(&ROOT).unwrap();
    root.extend(
        [ROOT, VERSION, first]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    root.resize(Root::SIZE, 0);
    pieces
}

fn two_buffers() -> Pieces {
    dump(&[
        (
            0,
            vec![
                Slot::Finished(packet(0, 4, 3)),
                Slot::Complete(packet(0, 5, 2)),
            ],
        ),
        (1, vec![Slot::Empty, Slot::Finished(packet(1, 0, 7))]),
    ])
}

/// Writes the one trace of a dump and reads it. Returns the events by file, and the damage.
fn read_back(mut dump: Pieces, dir: &Path) -> (BTreeMap<String, usize>, Vec<String>) {
    let mut found = dump::find(&mut dump).unwrap();
    let Some(trace) = found.traces.pop() else {
        return (BTreeMap::new(), found.damaged);
    };
    assert!(found.traces.is_empty());
    let written = trace.write(&mut dump, dir, Access::default()).unwrap();
    found.damaged.extend(written.damaged);
    let trace = Trace::open(dir).unwrap();
    let mut events = BTreeMap::new();
    for path in &trace.streams {
        let mut stream = StreamReader::open(path, &trace.metadata).unwrap();
        let mut count = 0;
        while let Some(packet) = stream.next_packet().unwrap() {
            count += packet.events().map(Result::unwrap).count();
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        events.insert(name.to_owned(), count);
    }
    (events, found.damaged)
}

fn events_of(dump: Pieces) -> (Vec<(String, usize)>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (events, damaged) = read_back(dump, &dir.path().join("trace"));
    (events.into_iter().collect(), damaged)
}

fn refusal(mut dump: Pieces) -> String {
    dump::find(&mut dump).unwrap_err().to_string()
}

#[test]
fn every_buffer_becomes_a_stream() {
    let (events, damaged) = events_of(two_buffers());
    let expected = [
        ("channel0_cpu0".to_owned(), 5),
        ("channel0_cpu1".to_owned(), 7),
    ];
    assert_eq!((events.as_slice(), damaged.len()), (expected.as_slice(), 0));
}

/// A snapshot makes the writer continue in a second bank of memory, and frees the first.
#[test]
fn slots_have_memory_of_two_banks() {
    // The sub-buffers of a bank: those of the slots, and the reader's.
    let (subbufs, second) = (BUFFERS + (1 << 20), BUFFERS + (1 << 22));
    let mut dump = two_buffers();
    let count = u64::from_le_bytes(dump.0[&ENTRIES][48..56].try_into().unwrap());
    for index in 0..=count {
        let subbuf = dump.0[&(subbufs + index * SUBBUF as u64)].clone();
        dump.0.insert(second + index * SUBBUF as u64, subbuf);
    }
    let move_slot = |dump: Pieces, slot: usize| {
        let at = 64 * slot + 32;
        let word = u64::from_le_bytes(dump.0[&BUFFERS][at..at + 8].try_into().unwrap());
        dump.change(BUFFERS, at, word + count + 1)
    };
    let moved = move_slot(dump.change(ENTRIES, 32, second), 0);
    assert_eq!(events_of(moved.clone()).0[0].1, 5);
    let moved = move_slot(moved, 1);
    assert_eq!(events_of(moved.clone()).0[0].1, 5);
    let freed = moved.clone().change(ENTRIES, 24, 0);
    assert_eq!(events_of(freed).0[0].1, 5);
    // Without that memory there are no packets.
    let (events, damaged) = events_of(moved.change(ENTRIES, 32, 0));
    assert_eq!(events.iter().map(|(_, count)| count).sum::<usize>(), 7);
    assert_eq!(damaged.len(), 2);
}

#[test]
fn traces_come_in_their_order_and_by_name() {
    let mut dump = two_buffers();
    let found = dump::find(&mut dump).unwrap();
    let [trace] = found.traces.as_slice() else {
        panic!("{} traces", found.traces.len());
    };
    assert_eq!(trace.uuid().into_bytes(), UUID);
    // A name that no file can have is ignored.
    let text = metadata(UUID, Layout::Large);
    let named = text.contains("trace_name");
    assert_eq!(trace.session().is_some(), named);
}

#[test]
fn what_is_no_root_is_refused() {
    assert!(refusal(Pieces::default()).contains("there is no rtrace"));
    // A copy at another address.
    let mut copied = two_buffers();
    let root = copied.0.remove(&ROOT).unwrap();
    copied.0.insert(ROOT + 4096, root.clone());
    assert!(refusal(copied).contains("there is no rtrace"));
    let other = two_buffers().change(ROOT, 24, VERSION + 1);
    assert!(refusal(other).contains(&format!("version {} of", VERSION + 1)));
    // A second copy beside it does no harm.
    let mut both = two_buffers();
    both.0.insert(ROOT + 4096, root);
    assert_eq!(events_of(both).0.len(), 2);
}

#[test]
fn what_the_dump_lacks_is_said_and_the_rest_is_there() {
    let (first, second) = (ENTRIES, ENTRIES + 4096);
    let (slots, subbuf) = (BUFFERS, BUFFERS + (1 << 20) + SUBBUF as u64);
    let events = |dump| {
        let (events, damaged) = events_of(dump);
        (
            events.iter().map(|(_, count)| count).sum::<usize>(),
            damaged.len(),
        )
    };
    assert_eq!(events(two_buffers()), (12, 0));
    // The list is interrupted: the rest of it cannot be found.
    assert_eq!(events(two_buffers().without(first)), (7, 1));
    assert_eq!(events(two_buffers().without(second)), (0, 1));
    assert_eq!(events(two_buffers().without(slots)), (7, 1));
    assert_eq!(events(two_buffers().without(subbuf)), (10, 1));
    for at in [TRACE, TEXT, BYTES] {
        assert_eq!(events(two_buffers().without(at)), (0, 1), "{at:x}");
    }
}

#[test]
fn nothing_is_believed() {
    let damaged = |dump| {
        let (events, damaged) = events_of(dump);
        assert!(events.iter().map(|(_, count)| count).sum::<usize>() < 12);
        assert!(!damaged.is_empty());
    };
    let last = ENTRIES + 4096;
    for (offset, word) in [
        (0, 8),
        (8, 8),
        (16, 8),
        (24, 8),
        (24, u64::MAX - 10),
        (40, 0),
        (40, 4095),
        (40, 1 << 63),
        (48, 0),
        (48, 3),
        (48, 1 << 62),
        (56, 9),
        (64, 0),
        (64, u64::from_le_bytes(*b"../../xx")),
    ] {
        damaged(two_buffers().change(last, offset, word));
    }
    for (offset, word) in [(0, 8), (8, u64::MAX), (8, 7), (16, 0)] {
        damaged(two_buffers().change(TEXT, offset, word));
    }
    damaged(two_buffers().change(TRACE, 0, 1));
    damaged(two_buffers().change(TRACE, 16, 0));
    // The list has no end.
    let (events, _) = events_of(two_buffers().change(ENTRIES, 0, last));
    assert_eq!(events.len(), 2);
    // A buffer was being made.
    let (events, damaged) = events_of(two_buffers().change(last, 24, 0));
    assert_eq!((events[1].1, damaged.len()), (0, 0));
}
