// SPDX-License-Identifier: GPL-2.0

//! Traces in the Common Trace Format, of any tracer: CTF 1.8 and CTF 2.
//!
//! `find.rs` finds the traces in a directory, and `packetized.rs` reads their descriptions. `tsdl.rs` and `json.rs`
//! parse these to the types of `model.rs`, in which `resolve.rs` finds what refers to what. `classes.rs` and `plan.rs`
//! compile the types to rtrace's layouts and to steps; `stream.rs` performs the steps for each packet, by `machine.rs`.

mod bits;
mod classes;
mod find;
mod head;
mod header;
mod json;
mod lttng;
mod machine;
mod model;
mod packetized;
mod perf;
mod plan;
mod resolve;
mod stream;
mod text;
mod tsdl;
mod types;

use crate::{Format, Opened};
use classes::{clock_of, plan, to_clock, TracePlan};
use ctf::{Foreign, Metadata, Packets, StreamName, METADATA};
use find::Found;
use model::{ClockClass, Description};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stream::{StreamPackets, StreamPlan};
use system::{Error, Result};
use uuid::Uuid;

/// The Common Trace Format.
#[derive(Debug)]
pub struct Ctf;

/// The streams of an open trace, by name.
#[derive(Debug)]
struct Streams(HashMap<PathBuf, StreamPlan>);

impl Foreign for Streams {
    fn open(&self, name: &Path) -> Result<Box<dyn Packets>> {
        let plan = crate::stream(&self.0, name)?;
        Ok(Box::new(StreamPackets::new(plan)))
    }
}

impl Format for Ctf {
    fn is_likely(&self, path: &Path) -> bool {
        find::any(path)
    }

    fn open(&self, path: &Path) -> Result<Option<Opened>> {
        let mut traces = find::traces(path)?;
        if traces.is_empty() {
            return Ok(None);
        }
        // The kernel's trace comes first: the whole trace has its clock and environment.
        let domain = |found: &Found| found.described.description.env.get("domain").cloned();
        traces.sort_by_key(|found| {
            (
                domain(found).as_deref() != Some("kernel"),
                found.dirs.clone(),
            )
        });
        check_hosts(path, &traces)?;
        open(path, &traces).map(Some)
    }
}

/// Refuses traces of several machines: their CPUs and threads are not the same.
fn check_hosts(path: &Path, traces: &[Found]) -> Result<()> {
    let hosts = traces
        .iter()
        .filter_map(|found| found.described.description.env.get("hostname"));
    let mut hosts: Vec<_> = hosts.map(String::as_str).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() < 2 {
        return Ok(());
    }
    let dirs = traces.iter().flat_map(|found| found.dirs.first());
    let dirs: Vec<_> = dirs.take(3).map(|dir| dir.display().to_string()).collect();
    let why = format!(
        "it has traces of several machines ({}); give one of them: {}",
        hosts.join(", "),
        dirs.join(", ")
    );
    Err(Error::system(format!(
        "cannot read {} as one trace",
        path.display()
    ))(io::Error::other(why)))
}

/// Opens traces as one.
fn open(path: &Path, traces: &[Found]) -> Result<Opened> {
    let mut notes = Vec::new();
    let clock = traces.iter().find_map(|found| {
        let mut streams = found.described.description.streams.iter();
        streams.find_map(|stream| clock_of(&found.described.description, stream))
    });
    if clock.is_none() {
        notes.push(
            "the trace has no clock: its events have their order in each stream, and no times"
                .to_owned(),
        );
    }
    let clock = clock.cloned().unwrap_or(ClockClass {
        name: String::new(),
        identity: None,
        frequency: 1_000_000_000,
        offset_s: 0,
        offset: 0,
        is_absolute: false,
    });
    let uuid = traces
        .iter()
        .find_map(|found| found.described.description.uuid)
        .unwrap_or(Uuid::nil());
    let (mut classes, mut env, mut streams, mut bytes) =
        (Vec::new(), BTreeMap::new(), HashMap::new(), 0);
    let mut names = Vec::new();
    for found in traces {
        let (trace, own) = plan(
            &found.described.description,
            found.described.places,
            classes.len() as u32,
            &clock,
        )
        .map_err(|what| refused(found, what))?;
        classes.extend(own);
        for (key, value) in &found.described.description.env {
            env.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let trace = Arc::new(trace);
        for (name, stream) in found_streams(found, &trace, uuid, &mut bytes, &mut notes)? {
            let mut name = name;
            while streams.contains_key(&name) {
                let mut file = name.file_name().unwrap_or_default().to_owned();
                file.push("+");
                name.set_file_name(file);
            }
            names.push(name.clone());
            streams.insert(name, stream);
        }
    }
    if names.is_empty() {
        notes.push(format!("{}: the trace has no packets", path.display()));
    }
    Ok(Opened {
        metadata: Metadata {
            uuid,
            clock: to_clock(&clock),
            boot: clock.identity.as_ref().and_then(|id| id.parse().ok()),
            env,
            streams: classes,
            foreign: Some(Arc::new(Streams(streams))),
        },
        streams: names,
        bytes,
        notes,
    })
}

fn refused(found: &Found, what: String) -> Error {
    Error::Text {
        path: found
            .dirs
            .first()
            .map(|dir| dir.join(METADATA))
            .unwrap_or_default(),
        line: 1,
        what,
    }
}

/// The streams of a trace with their names. A stream's files are those with its class, CPU and channel.
fn found_streams(
    found: &Found,
    trace: &Arc<TracePlan>,
    uuid: Uuid,
    bytes: &mut u64,
    notes: &mut Vec<String>,
) -> Result<Vec<(PathBuf, StreamPlan)>> {
    let mut streams: BTreeMap<_, (StreamPlan, Vec<(u64, PathBuf)>)> = BTreeMap::new();
    let mut has_cpu = true;
    for dir in &found.dirs {
        let mut files = find::files(dir)?;
        files.sort();
        for path in files {
            let length = fs::metadata(&path).map_err(Error::read(&path))?.len();
            if length == 0 {
                continue;
            }
            *bytes += length;
            let head = head::first(trace, &path)?;
            let values = head.map(|head| head.found).unwrap_or_default();
            has_cpu &= values.cpu.is_some();
            let class = head.map_or(0, |head| head.class);
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let channel = match values.cpu {
                Some(_) => find::channel(&file).to_owned(),
                None => file,
            };
            let Some(own) = trace.classes.get(class).map(|class| class.own) else {
                continue;
            };
            let (cpu, instance) = (values.cpu.unwrap_or(0), values.stream.unwrap_or(0));
            let entry = streams
                .entry((channel, cpu, own, instance))
                .or_insert_with(|| {
                    let stream = StreamPlan {
                        trace: Arc::clone(trace),
                        files: Vec::new(),
                        class: own,
                        instance,
                        cpu: u32::try_from(cpu).unwrap_or(u32::MAX),
                        uuid,
                    };
                    (stream, Vec::new())
                });
            entry.1.push((values.begin.unwrap_or(0), path));
        }
    }
    if !has_cpu {
        let dir = found.dirs.first().map(|dir| dir.display().to_string());
        notes.push(format!(
            "{}: its packets do not tell their CPU: all of it is shown as CPU 0",
            dir.unwrap_or_default()
        ));
    }
    let dir = found.dirs.first().cloned().unwrap_or_default();
    let streams = streams
        .into_iter()
        .map(|((channel, ..), (mut stream, mut files))| {
            files.sort();
            stream.files = files.into_iter().map(|(_, path)| path).collect();
            let name = StreamName {
                channel,
                cpu: stream.cpu,
            };
            (dir.join(name.to_string()), stream)
        });
    Ok(streams.collect())
}

/// The description of a trace.
#[derive(Debug)]
struct Described {
    description: Description,
    /// The number of values that its reader keeps.
    places: u16,
}

/// The description of the trace in `dir`.
fn describe(dir: &Path, bytes: &[u8]) -> Result<Described> {
    let path = dir.join(METADATA);
    let (text, uuid) = packetized::text(bytes, &path)?;
    let place = |error| match error {
        Error::Metadata { line, what } => Error::Text {
            path: path.clone(),
            line: line as u64,
            what,
        },
        error => error,
    };
    let is_json = text.starts_with([json::SEPARATOR, '{']);
    let parsed = if is_json {
        json::parse(&text)
    } else {
        tsdl::parse(&text)
    };
    let mut description = parsed.map_err(place)?;
    if uuid.is_some() && description.uuid.is_some() && uuid != description.uuid {
        return Err(Error::Corrupt {
            path,
            offset: 0,
            what: "the packets of the metadata have another uuid than the trace in it".to_owned(),
        });
    }
    lttng::translate(&mut description);
    perf::translate(&mut description);
    if !is_json {
        resolve::name_roles(&mut description);
    }
    let places = resolve::resolve(&mut description);
    let places = places.map_err(|what| Error::Text {
        path,
        line: 1,
        what,
    })?;
    Ok(Described {
        description,
        places,
    })
}
