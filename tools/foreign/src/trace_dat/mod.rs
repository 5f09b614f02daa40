// SPDX-License-Identifier: GPL-2.0

//! `trace.dat`, the files of trace-cmd: versions 6 and 7.
//!
//! `contents.rs` reads the parts of a file, with `options.rs`. `stream.rs` translates the events of a CPU.

mod contents;
mod options;
mod stream;

use crate::bytes::Source;
use crate::ftrace::{EventFormat, Events, PageLayout};
use crate::{Format, Opened};
pub use contents::Contents;
use contents::{Buffer, CpuData, MAGIC};
use ctf::{Clock, FieldLayout, Foreign, Metadata, Packets, StreamName, Type};
use decode::Architecture;
use options::Options;
use rtrace_abi::schema::Integer;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use stream::{Groups, StreamPackets, StreamPlan};
use system::Result;
use uuid::Uuid;

/// The name of the main buffer's channel.
const MAIN: &str = "trace";

/// The files of trace-cmd.
#[derive(Debug)]
pub struct TraceDat;

impl Format for TraceDat {
    fn is_likely(&self, path: &Path) -> bool {
        Source::begins(path, MAGIC).unwrap_or(false)
    }

    fn open(&self, path: &Path) -> Result<Option<Opened>> {
        if !Source::begins(path, MAGIC)? {
            return Ok(None);
        }
        let source = Arc::new(Source::open(path)?);
        open(&source).map(Some)
    }
}

/// The streams of an open trace.
#[derive(Debug)]
struct Streams {
    plans: HashMap<PathBuf, StreamPlan>,
    kallsyms: String,
    names: Vec<(i32, String)>,
}

impl Foreign for Streams {
    fn open(&self, name: &Path) -> Result<Box<dyn Packets>> {
        let plan = crate::stream(&self.plans, name)?;
        Ok(Box::new(StreamPackets::new(plan)))
    }

    fn kallsyms(&self) -> Option<&str> {
        (!self.kallsyms.is_empty()).then_some(self.kallsyms.as_str())
    }

    fn names(&self) -> &[(i32, String)] {
        &self.names
    }
}

/// The events of a CPU, and the numbers of the events that occur there.
struct CpuStream {
    cpu: u32,
    groups: Arc<Groups>,
}

/// A buffer and what occurs in it.
struct Found {
    buffer: Buffer,
    cpus: Vec<CpuStream>,
    ids: BTreeSet<u16>,
    lost: u64,
}

fn open(source: &Arc<Source>) -> Result<Opened> {
    let contents = contents::read(source)?;
    let mut formats = contents.formats.clone();
    // Parts of a file may describe an event twice.
    let mut seen = BTreeSet::new();
    formats.retain(|format| seen.insert(format.id));
    if let Some(format) = formats.iter().find(|format| !is_usual(format)) {
        let what = format!(
            "the event {}:{} has unusual common fields",
            format.system, format.name
        );
        return Err(source.wrong(0, what));
    }
    let mut notes = Vec::new();
    let mut found = Vec::new();
    for buffer in &contents.buffers {
        found.push(find(source, &contents, buffer)?);
    }
    name_unseen(&formats, &mut found);
    let env = environment(&contents.options);
    let architecture = Architecture::named(env.get("architecture").map(String::as_str));
    let id = contents.options.id.unwrap_or(0);
    let uuid = Uuid::from_u64_pair(0, id);
    let (mut classes, mut plans, mut names) = (Vec::new(), HashMap::new(), Vec::new());
    for (number, found) in (0..).zip(&found) {
        let made = Events::new(
            number,
            &formats,
            &found.ids,
            contexts(),
            Vec::new(),
            architecture,
        );
        let (class, events) = made.map_err(|what| source.wrong(0, what))?;
        classes.push(class);
        let events = Arc::new(events);
        for stream in &found.cpus {
            let channel = match found.buffer.name.as_str() {
                "" => MAIN,
                name => name,
            };
            let name = StreamName {
                // A name with a slash would be a path.
                channel: channel.replace('/', "_"),
                cpu: stream.cpu,
            };
            let path = source.path.join(name.to_string());
            let plan = StreamPlan {
                source: Arc::clone(source),
                layout: contents.layout,
                page_size: found.buffer.page_size,
                groups: Arc::clone(&stream.groups),
                events: Arc::clone(&events),
                tsc: contents.options.tsc.filter(|_| is_tsc(&found.buffer.clock)),
                uuid,
                class: number,
                cpu: stream.cpu,
            };
            if plans.insert(path.clone(), plan).is_some() {
                let what = format!("the events of CPU {} twice in one buffer", stream.cpu);
                return Err(source.wrong(0, what));
            }
            names.push(path);
        }
    }
    clock_notes(source, &contents, &mut notes);
    let has_switches = classes.iter().any(|class: &ctf::StreamClass| {
        class
            .events
            .values()
            .any(|event| event.name == "sched_switch")
    });
    if !has_switches && !contents.comms.is_empty() {
        let path = source.path.display();
        notes.push(format!(
            "{path}: names of threads are those at the end of the recording"
        ));
    }
    let counted: u64 = found
        .iter()
        .map(|found| found.lost)
        .fold(0, u64::saturating_add);
    if contents.options.lost > counted {
        let (path, lost) = (source.path.display(), contents.options.lost);
        notes.push(format!(
            "{path}: the kernel counted {lost} lost events, the events themselves show {counted}: the others are \
             missing at unknown places"
        ));
    }
    if names.is_empty() {
        notes.push(format!(
            "{}: the trace has no events",
            source.path.display()
        ));
    }
    let offset = contents
        .options
        .date
        .unwrap_or(0)
        .wrapping_add(contents.options.offset);
    Ok(Opened {
        metadata: Metadata {
            uuid,
            clock: Clock {
                frequency: 1_000_000_000,
                offset_s: offset.div_euclid(1_000_000_000),
                offset: offset.rem_euclid(1_000_000_000) as u64,
            },
            boot: None,
            env,
            streams: classes,
            foreign: Some(Arc::new(Streams {
                plans,
                kallsyms: contents.kallsyms,
                names: contents.comms,
            })),
        },
        streams: names,
        bytes: source.length,
        notes,
    })
}

/// Whether an event has the common fields in their usual places.
fn is_usual(format: &EventFormat) -> bool {
    let usual = [
        ("common_type", 0, 2),
        ("common_flags", 2, 1),
        ("common_preempt_count", 3, 1),
        ("common_pid", 4, 4),
    ];
    usual.into_iter().all(|(name, offset, size)| {
        let field = format.common(name);
        field.is_some_and(|field| (field.offset, field.size) == (offset, size))
    })
}

/// The contexts of all events.
fn contexts() -> Vec<FieldLayout> {
    let context = |name: &str, integer| FieldLayout {
        name: name.to_owned(),
        ty: Type::Integer(integer),
    };
    vec![
        context("tid", Integer::signed(32)),
        context("common_flags", Integer::hex(8)),
        context("common_preempt_count", Integer::unsigned(8)),
    ]
}

/// Finds the events that occur in a buffer.
fn find(source: &Source, contents: &Contents, buffer: &Buffer) -> Result<Found> {
    let mut found = Found {
        buffer: buffer.clone(),
        cpus: Vec::new(),
        ids: BTreeSet::new(),
        lost: 0,
    };
    for data in buffer.cpus.iter().filter(|data| data.size > 0) {
        let groups = groups(source, contents, buffer, data)?;
        found.cpus.push(CpuStream {
            cpu: data.cpu,
            groups: Arc::new(groups),
        });
    }
    // Each thread scans the events of some CPUs.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let parts = found.cpus.chunks(found.cpus.len().div_ceil(threads).max(1));
    let scanned = thread::scope(|scope| {
        let scan_part = |part: &[CpuStream]| {
            let (mut seen, mut lost) = (vec![false; 1 << 16], 0_u64);
            for cpu in part {
                cpu.groups.for_each(source, buffer.page_size, |page| {
                    lost = lost.saturating_add(scan(contents.layout, page, &mut seen));
                });
            }
            (seen, lost)
        };
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(move || scan_part(part)))
            .collect();
        let scanned = threads.into_iter().map(|thread| match thread.join() {
            Ok(scanned) => scanned,
            Err(panic) => resume_unwind(panic),
        });
        scanned.collect::<Vec<_>>()
    });
    for (seen, lost) in scanned {
        let ids = (0..=u16::MAX).zip(seen);
        found
            .ids
            .extend(ids.filter_map(|(id, is_seen)| is_seen.then_some(id)));
        found.lost = found.lost.saturating_add(lost);
    }
    Ok(found)
}

fn groups(source: &Source, contents: &Contents, buffer: &Buffer, data: &CpuData) -> Result<Groups> {
    if buffer.is_compressed {
        let none = || {
            source.wrong(
                data.offset,
                "compressed events in a file without compression",
            )
        };
        let compression = contents.compression.ok_or_else(none)?;
        return Groups::compressed(compression, source, data.offset, buffer.page_size);
    }
    let end = data.offset.checked_add(data.size);
    if end.is_none_or(|end| end > source.length) {
        let what = format!(
            "the {} bytes of events of CPU {} end after the end of the file",
            data.size, data.cpu
        );
        return Err(source.wrong(data.offset, what));
    }
    Ok(Groups::Plain {
        offset: data.offset,
        size: data.size,
    })
}

/// Notes the numbers of the events in a sub-buffer. Returns the number of events that are missing before it.
fn scan(layout: PageLayout, page: &[u8], seen: &mut [bool]) -> u64 {
    let Ok(mut page) = layout.page(page) else {
        return 0;
    };
    while let Ok(Some((_, record))) = page.next() {
        if let Some(id) = record.first_chunk() {
            seen[usize::from(u16::from_le_bytes(*id))] = true;
        }
    }
    match page.missed {
        crate::ftrace::Missed::Events(count) => count,
        _ => 0,
    }
}

/// Lets the first buffer have the events that occur nowhere: the file describes them, because they were recorded.
/// Tracers' own events are always described.
fn name_unseen(formats: &[EventFormat], found: &mut [Found]) {
    let unseen = formats.iter().filter(|format| {
        format.system != "ftrace" && found.iter().all(|found| !found.ids.contains(&format.id))
    });
    let unseen: Vec<_> = unseen.map(|format| format.id).collect();
    let busiest = found.iter_mut().find(|found| !found.ids.is_empty());
    if let Some(found) = busiest {
        found.ids.extend(unseen);
    }
}

/// The environment, from the output of uname(1): `Linux HOST RELEASE ... MACHINE`.
fn environment(options: &Options) -> BTreeMap<String, String> {
    let mut words = options.uname.split_whitespace();
    let mut env = BTreeMap::new();
    let mut add = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            env.insert(key.to_owned(), value.to_owned());
        }
    };
    add("tracer_name", Some("trace-cmd"));
    add("hostname", words.nth(1));
    add("kernel_release", words.next());
    add(
        "architecture",
        words.last().filter(|machine| *machine == "aarch64"),
    );
    env
}

/// Whether a clock counts cycles of the processor.
fn is_tsc(clock: &str) -> bool {
    clock == "x86-tsc" || clock == "tsc2nsec"
}

/// Adds sentences about what times mean.
fn clock_notes(source: &Source, contents: &Contents, notes: &mut Vec<String>) {
    let options = &contents.options;
    let path = source.path.display();
    let clocks: BTreeSet<_> = contents
        .buffers
        .iter()
        .map(|buffer| buffer.clock.as_str())
        .collect();
    if clocks.len() > 1 {
        let clocks: Vec<_> = clocks.iter().copied().collect();
        notes.push(format!(
            "{path}: its buffers have several clocks ({}): times of different buffers cannot be compared",
            clocks.join(", ")
        ));
    }
    for clock in clocks {
        match clock {
            "counter" => notes.push(format!("{path}: its clock counts events: differences of its times are no durations")),
            "uptime" => notes.push(format!("{path}: its clock `uptime` counts ticks of the kernel: they are shown as nanoseconds")),
            clock if is_tsc(clock) && options.tsc.is_none() => notes.push(format!(
                "{path}: its clock counts cycles of the processor, and the file does not tell their rate: they are \
                 shown as nanoseconds"
            )),
            _ => {}
        }
    }
    if options.has_time_shift {
        notes.push(format!(
            "{path}: a trace of a virtual machine: its times are not moved to those of the host"
        ));
    }
}
