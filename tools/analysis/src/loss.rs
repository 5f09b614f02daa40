// SPDX-License-Identifier: GPL-2.0

//! What is missing in a trace, where it is missing.

use crate::losses::{Damages, Losses};
use crate::summary::{Content, Earlier};
use consumer::State;
use ctf::{Damage, Packet};
use std::fmt;
use std::path::Path;
use store::{Recording, Trace};

/// Counts what streams have, and says what they lack.
#[derive(Debug, Default)]
pub struct Lost {
    recording: Option<Recording>,
    /// What is known of each stream, by number: what it has, and what was before, if it was recorded in
    /// a file.
    streams: Vec<(Content, Option<Earlier>)>,
    damages: Damages,
}

/// Line among the events where bytes are damaged.
pub const DAMAGED: &str = "DAMAGED: events are missing";

/// Events and packets missing at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The CPU of which it is.
    pub cpu: u32,
    /// Events.
    pub events: u64,
    /// Packets, and what was in them.
    pub packets: u64,
}

impl Missing {
    /// Whether it is anything.
    pub fn any(self) -> bool {
        self.events > 0 || self.packets > 0
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            events,
            packets,
        } = self;
        match packets {
            0 => write!(f, "LOST {events} events on CPU {cpu}"),
            _ if *events == 0 => write!(f, "LOST {packets} packets on CPU {cpu}"),
            _ => write!(f, "LOST {events} events and {packets} packets on CPU {cpu}"),
        }
    }
}

impl Lost {
    /// Of a trace that was recorded.
    pub fn of(trace: &Trace) -> Self {
        let recording = trace.recording.as_ref();
        let files = trace.streams_by_name();
        let earlier = files.map(|files| Some(Earlier::of(recording, &files[0])));
        Self {
            recording: trace.recording.clone(),
            damages: Damages::of(trace),
            streams: earlier
                .map(|earlier| (Content::default(), earlier))
                .collect(),
        }
    }

    /// A packet was read: what is missing before its end.
    pub fn packet(&mut self, number: usize, packet: &Packet<'_>) -> Missing {
        if self.streams.len() <= number {
            self.streams.resize(number + 1, Default::default());
        }
        let (content, earlier) = &mut self.streams[number];
        let before = *content;
        // Without files nothing of the stream was read before.
        let earlier = earlier.unwrap_or_else(|| Earlier::of(None, Path::new("")));
        let is_first = before.packets == 0;
        content.add_packet(packet, is_first.then_some(earlier));
        let packets = |content: &Content| {
            content.packets_lost + content.packets_before + content.packets_damaged
        };
        Missing {
            cpu: packet.at.header.cpu_id,
            events: content.lost - before.lost,
            packets: packets(content) - packets(&before),
        }
    }

    /// An event was read.
    pub fn event(&mut self, number: usize) {
        if let Some((content, _)) = self.streams.get_mut(number) {
            content.events += 1;
        }
    }

    /// A place of a stream is damaged.
    pub fn damage(&mut self, damage: &Damage) {
        self.damages.add(damage.clone());
    }

    /// Whether the end of a stream, with so many bytes of a packet that is not whole, came before that
    /// of the trace.
    pub fn is_cut(&self, partial: u64) -> bool {
        let state = self.recording.as_ref().map(|recording| recording.state);
        partial > 0 || matches!(state, Some(State::Writing | State::Failed))
    }

    /// Whether anything is missing.
    pub fn any(&self) -> bool {
        let all = self.all();
        all.lost > 0 || all.packets_lost > 0 || all.packets_before > 0 || !self.damages.is_empty()
    }

    /// What the whole trace has and lacks.
    pub fn total(&self) -> Losses {
        Losses::new(&self.all(), self.recording.as_ref(), self.damages.clone())
    }

    fn all(&self) -> Content {
        let mut all = Content::default();
        self.streams
            .iter()
            .for_each(|(content, _)| all.add(content));
        all
    }
}
