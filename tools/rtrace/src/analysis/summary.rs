// SPDX-License-Identifier: GPL-2.0

//! One pass over a trace, stream by stream.

use super::busy::{BusyTasks, Task};
use super::head::{Extent, Head};
use super::losses::{Damages, Losses};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use trace::ctf::{name_of, Packet, StreamReader, Trace};
use trace::recording::{Recording, State};
use trace::source::StreamName;
use trace::Result;

/// What a trace holds; the JSON object of `report --json`.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Which trace.
    #[serde(flatten)]
    pub head: Head,
    /// What became of its events.
    #[serde(flatten)]
    pub losses: Losses,
    /// Events by type, the most frequent first.
    pub events: Vec<EventCount>,
    /// Each CPU.
    pub cpus: Vec<Cpu>,
    /// Each channel.
    pub channels: Vec<Channel>,
    /// The tasks that used the CPUs, the busiest first.
    pub tasks: Vec<Task>,
    /// What is odd about the trace.
    pub warnings: Vec<String>,
}

/// How often an event was recorded.
#[derive(Debug, Serialize)]
pub struct EventCount {
    /// Its name.
    pub name: String,
    /// The channel: an event may be in several.
    pub channel: String,
    /// How often.
    pub count: u64,
}

/// A CPU.
#[derive(Debug, Default, Serialize)]
pub struct Cpu {
    /// The CPU.
    pub cpu: u32,
    /// What its streams hold.
    #[serde(flatten)]
    pub content: Content,
    /// Time in which it was idle, as far as sched_switch tells.
    pub idle_ns: u64,
    /// Time in which it ran a task, as far as sched_switch tells.
    pub busy_ns: u64,
}

/// A channel.
#[derive(Debug, Default, Serialize)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// What its streams hold.
    #[serde(flatten)]
    pub content: Content,
}

/// What streams hold.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Content {
    /// Events recorded.
    pub events: u64,
    /// Events lost: as for the whole trace.
    pub lost: u64,
    /// Whole packets.
    pub packets: u64,
    /// Packets missing between others.
    pub packets_lost: u64,
    /// Packets missing before the first.
    pub packets_before: u64,
    /// Packets missing where bytes are damaged.
    pub packets_damaged: u64,
    /// Bytes of the whole packets.
    pub bytes: u64,
}

/// What was before the first packet of a stream that is there.
#[derive(Clone, Copy, Debug)]
pub struct Earlier {
    /// Whether packets that are missing there are in no other chunk.
    is_from_start: bool,
    /// Events whose loss is counted in other chunks.
    lost: u64,
}

impl Earlier {
    /// Of the stream in this file.
    pub fn of(recording: Option<&Recording>, path: &Path) -> Self {
        let is_this = |stream: &StreamName| name_of(path).as_ref() == Some(stream);
        Self {
            is_from_start: recording.is_none_or(Recording::is_from_start),
            lost: recording.map_or(0, |recording| recording.lost_before(is_this)),
        }
    }
}

impl Content {
    /// A packet was read, whose events are not counted yet; the first one of its stream with what
    /// was `earlier`.
    pub fn add_packet(&mut self, packet: &Packet<'_>, earlier: Option<Earlier>) {
        // A trace may begin with any packet: a snapshot does.
        match earlier {
            _ if packet.after_damage => self.packets_damaged += packet.packets_lost,
            None => self.packets_lost += packet.packets_lost,
            Some(earlier) if earlier.is_from_start => self.packets_before = packet.packets_lost,
            Some(_) => {}
        }
        let lost_earlier = earlier.map_or(0, |earlier| earlier.lost);
        self.lost += packet.events_lost.saturating_sub(lost_earlier);
        self.packets += 1;
        self.bytes += packet.at.size();
    }

    /// Together with another's.
    pub fn add(&mut self, other: &Self) {
        self.events = self.events.saturating_add(other.events);
        self.lost = self.lost.saturating_add(other.lost);
        self.packets = self.packets.saturating_add(other.packets);
        self.packets_lost = self.packets_lost.saturating_add(other.packets_lost);
        self.packets_before = self.packets_before.saturating_add(other.packets_before);
        self.packets_damaged = self.packets_damaged.saturating_add(other.packets_damaged);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Summary {
    /// Reads the whole trace. `progress` hears of every piece that was read.
    pub fn of(dir: &Path, trace: &Trace, progress: impl Fn(u64)) -> Result<Self> {
        let mut pass = Pass {
            trace,
            counts: HashMap::new(),
            tasks: BusyTasks::new(&trace.metadata),
        };
        let (mut cpus, mut channels) = (Vec::new(), BTreeMap::new());
        let (mut warnings, mut damages) = (Vec::new(), Damages::of(trace));
        let mut extent = Extent::default();
        for files in trace.streams_by_name() {
            let Some(stream) = pass.stream(files, &progress, &mut warnings, &mut damages)? else {
                continue;
            };
            extent.add(stream.begin, stream.end);
            channel_of(&mut channels, &stream, &files[0])
                .content
                .add(&stream.cpu.content);
            add_cpu(&mut cpus, stream.cpu);
        }
        let events = pass.events(&channels);
        let mut channels: Vec<_> = channels.into_values().collect();
        if let Some(recording) = &trace.recording {
            take_losses(&mut cpus, &mut channels, recording);
        }
        let mut all = Content::default();
        cpus.iter().for_each(|cpu| all.add(&cpu.content));
        let losses = Losses::new(&all, trace.recording.as_ref(), damages);
        warnings.extend(losses.warnings());
        Ok(Self {
            head: Head::new(dir, trace, extent, all.packets),
            losses,
            events,
            tasks: pass.tasks.sorted(),
            cpus,
            channels,
            warnings,
        })
    }
}

/// The channel of a stream: found by the stream class, called as its files are.
fn channel_of<'a>(
    channels: &'a mut BTreeMap<u32, Channel>,
    stream: &Stream,
    path: &Path,
) -> &'a mut Channel {
    let id = stream.stream_id;
    channels.entry(id).or_insert_with(|| Channel {
        name: name_of(path).map_or_else(|| format!("stream {id}"), |name| name.channel),
        ..Channel::default()
    })
}

/// Adds what a stream says of its CPU.
fn add_cpu(cpus: &mut Vec<Cpu>, stream: Cpu) {
    match cpus.iter_mut().find(|cpu| cpu.cpu == stream.cpu) {
        Some(cpu) => {
            cpu.content.add(&stream.content);
            cpu.idle_ns = cpu.idle_ns.saturating_add(stream.idle_ns);
            cpu.busy_ns = cpu.busy_ns.saturating_add(stream.busy_ns);
        }
        None => cpus.push(stream),
    }
    cpus.sort_by_key(|cpu| cpu.cpu);
}

/// Takes the losses of each CPU and channel from the kernel's counters. What has a row of its own
/// only there had losses, or nothing.
fn take_losses(cpus: &mut Vec<Cpu>, channels: &mut Vec<Channel>, recording: &Recording) {
    let Some(stats) = &recording.stats else {
        return;
    };
    for row in &stats.all.cpus {
        let before = recording.lost_before(|stream| stream.cpu == row.cpu);
        let lost = row.counters.lost().saturating_sub(before);
        match cpus.iter_mut().find(|cpu| cpu.cpu == row.cpu) {
            Some(cpu) => cpu.content.lost = lost,
            None if lost > 0 => add_cpu(cpus, lossy_cpu(row.cpu, lost)),
            None => {}
        }
    }
    for row in &stats.channels {
        let before = recording.lost_before(|stream| stream.channel == row.channel);
        let lost = row.stats.total.lost().saturating_sub(before);
        match channels
            .iter_mut()
            .find(|channel| channel.name == row.channel)
        {
            Some(channel) => channel.content.lost = lost,
            None if lost > 0 => channels.push(Channel {
                name: row.channel.clone(),
                content: nothing_but(lost),
            }),
            None => {}
        }
    }
}

fn lossy_cpu(cpu: u32, lost: u64) -> Cpu {
    Cpu {
        cpu,
        content: nothing_but(lost),
        ..Cpu::default()
    }
}

fn nothing_but(lost: u64) -> Content {
    Content {
        lost,
        ..Content::default()
    }
}

/// What to say if a stream ends with so many bytes of a packet that is not whole.
pub fn cut(path: &Path, partial: u64) -> Option<String> {
    (partial > 0).then(|| {
        format!(
            "{}: the last packet is not whole; its {partial} bytes are left out",
            path.display()
        )
    })
}

/// How many events of a trace that is over were read from the kernel and are not here, where `recorded` are.
pub fn missing(recording: Option<&Recording>, recorded: u64) -> u64 {
    // Of a later chunk it is not known what those before it have.
    let is_whole = |r: &&Recording| r.state == State::Over && r.is_from_start();
    let Some(recording) = recording.filter(is_whole) else {
        return 0;
    };
    let total = recording.stats.as_ref().map(|stats| stats.all.total);
    total.map_or(0, |total| {
        let kept = total.recorded.saturating_sub(total.overwritten);
        kept.saturating_sub(recording.unwritten)
            .saturating_sub(recorded)
    })
}

/// What is gathered over all streams.
struct Pass<'a> {
    trace: &'a Trace,
    /// By stream class and event id.
    counts: HashMap<(u32, u32), u64>,
    tasks: BusyTasks,
}

/// What one stream gives.
struct Stream {
    stream_id: u32,
    cpu: Cpu,
    begin: u64,
    end: u64,
}

impl Pass<'_> {
    /// Reads a stream from its files; none if it has no packet.
    fn stream(
        &mut self,
        files: &[PathBuf],
        progress: &impl Fn(u64),
        warnings: &mut Vec<String>,
        damages: &mut Damages,
    ) -> Result<Option<Stream>> {
        let (mut stream, mut last) = (None, None);
        for path in files {
            let mut reader = StreamReader::open(path, &self.trace.metadata)?.after(last);
            loop {
                match self.file(path, &mut reader, &mut stream, progress) {
                    Ok(()) => break,
                    Err(error) => damages.add(reader.damage(error)?),
                }
                // Its end is not known behind damage.
                if let Some(stream) = &stream {
                    self.tasks.gap(stream.end);
                }
            }
            warnings.extend(cut(path, reader.partial()));
            last = reader.last();
        }
        if let Some(stream) = &mut stream {
            let times = self.tasks.end(stream.end);
            let clock = self.trace.metadata.clock;
            stream.cpu.idle_ns = clock.nanoseconds(times.idle);
            stream.cpu.busy_ns = clock.nanoseconds(times.busy);
        }
        Ok(stream)
    }

    /// Reads a file of a stream up to its end, or to a place that is damaged, and adds it to what is known
    /// of the stream.
    fn file(
        &mut self,
        path: &Path,
        reader: &mut StreamReader<'_>,
        stream: &mut Option<Stream>,
        progress: &impl Fn(u64),
    ) -> Result<()> {
        let earlier = Earlier::of(self.trace.recording.as_ref(), path);
        while let Some(packet) = reader.next_packet()? {
            let header = packet.at.header;
            let size = packet.at.size();
            let is_first = stream.is_none();
            let stream = stream.get_or_insert_with(|| Stream {
                stream_id: header.stream_id,
                cpu: Cpu {
                    cpu: header.cpu_id,
                    ..Cpu::default()
                },
                begin: header.timestamp_begin,
                end: 0,
            });
            let content = &mut stream.cpu.content;
            content.add_packet(&packet, is_first.then_some(earlier));
            if packet.packets_lost > 0 || packet.events_lost > 0 || packet.after_damage {
                self.tasks.gap(header.timestamp_begin);
            } else if is_first {
                self.tasks.begin(header.timestamp_begin);
            }
            stream.end = header.timestamp_end;
            progress(size);
            while let Some(event) = reader.next_event()? {
                content.events += 1;
                let key = (event.layout.stream_id, event.layout.id);
                *self.counts.entry(key).or_default() += 1;
                self.tasks.event(&event);
            }
        }
        Ok(())
    }

    /// The events that were counted, of these channels by stream class.
    fn events(&self, channels: &BTreeMap<u32, Channel>) -> Vec<EventCount> {
        let mut events: Vec<_> = self
            .counts
            .iter()
            .filter_map(|((stream_id, id), &count)| {
                let class = self.trace.metadata.stream(*stream_id)?;
                Some(EventCount {
                    name: class.events.get(id)?.name.clone(),
                    channel: channels.get(stream_id)?.name.clone(),
                    count,
                })
            })
            .collect();
        events.sort_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| (&a.name, &a.channel).cmp(&(&b.name, &b.channel)))
        });
        events
    }
}
