// SPDX-License-Identifier: GPL-2.0

//! The files of a stream, and the headers of the packets in them.

use super::bits::{Bits, Fault};
use super::classes::{TracePlan, MAGIC};
use super::machine::{Found, Machine};
use memchr::memmem;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::{regular_file, Error, Result};

/// Bytes of a packet that are in memory at a time, unless an event is longer.
pub const WINDOW: usize = 1 << 17;

/// Bytes of a packet in which its header is looked for, if only its begin is needed.
const HEAD: usize = 1 << 9;

/// An open file.
#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    pub path: PathBuf,
    pub length: u64,
    /// The offset of the next packet.
    pub next: u64,
}
/// Bytes of the packet.
#[derive(Debug, Default)]
pub struct Window {
    pub bytes: Vec<u8>,
    /// The offset in the file of the first one.
    pub begin: u64,
}

impl Window {
    /// Whether it has a byte of the packet at `packet`.
    #[inline]
    pub fn has(&self, packet: u64, byte: u64) -> bool {
        self.begin >= packet && self.begin <= byte && byte < self.end()
    }

    /// The offset in the file after the last byte.
    pub fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    /// Loads bytes of a file from `begin` up to `end`, at most `most`.
    pub fn load(&mut self, file: &File, begin: u64, end: u64, most: usize) -> std::io::Result<()> {
        let length = (end.saturating_sub(begin)).min(most as u64) as usize;
        self.bytes.resize(length, 0);
        self.begin = begin;
        let read = file.read_exact_at(&mut self.bytes, begin);
        read.inspect_err(|_| self.bytes.clear())
    }
}

/// The header of a packet, as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The index of its class.
    pub class: usize,
    /// The values in it.
    pub found: Found,
    /// Its size in bytes.
    pub size: u64,
    /// The number of bits up to its padding.
    pub end: u64,
    /// The bit of its first event.
    pub at: u64,
}

/// The head of the first packet of a file. [`None`]: the file has no readable packet.
pub fn first(trace: &TracePlan, path: &Path) -> Result<Option<Head>> {
    let file = regular_file::open(path).map_err(Error::read(path))?;
    let length = file.metadata().map_err(Error::read(path))?.len();
    let mut window = Window::default();
    let loaded = window.load(&file, 0, length, WINDOW);
    loaded.map_err(Error::read(path))?;
    let mut machine = Machine::new(trace.places);
    Ok(head(trace, &mut machine, &window.bytes, length, &mut Vec::new()).ok())
}

/// The head of the packet at an offset, if it can be read.
pub fn head_at(trace: &TracePlan, file: &OpenFile, offset: u64) -> Option<Head> {
    let mut window = Window::default();
    window.load(&file.file, offset, file.length, HEAD).ok()?;
    let mut machine = Machine::new(trace.places);
    let left = file.length - offset;
    head(trace, &mut machine, &window.bytes, left, &mut Vec::new()).ok()
}

/// The offset of the first packet after `offset`, or the end of the file. A packet there begins with the magic number,
/// and has a header that fits.
pub fn packet_after(trace: &TracePlan, own: u32, file: &OpenFile, offset: u64) -> u64 {
    let Some(magic) = trace.magic else {
        return file.length;
    };
    let is_packet = |begin: &u64| {
        let head = head_at(trace, file, *begin);
        head.is_some_and(|head| {
            head.size <= file.length - begin && trace.classes[head.class].own == own
        })
    };
    let mut window = Window::default();
    let mut begin = offset + 1;
    while window.load(&file.file, begin, file.length, WINDOW).is_ok() {
        let places = memmem::find_iter(&window.bytes, &magic);
        let mut packets = places.map(|place| begin + place as u64).filter(is_packet);
        if let Some(packet) = packets.next() {
            return packet;
        }
        if window.end() >= file.length {
            break;
        }
        begin = window.end() - (magic.len() as u64 - 1);
    }
    file.length
}

/// Reads the head of a packet whose file ends after `left` bytes.
pub fn head(
    trace: &TracePlan,
    machine: &mut Machine,
    bytes: &[u8],
    left: u64,
    prefix: &mut Vec<u8>,
) -> std::result::Result<Head, String> {
    machine.found = Found::default();
    prefix.clear();
    let mut bits = Bits::new(bytes, 0, usize::MAX);
    let text = |fault| match fault {
        Fault::Short => "the file ends within the header of a packet".to_owned(),
        Fault::Bad(what) => what,
    };
    machine
        .run(&trace.packet_header, &mut bits, &mut Vec::new())
        .map_err(text)?;
    let found = machine.found;
    if trace.magic.is_some() && found.magic != Some(MAGIC.into()) {
        let magic = found.magic.unwrap_or(0);
        return Err(format!(
            "no packet begins here (magic {magic:#010x}, expected {MAGIC:#010x})"
        ));
    }
    if let (Some(expected), Some(own)) = (trace.uuid, found.uuid) {
        if expected != own {
            return Err(format!("a packet of another trace ({own})"));
        }
    }
    let class = match found.class {
        Some(id) => trace.classes.iter().position(|class| class.id == id),
        None => (!trace.classes.is_empty()).then_some(0),
    };
    let unknown = || {
        format!(
            "a packet of an unknown stream class {}",
            found.class.unwrap_or(0)
        )
    };
    let class = class.ok_or_else(unknown)?;
    machine
        .run(&trace.classes[class].packet_context, &mut bits, prefix)
        .map_err(text)?;
    let found = machine.found;
    let size = found.size.map_or(left.saturating_mul(8), |size| size);
    let end = found.content.unwrap_or(size);
    let at = bits.at() as u64;
    if size % 8 != 0 || size == 0 {
        return Err(format!("a packet of {size} bits"));
    }
    if end > size {
        return Err(format!("{end} bits of content in a packet of {size}"));
    }
    if end < at {
        return Err(format!(
            "{end} bits of content, less than the {at} bits of the packet's header"
        ));
    }
    Ok(Head {
        class,
        found,
        size: size / 8,
        end,
        at,
    })
}
