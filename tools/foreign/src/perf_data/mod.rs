// SPDX-License-Identifier: GPL-2.0

//! `perf.data`, the files of perf: of `perf record` and `perf sched record`, also compressed, or from a pipe.
//!
//! `header.rs` reads what the file tells about itself, and `attribute.rs` the recorded events. `index.rs` reads all
//! records once: it finds those of each CPU, and for `tasks.rs` the names of threads and the mappings of programs.
//! `stream.rs` translates the records of a CPU, with `sample.rs`. `records.rs` reads and decompresses them.
//!
//! No crate reads this format with limits: linux-perf-data takes memory for any size that the file claims, and panics at
//! some records.

mod attribute;
mod header;
mod index;
mod records;
mod sample;
mod stream;
mod tasks;

use crate::bytes::Source;
use crate::ftrace::Events;
use crate::trace_dat::Contents;
use crate::{Format, Opened};
use attribute::Meaning;
use ctf::{Clock, FieldLayout, Foreign, Metadata, Packets, StreamName, Type};
use decode::Architecture;
use header::{Header, MAGIC, OTHER_MAGIC};
use index::{Index, Kinds};
use rtrace_abi::schema::Integer;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stream::{Shown, StreamPackets, StreamPlan, Trace};
use system::Result;
use uuid::Uuid;

/// The name of the channel.
const CHANNEL: &str = "perf";

/// The files of perf.
#[derive(Debug)]
pub struct PerfData;

impl Format for PerfData {
    fn is_likely(&self, path: &Path) -> bool {
        let begins = |magic| Source::begins(path, magic).unwrap_or(false);
        begins(MAGIC) || begins(OTHER_MAGIC)
    }

    fn open(&self, path: &Path) -> Result<Option<Opened>> {
        if Source::begins(path, OTHER_MAGIC)? {
            let source = Source::open(path)?;
            return Err(source.wrong(
                0,
                "a perf.data of a big-endian machine, which rtrace does not read",
            ));
        }
        if !Source::begins(path, MAGIC)? {
            return Ok(None);
        }
        open(&Arc::new(Source::open(path)?)).map(Some)
    }
}

/// The streams of an open trace.
#[derive(Debug)]
struct Streams {
    plans: HashMap<PathBuf, StreamPlan>,
    mappings: String,
}

impl Foreign for Streams {
    fn open(&self, name: &Path) -> Result<Box<dyn Packets>> {
        let plan = crate::stream(&self.plans, name)?;
        Ok(Box::new(StreamPackets::new(plan)))
    }

    fn mappings(&self) -> Option<&str> {
        Some(&self.mappings)
    }
}

fn open(source: &Arc<Source>) -> Result<Opened> {
    let mut header = header::read(source)?;
    if header.attributes.is_empty() {
        return Err(source.wrong(0, "a perf.data without events"));
    }
    let kinds = Kinds::new(std::mem::take(&mut header.attributes));
    let index = Index::read(&header, &kinds, source)?;
    let notes = notes(source, &header, &index);
    let formats = match &header.tracing {
        Some((offset, bytes)) => Contents::of_perf(source, *offset, bytes)?.formats,
        None => Vec::new(),
    };
    let env = environment(&header);
    let architecture = Architecture::named(env.get("architecture").map(String::as_str));
    let meanings: Vec<_> = kinds
        .attributes
        .iter()
        .map(attribute::Attribute::meaning)
        .collect();
    let (mut others, mut shown, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (meaning, attribute) in meanings.iter().zip(&kinds.attributes) {
        let has_address = attribute.has(attribute::ADDRESS);
        shown.push(Shown::of(meaning, others.len() as u32, has_address));
        match meaning {
            Meaning::Dummy => {}
            Meaning::Sample(name) => others.push((name.clone(), sample_fields(has_address))),
            Meaning::Tracepoint(id) if formats.iter().any(|format| format.id == *id) => {
                ids.insert(*id);
            }
            Meaning::Tracepoint(id) => {
                let what = format!(
                    "the tracepoint {id} ({}) has no description in the file",
                    attribute.name
                );
                return Err(source.wrong(0, what));
            }
        }
    }
    let throttled = [others.len() as u32, others.len() as u32 + 1];
    others.extend(["perf_throttle", "perf_unthrottle"].map(|name| (name.to_owned(), Vec::new())));
    let has_stacks = kinds
        .attributes
        .iter()
        .any(|attribute| attribute.has(attribute::CALLCHAIN));
    let made = Events::new(
        0,
        &formats,
        &ids,
        contexts(has_stacks),
        others,
        architecture,
    );
    let (class, events) = made.map_err(|what| source.wrong(0, what))?;
    let (offset_s, offset) = clock(&header);
    let mut metadata = Metadata {
        uuid: Uuid::nil(),
        clock: Clock {
            frequency: 1_000_000_000,
            offset_s,
            offset,
        },
        boot: running(&header, &index),
        env,
        streams: vec![class],
        foreign: None,
    };
    let since = metadata.clock.since_epoch(0);
    // Times of mappings are those of the trace's clock.
    let head = format!(
        "rtrace mappings 1\ntrace {}\nclock 0 {since}\n",
        metadata.uuid
    );
    let (names, mappings) = index.changes.finish(&head, &header.build_ids);
    let trace = Arc::new(Trace {
        path: source.path.clone(),
        kinds,
        shown,
        events,
        throttled,
        names,
        has_stacks,
    });
    let (mut plans, mut streams) = (HashMap::new(), Vec::new());
    for (cpu, records) in index.cpus {
        let name = StreamName {
            channel: CHANNEL.to_owned(),
            cpu,
        };
        let path = source.path.join(name.to_string());
        let trace = Arc::clone(&trace);
        streams.push(path.clone());
        plans.insert(
            path,
            StreamPlan {
                trace,
                records,
                cpu,
            },
        );
    }
    metadata.foreign = Some(Arc::new(Streams { plans, mappings }));
    Ok(Opened {
        metadata,
        streams,
        bytes: source.length,
        notes,
    })
}

/// The contexts of all events.
fn contexts(has_stacks: bool) -> Vec<FieldLayout> {
    let field = |name: &str, ty| FieldLayout {
        name: name.to_owned(),
        ty,
    };
    let id = Type::Integer(Integer::signed(32));
    let mut contexts = vec![
        field("pid", id.clone()),
        field("tid", id),
        field("procname", Type::Array(Integer::TEXT, 16)),
    ];
    if has_stacks {
        for (name, element) in [
            ("callstack_kernel", Integer::address()),
            ("callstack_user", Integer::hex(64)),
        ] {
            let length = Type::Integer(Integer::unsigned(32));
            contexts.push(field(&format!("_{name}_length"), length));
            let before = contexts.len() - 1;
            contexts.push(field(name, Type::Sequence(element, before)));
        }
    }
    contexts
}

/// The fields of a sample.
fn sample_fields(has_address: bool) -> Vec<FieldLayout> {
    let field = |name: &str, integer| FieldLayout {
        name: name.to_owned(),
        ty: Type::Integer(integer),
    };
    let mut fields = vec![
        field("ip", Integer::address()),
        field("period", Integer::unsigned(64)),
    ];
    if has_address {
        fields.push(field("addr", Integer::hex(64)));
    }
    fields
}

/// The time since the epoch at which the trace's clock begins: seconds, and nanoseconds.
fn clock(header: &Header) -> (i64, u64) {
    let (wall, clock) = header.clock.unwrap_or((0, 0));
    let offset = i128::from(wall) - i128::from(clock);
    let seconds = offset.div_euclid(1_000_000_000);
    (seconds as i64, offset.rem_euclid(1_000_000_000) as u64)
}

fn environment(header: &Header) -> BTreeMap<String, String> {
    let mut env = BTreeMap::from([("tracer_name".to_owned(), "perf".to_owned())]);
    let machine = header
        .machine
        .as_ref()
        .filter(|machine| *machine == "aarch64");
    for (key, value) in [
        ("hostname", header.host.as_ref()),
        ("kernel_release", header.release.as_ref()),
        ("architecture", machine),
    ] {
        if let Some(value) = value {
            env.insert(key.to_owned(), value.clone());
        }
    }
    env
}

/// The boot of this machine, if its kernel is that of the trace: the same build, at the same address.
fn running(header: &Header, index: &Index) -> Option<Uuid> {
    // With --buildid-mmap, the default of perf in Linux 7.2, only the records of mappings have ids.
    let (address, id) = index.kernel.as_ref()?;
    let id = id.as_ref().or(header.build_ids.get("[kernel.kallsyms]"))?;
    let notes = fs::read("/sys/kernel/notes").ok()?;
    if id.is_empty() || !header::hexadecimal(&notes).contains(id.as_str()) {
        return None;
    }
    let kallsyms = fs::read_to_string("/proc/kallsyms").ok()?;
    let text = kallsyms.lines().find(|line| line.ends_with(" _text"))?;
    let text = u64::from_str_radix(text.split(' ').next()?, 16).ok()?;
    if text == 0 || *address != text {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    boot.trim().parse().ok()
}

/// Sentences about what the file does not tell.
fn notes(source: &Source, header: &Header, index: &Index) -> Vec<String> {
    let path = source.path.display();
    let mut notes = Vec::new();
    if header.is_cut {
        notes.push(format!(
            "{path}: perf did not finish the file: what it writes at its end is missing"
        ));
    }
    if index.without_cpu > 0 {
        notes.push(format!(
            "{path}: its samples do not tell their CPU: all of it is shown as CPU 0"
        ));
    }
    if index.without_time > 0 {
        notes.push(format!(
            "{path}: {} samples do not tell their time: they are shown at the begin",
            index.without_time
        ));
    }
    if index.lost_samples > index.lost {
        notes.push(format!(
            "{path}: perf counted {} lost samples, its records show {}: the others are missing at unknown places",
            index.lost_samples, index.lost
        ));
    }
    let others: u64 = index.others.values().sum();
    if others > 0 {
        let kinds: Vec<_> = index.others.keys().map(u32::to_string).collect();
        notes.push(format!(
            "{path}: {others} records of kinds that rtrace does not show ({})",
            kinds.join(", ")
        ));
    }
    if index.changes.left_out > 0 {
        notes.push(format!(
            "{path}: {} changes of threads and mappings are too many: later names may be wrong",
            index.changes.left_out
        ));
    }
    if let Some((offset, what)) = &index.damage {
        notes.push(format!(
            "{path}: damaged at byte {offset}: {what}; what follows is left out"
        ));
    }
    notes
}
