// SPDX-License-Identifier: GPL-2.0

//! Translates the packets of a stream. Packets are divided into parts, so that the memory of a reader does not depend
//! on their sizes.

use super::bits::{Bits, Fault};
use super::classes::{ClassPlan, TracePlan, MAGIC};
use super::machine::{Found, Machine};
use crate::{Chain, Content};
use ctf::{Damage, PacketAt, Packets};
use memchr::memmem;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use system::{regular_file, Error, Result};
use uuid::Uuid;

/// Bytes of a packet that are in memory at a time, unless an event is longer.
const WINDOW: usize = 1 << 17;

/// Bytes of a part, about.
const PART: usize = 1 << 16;

/// The multiple of bytes at which a window begins: that of the largest alignment.
const STEP: u64 = 1 << 9;

/// Bytes of a packet in which its header is looked for, if only its begin is needed.
const HEAD: usize = 1 << 9;

/// The maximum accepted length of an event.
const LONGEST: usize = 16 << 20;

/// A stream: the files with its packets, in order.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The translation of its trace.
    pub trace: Arc<TracePlan>,
    /// Its files.
    pub files: Vec<PathBuf>,
    /// The number of its class in rtrace's description.
    pub class: u32,
    /// The number of the stream in its class.
    pub instance: u64,
    /// Its CPU.
    pub cpu: u32,
    /// The id of the trace in rtrace's description.
    pub uuid: Uuid,
}

/// Reads a stream.
#[derive(Debug)]
pub struct StreamPackets {
    plan: StreamPlan,
    machine: Machine,
    chain: Chain,
    content: Content,
    /// Values of the packet that each of its events has before its own contexts.
    prefix: Vec<u8>,
    file: Option<OpenFile>,
    /// The number of the next file.
    next_file: usize,
    /// The sum of the sizes of the files before the open one.
    base: u64,
    packet: Option<Open>,
    /// Parts before this offset are left out.
    from: u64,
    window: Window,
    /// The number of the next packet, if the packets have numbers.
    number: Option<u64>,
    /// The number of discarded events at the end of the last packet.
    discarded: u64,
    /// The damage after the last part.
    damage: Option<Damage>,
}

/// An open file.
#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    length: u64,
    /// The offset of the next packet.
    next: u64,
}

/// A packet that is being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Its class, as an index.
    class: usize,
    /// Its begin in the file.
    offset: u64,
    /// Its size in bytes.
    size: u64,
    /// The bit after its last event.
    end: u64,
    /// The bit of its next event.
    at: u64,
    /// Its times by the trace's clock.
    begin: Option<u64>,
    until: Option<u64>,
    /// Whether events were lost in it: then it is not divided, because their place is not known.
    is_lossy: bool,
    /// Whether a part of it was returned.
    is_begun: bool,
}

/// Bytes of the packet.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    /// The offset in the file of the first one.
    begin: u64,
}

impl Window {
    /// Whether it has a byte of the packet at `packet`.
    #[inline]
    fn has(&self, packet: u64, byte: u64) -> bool {
        self.begin >= packet && self.begin <= byte && byte < self.end()
    }

    /// The offset in the file after the last byte.
    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    /// Loads bytes of a file from `begin` up to `end`, at most `most`.
    fn load(&mut self, file: &File, begin: u64, end: u64, most: usize) -> std::io::Result<()> {
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
fn head_at(trace: &TracePlan, file: &OpenFile, offset: u64) -> Option<Head> {
    let mut window = Window::default();
    window.load(&file.file, offset, file.length, HEAD).ok()?;
    let mut machine = Machine::new(trace.places);
    let left = file.length - offset;
    head(trace, &mut machine, &window.bytes, left, &mut Vec::new()).ok()
}

/// The offset of the first packet after `offset`, or the end of the file. A packet there begins with the magic number,
/// and has a header that fits.
fn packet_after(trace: &TracePlan, own: u32, file: &OpenFile, offset: u64) -> u64 {
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
fn head(
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

impl StreamPackets {
    /// Opens a stream before its first packet.
    pub fn new(plan: StreamPlan) -> Self {
        Self {
            machine: Machine::new(plan.trace.places),
            chain: Chain::new(plan.uuid, plan.class, plan.instance, plan.cpu),
            content: Content::default(),
            prefix: Vec::new(),
            file: None,
            next_file: 0,
            base: 0,
            packet: None,
            from: 0,
            window: Window::default(),
            number: None,
            discarded: 0,
            damage: None,
            plan,
        }
    }

    /// Opens the next file. Returns whether there is one.
    fn open_next(&mut self) -> std::result::Result<bool, Damage> {
        self.base += self.file.take().map_or(0, |file| file.length);
        let Some(path) = self.plan.files.get(self.next_file).cloned() else {
            return Ok(false);
        };
        self.next_file += 1;
        let opened = regular_file::open(&path).and_then(|file| {
            let length = file.metadata()?.len();
            Ok((file, length))
        });
        let (file, length) = opened.map_err(|cause| Damage {
            path: path.clone(),
            offset: 0,
            bytes: 0,
            what: format!("cannot read: {cause}"),
        })?;
        self.file = Some(OpenFile {
            file,
            path,
            length,
            next: 0,
        });
        Ok(true)
    }

    /// Opens the next packet. Returns whether there is one.
    fn open_packet(&mut self) -> std::result::Result<bool, Damage> {
        loop {
            match &self.file {
                Some(file) if file.next < file.length => break,
                _ => {
                    if !self.open_next()? {
                        return Ok(false);
                    }
                }
            }
        }
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let (offset, left) = (file.next, file.length - file.next);
        let loaded = self.window.load(&file.file, offset, file.length, WINDOW);
        let head = loaded
            .map_err(|cause| format!("cannot read: {cause}"))
            .and_then(|()| {
                head(
                    &self.plan.trace,
                    &mut self.machine,
                    &self.window.bytes,
                    left,
                    &mut self.prefix,
                )
            })
            .and_then(|head| match head.size <= left {
                true => Ok(head),
                false => Err("a packet that ends after the end of the file".to_owned()),
            })
            .and_then(
                |head| match self.plan.trace.classes[head.class].own == self.plan.class {
                    true => Ok(head),
                    false => Err("a packet of another stream class".to_owned()),
                },
            );
        let head = match head {
            Ok(head) => head,
            Err(what) => {
                file.next = packet_after(&self.plan.trace, self.plan.class, file, offset);
                return Err(Damage {
                    path: file.path.clone(),
                    offset,
                    bytes: file.next - offset,
                    what,
                });
            }
        };
        file.next = offset + head.size;
        let found = head.found;
        let class = &self.plan.trace.classes[head.class];
        // The clock of a packet begins anew.
        self.machine.now = found.begin.unwrap_or(0);
        if let Some(number) = found.number {
            let expected = self.number.unwrap_or(0);
            self.chain.lost_packets(number.saturating_sub(expected));
            self.number = Some(number + 1);
        }
        let mut is_lossy = false;
        if let Some((discarded, bits)) = found.discarded {
            let mut lost = discarded.saturating_sub(self.discarded);
            // The counter of a 32-bit kernel wraps.
            if discarded < self.discarded && bits < 64 {
                let wrapped = discarded.wrapping_sub(self.discarded) & ((1 << bits) - 1);
                lost = if wrapped < 1 << (bits - 1) {
                    wrapped
                } else {
                    0
                };
            }
            self.discarded = discarded;
            self.chain.lost_events(lost);
            is_lossy = lost > 0;
        }
        self.packet = Some(Open {
            class: head.class,
            offset,
            size: head.size,
            end: head.end,
            at: head.at,
            begin: found.begin.map(|time| class.time(time)),
            until: found.end.map(|time| class.time(time)),
            is_lossy,
            is_begun: false,
        });
        Ok(true)
    }

    /// Translates the next part of the open packet. Returns it with the damage that follows it.
    fn part(&mut self) -> Option<(PacketAt, Option<Damage>)> {
        let (file, mut packet) = (self.file.as_ref()?, self.packet.take()?);
        let class = &self.plan.trace.classes[packet.class];
        let (content, window) = (&mut self.content, &mut self.window);
        let first_byte = if packet.is_begun { packet.at / 8 } else { 0 };
        let mut begin = match packet.begin {
            Some(begin) if !packet.is_begun => begin.max(self.chain.end()),
            _ => self.chain.end(),
        };
        content.start(begin);
        let file_end = packet.offset + packet.end.div_ceil(8);
        let mut most = WINDOW;
        let mut damage = None;
        while packet.at < packet.end && (content.bytes.len() < PART || packet.is_lossy) {
            let byte = packet.offset + packet.at / 8;
            if !window.has(packet.offset, byte) {
                let from = packet.offset + packet.at / 8 / STEP * STEP;
                if let Err(cause) = window.load(&file.file, from, file_end, most) {
                    damage = Some(format!("cannot read: {cause}"));
                    break;
                }
            }
            let offset = 8 * (window.begin - packet.offset);
            let end = (packet.end - offset) as usize;
            let mut bits = Bits::new(&window.bytes, (packet.at - offset) as usize, end);
            let (before, now, clock) = (content.bytes.len(), content.now(), self.machine.now);
            // The first event of a packet without a known begin, or with a wrong one.
            let earliest = match before {
                0 if !packet.is_begun => Some((self.chain.end(), packet.begin.is_none())),
                _ => None,
            };
            let translated = event(
                class,
                &mut self.machine,
                content,
                &self.prefix,
                &mut bits,
                earliest,
            );
            let fault = match translated {
                Ok(time) => {
                    let next = offset + bits.at() as u64;
                    if before == 0 && !packet.is_begun && (packet.begin.is_none() || time < begin) {
                        begin = time;
                    }
                    if next == packet.at {
                        damage = Some("an event without a bit".to_owned());
                        break;
                    }
                    packet.at = next;
                    continue;
                }
                Err(fault) => fault,
            };
            content.undo(before, now);
            self.machine.now = clock;
            let is_short = matches!(fault, Fault::Short);
            if is_short && window.end() < file_end && most < LONGEST {
                // The event continues after the window.
                if window.begin / STEP == byte / STEP || window.bytes.len() >= most {
                    most *= 2;
                }
                window.bytes.clear();
                continue;
            }
            damage = Some(match fault {
                Fault::Bad(what) => what,
                Fault::Short if window.end() < file_end => {
                    format!("an event of more than {LONGEST} bytes")
                }
                Fault::Short => "the packet ends within an event".to_owned(),
            });
            break;
        }
        let is_over = packet.at >= packet.end || damage.is_some();
        let end_byte = if is_over { packet.size } else { packet.at / 8 };
        let until = match packet.until {
            Some(until) if is_over && damage.is_none() => until,
            _ => content.now(),
        };
        // An interrupted writer may close a packet after the begin of the next one.
        let until = match is_over {
            true => {
                let next = head_at(&self.plan.trace, file, file.next);
                let next = next.and_then(|head| head.found.begin);
                next.map_or(until, |next| until.min(class.time(next)))
            }
            false => until,
        };
        let until = until.max(content.now());
        let from = self.base + packet.offset;
        let bytes = from + first_byte..from + end_byte;
        let at = self.chain.packet(begin..until, content.bytes.len(), bytes);
        let damage = damage.map(|what| {
            let offset = packet.offset + packet.at / 8;
            Damage {
                path: file.path.clone(),
                offset,
                bytes: (packet.offset + packet.size).saturating_sub(offset),
                what,
            }
        });
        packet.is_begun = true;
        if !is_over {
            self.packet = Some(packet);
        }
        Some((at, damage))
    }
}

impl Packets for StreamPackets {
    fn next(&mut self, content: &mut Vec<u8>) -> std::result::Result<Option<PacketAt>, Damage> {
        loop {
            if let Some(damage) = self.damage.take() {
                return Err(damage);
            }
            if self.packet.is_none() && !self.open_packet()? {
                return Ok(None);
            }
            self.content.bytes = std::mem::take(content);
            let part = self.part();
            *content = std::mem::take(&mut self.content.bytes);
            let Some((at, damage)) = part else {
                return Ok(None);
            };
            self.damage = damage;
            if at.offset >= self.from {
                return Ok(Some(at));
            }
        }
    }

    fn seek(&mut self, offset: u64) -> Result<()> {
        *self = Self::new(self.plan.clone());
        self.from = offset;
        // Whole packets before it need no translation.
        loop {
            match self.open_packet() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(_) => continue,
            }
            let is_before = |packet: &Open| self.base + packet.offset + packet.size <= offset;
            if !self.packet.as_ref().is_some_and(is_before) {
                return Ok(());
            }
            let end = self.packet.take().and_then(|packet| packet.until);
            self.chain.pass(end.unwrap_or(0));
        }
    }
}

/// Translates an event. Returns its time. `earliest`: the first event of a packet may
/// begin it anew, at a time from this one on, and does so if the packet has no known begin.
#[inline]
fn event(
    class: &ClassPlan,
    machine: &mut Machine,
    content: &mut Content,
    prefix: &[u8],
    bits: &mut Bits<'_>,
    earliest: Option<(u64, bool)>,
) -> std::result::Result<u64, Fault> {
    machine.found.id = None;
    class.header.read(machine, bits, &mut content.bytes)?;
    let id = machine.found.id;
    let place = match id {
        Some(id) => class.event(id),
        None => (class.events.len() == 1).then_some(0),
    };
    let unknown = || Fault::Bad(format!("an event of unknown id {}", id.unwrap_or(0)));
    let place = place.ok_or_else(unknown)?;
    let time = class.time(machine.now);
    if let Some((earliest, is_unknown)) = earliest {
        if time >= earliest && (is_unknown || time < content.now()) {
            content.start(time);
        }
    }
    if time < content.now() {
        let before = content.now();
        return Err(Fault::Bad(format!(
            "an event at clock {time}, before {before}"
        )));
    }
    content.event(place, time);
    content.bytes.extend_from_slice(prefix);
    machine.run(&class.context, bits, &mut content.bytes)?;
    let event = &class.events[place as usize];
    machine.run(&event.steps, bits, &mut content.bytes)?;
    Ok(time)
}
