// SPDX-License-Identifier: GPL-2.0

//! Overview of a trace, for a report without a question.

use super::busy::{BusyTasks, Task};
use super::choice::Part;
use super::durations::{call_duration, Durations};
use super::head::Head;
use super::loss::{Content, Losses};
use super::pass;
use super::schedule::{Schedule, Span};
use super::{bits, key, Analysis, Catalogue, EventKey, Moment};
use ctf::{name_of, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Recording, Trace};
use system::Result;

/// Contents of a trace, as the JSON object of `report --json`.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Summary {
    /// Identity of the trace.
    #[serde(flatten)]
    pub head: Head,
    /// Recorded and lost events.
    #[serde(flatten)]
    pub losses: Losses,
    /// Events by type, the most frequent first.
    pub events: Vec<EventCount>,
    /// Rows of the CPUs.
    pub cpus: Vec<Cpu>,
    /// Rows of the channels.
    pub channels: Vec<Channel>,
    /// The tasks that used the CPUs, the busiest first.
    pub tasks: Vec<Task>,
    /// Calls of the functions whose return was recorded with a duration (`-k 'f -> ret'`), the longest
    /// total first.
    pub probes: Vec<Probe>,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
}

/// Number of records of an event.
#[derive(Debug, JsonSchema, Serialize)]
pub struct EventCount {
    /// Name of the event.
    pub name: String,
    /// Name of the channel. An event may be in several channels.
    pub channel: String,
    /// Number of records.
    pub count: u64,
}

/// Row of an event at the return of a function.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Probe {
    /// Name of the event.
    pub name: String,
    /// Durations of the calls.
    #[serde(flatten)]
    pub durations: Durations,
}

/// Row of a CPU.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub struct Cpu {
    /// CPU number.
    pub cpu: u32,
    /// Contents of the CPU's streams.
    #[serde(flatten)]
    pub content: Content,
    /// Idle time, as far as it is known from sched_switch.
    pub idle_ns: u64,
    /// Time in which the CPU ran a task, as far as it is known from sched_switch.
    pub busy_ns: u64,
    /// Remaining time, for which the running task is not known.
    pub unknown_ns: u64,
}

/// Row of a channel.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub struct Channel {
    /// Name of the channel.
    pub name: String,
    /// Contents of the channel's streams.
    #[serde(flatten)]
    pub content: Content,
}

impl Summary {
    /// Summarises the chosen part of a trace. Streams have a row only if the whole trace is chosen. Calls
    /// `progress` with the size of each part that was read.
    pub fn of(dir: &Path, trace: &Trace, choice: &Part, progress: impl Fn(u64)) -> Result<Self> {
        let catalogue = Catalogue::new(&trace.metadata);
        let mut gathered = Gathered {
            probes: probes(&catalogue),
            ..Gathered::default()
        };
        let gather = Box::new(Gather(&mut gathered));
        let answers = pass::read(dir, trace, &catalogue, vec![gather], choice, progress)?;
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
        let events = events(&answers.counts, trace, &channels);
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
        if !choice.is_all() {
            cpus.clear();
            channels.clear();
        }
        Ok(Self {
            head: answers.head,
            losses: answers.losses,
            events,
            tasks: gathered.tasks.sorted(clock),
            probes: gathered.probes(),
            cpus,
            channels,
            warnings: answers.warnings,
        })
    }
}

/// Returns the channel of a stream, found by the stream class. The name of the channel comes from the
/// stream's files.
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

/// Adds the contents of a stream to its CPU.
fn add_cpu(cpus: &mut Vec<Cpu>, stream: Cpu) {
    match cpus.iter_mut().find(|cpu| cpu.cpu == stream.cpu) {
        Some(cpu) => cpu.content.add(&stream.content),
        None => cpus.push(stream),
    }
    cpus.sort_by_key(|cpu| cpu.cpu);
}

/// Takes the losses of each CPU and channel from the kernel's counters. A CPU or channel that only these
/// counters have gets a row if it has losses.
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

/// Returns the events that have the duration of a call, each with the field of the duration.
fn probes(catalogue: &Catalogue<'_>) -> Vec<(EventKey, usize, Probe)> {
    let timed = catalogue.events().filter_map(|layout| {
        let field = call_duration(layout)?;
        let probe = Probe {
            name: layout.name.clone(),
            durations: Durations::new(),
        };
        Some((key(layout), field, probe))
    });
    timed.collect()
}

/// CPU time of tasks, and durations of calls.
#[derive(Default)]
struct Gathered {
    tasks: BusyTasks,
    probes: Vec<(EventKey, usize, Probe)>,
}

/// Analysis that fills [`Gathered`].
struct Gather<'a>(&'a mut Gathered);

impl Analysis for Gather<'_> {
    fn events(&self) -> Vec<EventKey> {
        self.0.probes.iter().map(|(key, ..)| *key).collect()
    }

    fn event(&mut self, which: usize, event: &Event<'_>, _now: &Moment<'_>) {
        let (_, field, probe) = &mut self.0.probes[which];
        if let Some(took) = bits(event.value(*field)) {
            probe.durations.add(took);
        }
    }

    fn span(&mut self, span: &Span, schedule: &Schedule) {
        self.0.tasks.add(span, schedule);
    }
}

impl Gathered {
    /// Returns the probes that have calls.
    fn probes(&self) -> Vec<Probe> {
        let probes = self.probes.iter().map(|(.., probe)| probe);
        let mut probes: Vec<_> = probes
            .filter(|probe| probe.durations.count() > 0)
            .cloned()
            .collect();
        probes.sort_by(|a, b| {
            let total = |probe: &Probe| probe.durations.total_ns();
            total(b).cmp(&total(a)).then_with(|| a.name.cmp(&b.name))
        });
        probes
    }
}

/// Returns the counted events of these channels, which are given by stream class.
fn events(
    counts: &[(EventKey, u64)],
    trace: &Trace,
    channels: &BTreeMap<u32, Channel>,
) -> Vec<EventCount> {
    let events = counts.iter().filter_map(|&((stream_id, id), count)| {
        let class = trace.metadata.stream(stream_id)?;
        Some(EventCount {
            name: class.events.get(&id)?.name.clone(),
            channel: channels.get(&stream_id)?.name.clone(),
            count,
        })
    });
    let mut events: Vec<_> = events.collect();
    events.sort_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then_with(|| (&a.name, &a.channel).cmp(&(&b.name, &b.channel)))
    });
    events
}
