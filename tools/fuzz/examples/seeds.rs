// SPDX-License-Identifier: GPL-2.0

//! Writes the first inputs of every target, sound and small, into the folder given: for a
//! corpus from scratch, when a format has changed.

use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use std::path::Path;
use std::{env, fs, io};
use synthetic::{metadata, PacketBuilder, UUID};

const LAYOUTS: [Layout; 2] = [Layout::Compact, Layout::Large];

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).expect("usage: seeds DIR");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    };
    for (byte, layout) in (0..).zip(LAYOUTS) {
        let name = format!("{layout:?}").to_lowercase();
        let text = metadata(UUID, layout);
        let stream = stream(layout);
        let first = &stream[PacketHeader::SIZE..512];
        write("metadata", &name, text.as_bytes())?;
        write("packets", &name, &[&[byte], stream.as_slice()].concat())?;
        let begin = (1_u64 << 40).to_le_bytes();
        write("events", &name, &[&[byte][..], &begin, first].concat())?;
        write("trace", &name, &[text.as_bytes(), &[0], first].concat())?;
    }
    write("description", "letters", &[b'a'; 400])?;
    write("patterns", "stars", b"s*:*_en?ry\0syscalls:sys_entry")?;
    write("patterns", "several", b"!a:b c !d\0a:b")?;
    write(
        "patterns",
        "class",
        b"[a-ch-s]*:*[!]_x-z]\\_?[0]\0irq:irq_softirq_x0",
    )?;
    write("patterns", "system", b"sched\0sched:sched_switch")?;
    write("sizes", "buffer", b"64Kx8")?;
    write("sizes", "largest", b"1Mx9223372036854775808")?;
    write("sizes", "size", b"4G")?;
    write("sizes", "switch", b"1")?;
    write("sizes", "uuid", b"00112233-4455-6677-8899-aabbccddeeff")?;
    let stats = "cpu recorded full nested packets\n0 10 1 2 3\n1 0 0 0 0\ntotal 10 1 2 3\n";
    write("stats", "table", stats.as_bytes())?;
    let stats = format!("cpu recorded full nested\ntotal {0} {0} {0}\n", u64::MAX);
    write("stats", "largest", stats.as_bytes())
}

fn stream(layout: Layout) -> Vec<u8> {
    let begin = 1 << 40;
    let one = PacketBuilder::new(layout, 0, 0, begin)
        .switch(begin + 5, (0, "swapper/0"), (7, "make"))
        .exec(begin + 6, "/bin/true", 7)
        .close(begin + 9, 512);
    let two = PacketBuilder::new(layout, 0, 1, begin + 10)
        .softirq(begin + 10, 3)
        .read(begin + 11, 0xffff_8000_0000_0000)
        .event(synthetic::FAR, begin + 11, &[])
        .discarded(3)
        .close(begin + 12, 512);
    [one, two].concat()
}
