// SPDX-License-Identifier: GPL-2.0

//! Translates the packets of a stream. Packets are divided into parts, so that the memory of a reader does not depend
//! on their sizes.

use super::bits::{Bits, Fault};
use super::classes::{ClassPlan, TracePlan};
use super::head::{head, head_at, packet_after, OpenFile, Window, WINDOW};
use super::machine::Machine;
use crate::{Chain, Content};
use ctf::{Damage, FoundEvent, PacketAt, Packets};
use std::path::PathBuf;
use std::sync::Arc;
use system::{regular_file, Result};
use uuid::Uuid;

/// Bytes of a part, about.
const PART: usize = 1 << 16;

/// The multiple of bytes at which a window begins: that of the largest alignment.
const STEP: u64 = 1 << 9;

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
            self.number = Some(number.saturating_add(1));
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
        let mut is_short = false;
        let mut damage = None;
        while packet.at < packet.end && (content.bytes.len() < PART || packet.is_lossy) {
            let byte = packet.offset + packet.at / 8;
            if is_short || !window.has(packet.offset, byte) {
                let from = packet.offset + packet.at / 8 / STEP * STEP;
                // The window that is too short begins at the event.
                if is_short && window.begin == from {
                    most *= 2;
                }
                is_short = false;
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
            // The event continues after the window.
            is_short = matches!(fault, Fault::Short) && window.end() < file_end && most < LONGEST;
            if is_short {
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
    fn next(
        &mut self,
        content: &mut Vec<u8>,
        events: &mut Vec<FoundEvent>,
    ) -> std::result::Result<Option<PacketAt>, Damage> {
        loop {
            if let Some(damage) = self.damage.take() {
                return Err(damage);
            }
            if self.packet.is_none() && !self.open_packet()? {
                return Ok(None);
            }
            let part = self.part();
            self.content.exchange(content, events);
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
    content.payload();
    let event = &class.events[place as usize];
    machine.run(&event.steps, bits, &mut content.bytes)?;
    Ok(time)
}
