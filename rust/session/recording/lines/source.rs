// SPDX-License-Identifier: GPL-2.0

//! Reads one stream record by record.

use super::pending::PendingText;
use crate::abi::line::{self, NoLine};
use crate::abi::packet::PacketHeader;
use crate::abi::records::{RecordHeader, Records};
use crate::channel::reader::StreamReader;
use crate::session::recording::described::Described;
use crate::session::{EventNumbers, HiddenAddresses, TraceChannel};
use crate::sys::errno::enodata;
use crate::sys::wait::PollTable;
use core::fmt::Write;
use core::mem::offset_of;
use core::num::NonZeroU64;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A stream that is being read.
pub(super) struct LineSource {
    reader: StreamReader<HiddenAddresses>,
    channel: Arc<TraceChannel>,
    cpu: u32,
    held: Option<Held>,
    /// Whether the stream has ended.
    ended: bool,
    /// Whether no packet was left at the last attempt of this round.
    dry: bool,
}

/// The packet that is held.
struct Held {
    /// The events whose records the packet may have.
    numbers: Arc<EventNumbers>,
    /// Time of the next item.
    time: u64,
    next: Next,
}

/// The next item of a packet.
enum Next {
    /// Records were lost: in overwritten packets, or `discarded` single ones.
    Lost {
        overwritten: bool,
        discarded: u64,
    },
    Record(RecordHeader),
    /// The rest of the packet cannot be parsed.
    Malformed,
    End,
}

impl LineSource {
    /// Opens the stream of `cpu`. Errors are those of the opening.
    pub(super) fn open(channel: &Arc<TraceChannel>, cpu: u32, hides: bool) -> Result<Self> {
        let censor = hides.then(|| HiddenAddresses(channel.clone()));
        Ok(Self {
            reader: StreamReader::new(channel.buffers()?, cpu, censor)?,
            channel: channel.clone(),
            cpu,
            held: None,
            ended: false,
            dry: false,
        })
    }

    /// Whether this is the stream of `cpu` in `channel`.
    pub(super) fn is_of(&self, channel: &Arc<TraceChannel>, cpu: u32) -> bool {
        self.cpu == cpu && Arc::ptr_eq(&self.channel, channel)
    }

    /// Whether the stream has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Closes the open packet, and looks for packets again. May sleep.
    pub(super) fn flush(&mut self) -> Result {
        self.dry = false;
        self.reader.flush()
    }

    /// Events for poll(2).
    pub(super) fn poll(&self, file: &File, table: &PollTable<'_>) -> u32 {
        self.reader.poll(file, table)
    }

    /// Time of the next item. [`None`]: there is none now. May sleep.
    pub(super) fn time(&mut self) -> Result<Option<u64>> {
        while !self.dry && !self.ended {
            if let Some(held) = &self.held {
                return Ok(Some(held.time));
            }
            match self.reader.get() {
                Ok(taken) => self.begin(taken.packet.sequence)?,
                Err(EAGAIN) => self.dry = true,
                Err(error) if error == enodata() => self.ended = true,
                Err(error) => return Err(error),
            }
        }
        Ok(self.held.as_ref().map(|held| held.time))
    }

    /// Begins a packet that was taken.
    fn begin(&mut self, sequence: u64) -> Result {
        let seen = self.reader.seen()?;
        let (time, discarded) = self.reader.look(|packet| {
            let word = |at: usize| {
                let bytes = packet.get(at..at.wrapping_add(8));
                bytes
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(0, u64::from_le_bytes)
            };
            (
                word(offset_of!(PacketHeader, timestamp_begin)),
                word(offset_of!(PacketHeader, events_discarded)),
            )
        })?;
        let overwritten = sequence != seen.next;
        let discarded = discarded.wrapping_sub(seen.discarded);
        let next = if overwritten || discarded != 0 {
            Next::Lost {
                overwritten,
                discarded,
            }
        } else {
            self.look_at(PacketHeader::SIZE, time)?
        };
        let numbers = self.channel.numbers();
        self.hold(numbers, time, next)
    }

    /// The item at offset `at` of the held packet, after an item with time `before`.
    fn look_at(&self, at: usize, before: u64) -> Result<Next> {
        let layout = self.channel.layout;
        self.reader.look(|packet| {
            if at == packet.len() {
                return Next::End;
            }
            match RecordHeader::read(packet, at, layout, before) {
                Ok(header) => Next::Record(header),
                Err(_) => Next::Malformed,
            }
        })
    }

    /// Continues in the held packet, or returns it at its end.
    fn hold(&mut self, numbers: Arc<EventNumbers>, before: u64, next: Next) -> Result {
        let time = match &next {
            Next::Record(header) => header.time,
            Next::Lost { .. } | Next::Malformed => before,
            Next::End => {
                self.held = None;
                return self.reader.put();
            }
        };
        self.held = Some(Held {
            numbers,
            time,
            next,
        });
        Ok(())
    }

    /// Writes the line of the next item, and moves to the item after it. On failure (`ENOMEM`) the item is
    /// written again later, and a part of it may have been written. May sleep.
    pub(super) fn write(&mut self, out: &mut PendingText, frequency: NonZeroU64) -> Result {
        let (cpu, whole) = (self.cpu, out.len());
        let Some(held) = &self.held else {
            return Ok(());
        };
        let next = match &held.next {
            Next::Lost {
                overwritten,
                discarded,
            } => {
                if *overwritten {
                    // The number of records in overwritten packets is unknown for a single gap.
                    writeln!(out, "CPU:{cpu} [LOST EVENTS]").map_err(|_| ENOMEM)?;
                }
                if *discarded != 0 {
                    writeln!(out, "CPU:{cpu} [LOST {discarded} EVENTS]").map_err(|_| ENOMEM)?;
                }
                self.look_at(PacketHeader::SIZE, held.time)?
            }
            Next::Record(header) => {
                let described = Described {
                    channel: &self.channel,
                    numbers: &held.numbers,
                };
                let write = |packet: &[u8]| described.write(out, packet, *header, cpu, frequency);
                match self.reader.look(write)? {
                    Ok(end) => self.look_at(end, held.time)?,
                    Err(NoLine::Malformed) => {
                        out.truncate(whole);
                        Next::Malformed
                    }
                    Err(NoLine::NoRoom) => return Err(ENOMEM),
                }
            }
            Next::Malformed => {
                let written = writeln!(out, "CPU:{cpu} [A PACKET THAT CANNOT BE READ]");
                written.map_err(|_| ENOMEM)?;
                Next::End
            }
            Next::End => Next::End,
        };
        let (numbers, time) = (held.numbers.clone(), held.time);
        self.hold(numbers, time, next)
    }
}

impl Described<'_> {
    /// Writes the line of a record. Returns the offset of the record's end.
    fn write(
        &self,
        out: &mut dyn Write,
        packet: &[u8],
        header: RecordHeader,
        cpu: u32,
        frequency: NonZeroU64,
    ) -> Result<usize, NoLine> {
        let name = self.name(header.number).ok_or(NoLine::Malformed)?;
        let event = line::LineEvent {
            name,
            cpu,
            header,
            frequency,
        };
        let context = |place| self.context(place);
        let field = |place| self.field(header.number, place);
        line::write(out, packet, &event, context, field)
    }
}
