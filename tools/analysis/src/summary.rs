// SPDX-License-Identifier: GPL-2.0

//! Overview of a trace, for a report without a question.

use super::busy::{BusyTasks, Task};
use super::head::Head;
use super::loss::{Content, Losses};
use super::pass;
use super::schedule::{Schedule, Span};
use super::{key, Analysis, ByEvent, Catalogue, Moment};
use ctf::{name_of, Event};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Recording, Trace};
use system::Result;

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
    /// The rest: it is not known what ran.
    pub unknown_ns: u64,
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

impl Summary {
    /// Reads the whole trace. `progress` hears of every piece that was read.
    pub fn of(dir: &Path, trace: &Trace, progress: impl Fn(u64)) -> Result<Self> {
        let catalogue = Catalogue::new(&trace.metadata);
        let mut gathered = Gathered::default();
        let gather = Box::new(Gather(&mut gathered));
        let answers = pass::read(dir, trace, &catalogue, vec![gather], progress)?;
        let (mut cpus, mut channels) = (Vec::new(), BTreeMap::new());
        for stream in answers.account.streams() {
            let Some((stream_id, cpu)) = stream.place else {
                continue;
            };
            let channel = channel_of(&mut channels, stream_id, stream.path.as_deref());
            channel.content.add(&stream.content);
            let cpu = Cpu {
                cpu,
                content: stream.content,
                ..Cpu::default()
            };
            add_cpu(&mut cpus, cpu);
        }
        let clock = trace.metadata.clock;
        let events = gathered.events(trace, &channels);
        let mut channels: Vec<_> = channels.into_values().collect();
        if let Some(recording) = &trace.recording {
            take_losses(&mut cpus, &mut channels, recording);
        }
        for cpu in &mut cpus {
            let times = gathered.tasks.times(cpu.cpu);
            cpu.idle_ns = clock.nanoseconds(times.idle);
            cpu.busy_ns = clock.nanoseconds(times.busy);
            cpu.unknown_ns = clock.nanoseconds(times.unknown(answers.extent.ticks()));
        }
        Ok(Self {
            head: answers.head,
            losses: answers.losses,
            events,
            tasks: gathered.tasks.sorted(clock),
            cpus,
            channels,
            warnings: answers.warnings,
        })
    }
}

/// The channel of a stream: found by the stream class, called as its files are.
fn channel_of<'a>(
    channels: &'a mut BTreeMap<u32, Channel>,
    id: u32,
    path: Option<&Path>,
) -> &'a mut Channel {
    channels.entry(id).or_insert_with(|| Channel {
        name: path
            .and_then(name_of)
            .map_or_else(|| format!("stream {id}"), |name| name.channel),
        ..Channel::default()
    })
}

/// Adds what a stream says of its CPU.
fn add_cpu(cpus: &mut Vec<Cpu>, stream: Cpu) {
    match cpus.iter_mut().find(|cpu| cpu.cpu == stream.cpu) {
        Some(cpu) => cpu.content.add(&stream.content),
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

/// Counts events, and gathers who used the CPUs.
#[derive(Default)]
struct Gathered {
    counts: ByEvent<u64>,
    tasks: BusyTasks,
}

/// Gathers it.
struct Gather<'a>(&'a mut Gathered);

impl Analysis for Gather<'_> {
    fn wants_all(&self) -> bool {
        true
    }

    fn any(&mut self, event: &Event<'_>, _now: &Moment<'_>) {
        *self.0.counts.get_or_default(key(event.layout)) += 1;
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        self.0.tasks.add(span, schedule);
    }
}

impl Gathered {
    /// The events that were counted, of these channels by stream class.
    fn events(&self, trace: &Trace, channels: &BTreeMap<u32, Channel>) -> Vec<EventCount> {
        let mut events: Vec<_> = self
            .counts
            .iter()
            .filter_map(|((stream_id, id), &count)| {
                let class = trace.metadata.stream(stream_id)?;
                Some(EventCount {
                    name: class.events.get(&id)?.name.clone(),
                    channel: channels.get(&stream_id)?.name.clone(),
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
