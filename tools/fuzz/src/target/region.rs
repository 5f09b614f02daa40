// SPDX-License-Identifier: GPL-2.0

//! Reserved memory after the end of its kernel. The bytes change a valid region. Each ten bytes are the place
//! of a word, in the buffer, the table or the header, and its new value. Then the header's checksum is
//! corrected. The reader accepts each stream that is found.

use super::packets::metadata;
use ctf::PacketAt;
use recovery::region::Region;
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use rtrace_abi::region::RegionHeader;
use std::sync::LazyLock;
use synthetic::{region, PacketBuilder, Slot, UUID};

/// The description of the records in the region, without the other events. No change reaches those, and their
/// parsing would take most of the time.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    synthetic::metadata(UUID, Layout::Large)
        .split_inclusive("\n};\n")
        .filter(|part| !part.contains("event {\n") || part.contains("\"irq_softirq_entry\""))
        .collect()
});

static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let packet = |sequence| {
        let begin = 1000 * sequence;
        let packet = PacketBuilder::new(Layout::Large, 3, sequence, begin);
        (0..9).fold(packet, |packet, n| packet.softirq(begin + n, 1))
    };
    let slots = vec![
        Slot::Finished(packet(4).close(4999, 4096)),
        Slot::Open(packet(5).close(0, 4096), 84 + 4 * 10, 4),
    ];
    region(&TEXT, &[(3, slots)])
});

pub fn check(data: &[u8]) {
    let mut bytes = SOUND.clone();
    for change in data.chunks_exact(10) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        // The buffer is in the last bytes, the table and the header are in the first.
        let at = match place {
            0..0x4000 => bytes.len() - 0x4000 + place.min(0x3ff8),
            place => place % 0x2000,
        };
        bytes[at..at + 8].copy_from_slice(&change[2..]);
    }
    // The header with the checksum of its changed fields.
    if let Some(header) = resealed(&bytes) {
        bytes[..RegionHeader::SIZE].copy_from_slice(&header.to_bytes());
    }
    let Ok(region) = Region::parse(&bytes) else {
        return;
    };
    assert_eq!(region.metadata(), *TEXT);
    for stream in region.streams().values() {
        let mut end = 0;
        for packet in &stream.packets {
            let at = PacketAt {
                offset: 0,
                header: packet.header,
            };
            assert!(at.header.timestamp_begin >= end);
            assert!(at.header.timestamp_end >= at.header.timestamp_begin);
            assert_eq!(
                at.content() as usize,
                PacketHeader::SIZE + packet.events.len()
            );
            assert!(at.content() <= at.size() && at.size() <= bytes.len() as u64);
            assert!(metadata(Layout::Large)
                .stream(at.header.stream_id)
                .is_some());
            end = at.header.timestamp_end;
        }
    }
}

/// The header with a correct checksum.
fn resealed(bytes: &[u8]) -> Option<RegionHeader> {
    let mut sealed = bytes.get(..RegionHeader::SIZE)?.to_vec();
    let (fields, sum) = sealed.split_at_mut(RegionHeader::SIZE - 8);
    sum.copy_from_slice(&rtrace_abi::region::checksum(fields).to_le_bytes());
    RegionHeader::parse(&sealed).ok()
}
