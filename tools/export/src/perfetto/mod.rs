// SPDX-License-Identifier: GPL-2.0

//! `rtrace export perfetto`: Perfetto's protobuf, with events as Perfetto's own ftrace tracer writes them.
//!
//! A bundle is written when a CPU has enough events; the reader sorts the events. All times are values of the
//! trace's clock. The file calls this clock the boot time, as Perfetto requires.

mod events;
mod proto;

use super::format::{Format, Loss, Now};
use ahash::HashMap;
use analysis::schedule_events::{Fork, ForkFields, StateFields, THREAD_STATE};
use analysis::{architecture, integer, key, text, ByEvent, Catalogue, EventKey};
use ctf::{Event, EventLayout, Metadata};
use events::{line, Mapping};
use prost::Message;
use proto::{
    message, tag, varint, Clock, ClockSnapshot, Data, Process, ProcessTree, SystemInfo, Thread,
    Trace, TracePacket, Utsname, BOOTTIME, REALTIME,
};
use std::io::{self, Write};
use system::printing::Line;

/// `CLONE_THREAD`
const CLONE_THREAD: u64 = 0x1_0000;

/// Maximum number of events in a bundle.
const BUNDLE: usize = 512;

/// rtrace's number as a writer of the file: never 0.
const SEQUENCE: u32 = 1;

/// Events of a CPU before they are written.
#[derive(Default)]
struct Bundle {
    /// Encoded events: fields of a `FtraceEventBundle`.
    bytes: Vec<u8>,
    /// Number of events.
    events: usize,
    /// Whether events are missing before these.
    is_lossy: bool,
}

impl Bundle {
    /// Adds an event at a time, with its thread if that is known.
    fn add(&mut self, ns: u64, tid: Option<i64>, put: impl FnOnce(&mut Vec<u8>)) {
        message(&mut self.bytes, tag::BUNDLE_EVENT, |out| {
            varint(out, tag::TIMESTAMP, ns);
            if let Some(tid) = tid.and_then(|tid| u32::try_from(tid).ok()) {
                varint(out, tag::PID, tid.into());
            }
            put(out);
        });
        self.events += 1;
    }
}

/// Writes packets.
pub struct Perfetto<'a> {
    metadata: &'a Metadata,
    mappings: ByEvent<Mapping>,
    fork: Option<(EventKey, ForkFields)>,
    /// `sched_process_exec`, with its fields for the thread and the program.
    exec: Option<(EventKey, [usize; 2])>,
    /// The event that describes threads older than the trace.
    state: Option<(EventKey, StateFields)>,
    /// Unwritten events by CPU.
    bundles: HashMap<u32, Bundle>,
    /// Process of each thread that the file already describes.
    processes: HashMap<i64, i64>,
    /// Known parents by process. Each description of a process includes its parent.
    parents: HashMap<i64, i64>,
    bytes: Vec<u8>,
}

impl<'a> Perfetto<'a> {
    /// For a trace with this description.
    pub fn new(metadata: &'a Metadata) -> Self {
        let catalogue = Catalogue::new(metadata);
        let architecture = architecture(metadata);
        let layouts = metadata.streams.iter().flat_map(|s| s.events.values());
        let mapping = |layout: &EventLayout| {
            // If several channels have an event, Perfetto draws the event of the first one.
            let first = catalogue.event(&layout.name).map(key);
            if first == Some(key(layout)) {
                Mapping::of(layout, architecture)
            } else {
                Mapping::generic(layout)
            }
        };
        let exec = || {
            let layout = catalogue.event("sched_process_exec")?;
            Some((
                key(layout),
                [layout.field("tid")?, layout.field("filename")?],
            ))
        };
        let fork = || {
            let layout = catalogue.event("sched_process_fork")?;
            Some((key(layout), ForkFields::of(layout)?))
        };
        let state = || {
            let layout = catalogue.event(THREAD_STATE)?;
            Some((key(layout), StateFields::of(layout)?))
        };
        Self {
            metadata,
            mappings: layouts
                .map(|layout| (key(layout), mapping(layout)))
                .collect(),
            fork: fork(),
            state: state(),
            exec: exec(),
            bundles: HashMap::default(),
            processes: HashMap::default(),
            parents: HashMap::default(),
            bytes: Vec::new(),
        }
    }

    fn put(&mut self, ns: Option<u64>, data: Data, out: &mut dyn Write) -> io::Result<()> {
        let packet = TracePacket {
            timestamp: ns,
            trusted_packet_sequence_id: Some(SEQUENCE),
            data: Some(data),
        };
        self.bytes.clear();
        let trace = Trace {
            packet: vec![packet],
        };
        trace.encode(&mut self.bytes).map_err(io::Error::other)?;
        out.write_all(&self.bytes)
    }

    fn flush(&mut self, cpu: u32, out: &mut dyn Write) -> io::Result<()> {
        let bundle = self.bundles.get_mut(&cpu);
        let Some(bundle) = bundle.filter(|bundle| bundle.events > 0 || bundle.is_lossy) else {
            return Ok(());
        };
        self.bytes.clear();
        message(&mut self.bytes, tag::PACKET, |out| {
            message(out, tag::FTRACE_EVENTS, |out| {
                varint(out, tag::BUNDLE_CPU, cpu.into());
                out.append(&mut bundle.bytes);
                if bundle.is_lossy {
                    varint(out, tag::BUNDLE_LOST, 1);
                }
            });
            varint(out, tag::SEQUENCE, SEQUENCE.into());
        });
        (bundle.events, bundle.is_lossy) = (0, false);
        out.write_all(&self.bytes)
    }

    /// Writes the process of a thread, unless the file already has it.
    fn thread(
        &mut self,
        ns: u64,
        (tid, process): (i64, i64),
        comm: Option<&[u8]>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if tid == 0 || self.processes.insert(tid, process) == Some(process) {
            return Ok(());
        }
        let name = comm.map(|comm| Line(comm).to_string());
        let tree = if tid == process {
            self.process(process, name, true)
        } else {
            ProcessTree {
                processes: Vec::new(),
                threads: vec![Thread {
                    tid: tid.try_into().ok(),
                    name,
                    tgid: process.try_into().ok(),
                }],
            }
        };
        self.put(Some(ns), Data::ProcessTree(tree), out)
    }

    /// Returns the description of a process: `name` is the name of a task, or of a program.
    fn process(&self, pid: i64, name: Option<String>, is_comm: bool) -> ProcessTree {
        let parent = self.parents.get(&pid);
        ProcessTree {
            processes: vec![Process {
                pid: pid.try_into().ok(),
                ppid: parent.and_then(|parent| (*parent).try_into().ok()),
                cmdline_is_comm: (is_comm && name.is_some()).then_some(true),
                cmdline: name.into_iter().collect(),
            }],
            threads: Vec::new(),
        }
    }

    /// Writes that an id belongs to a new task from now on.
    fn new_task(&mut self, fork: &Fork<'_>, now: &Now<'_>) {
        let is_thread = fork.child.1.is_some_and(|process| process != fork.child.0);
        let flags = if is_thread { CLONE_THREAD } else { 0 };
        let bundle = self.bundles.entry(now.cpu).or_default();
        bundle.add(now.ns, Some(fork.parent.0), |out| {
            message(out, tag::TASK_NEWTASK, |out| {
                if let Ok(tid) = i32::try_from(fork.child.0) {
                    varint(out, 1, i64::from(tid) as u64);
                }
                line(out, 2, fork.child_comm);
                varint(out, 3, flags);
            });
        });
    }

    /// Writes the facts about processes that an event has.
    fn tell(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()> {
        let key = key(event.layout);
        if let Some(task) = now.task {
            if let Some(process) = task.process {
                self.thread(now.ns, (task.tid, process), task.comm, out)?;
            }
        }
        if let Some((_, fields)) = self.fork.filter(|(fork, _)| *fork == key) {
            if let Some(fork) = fields.read(event) {
                // Another thread may have had the id. Without the event of a new task, Perfetto takes the child
                // for that thread.
                if self.processes.remove(&fork.child.0).is_some() {
                    self.new_task(&fork, now);
                }
                let (tid, process) = fork.child;
                if let Some(parent) = fork.parent.1.filter(|_| process == Some(tid)) {
                    self.parents.insert(tid, parent);
                }
                if let Some(process) = process {
                    self.thread(now.ns, (tid, process), Some(fork.child_comm), out)?;
                }
            }
        }
        if let Some((_, fields)) = self.state.filter(|(state, _)| *state == key) {
            if let Some(thread) = fields.read(event) {
                if thread.parent != 0 {
                    self.parents.insert(thread.process, thread.parent);
                }
                // An earlier description of the thread may lack its parent.
                self.processes.remove(&thread.tid);
                self.thread(now.ns, (thread.tid, thread.process), Some(thread.comm), out)?;
            }
        }
        if let Some((_, [tid, program])) = self.exec.filter(|(exec, _)| *exec == key) {
            // A thread that executes a program becomes the first thread of its process.
            let pid = integer(event.value(tid));
            if let (Some(pid), Some(program)) = (pid, text(event.value(program))) {
                self.processes.insert(pid, pid);
                // The path of a descriptor is not that of the program.
                let is_comm = program.starts_with(b"/dev/fd/");
                let name = match is_comm {
                    true => now.schedule.comm(pid),
                    false => Some(program),
                };
                let name = name.map(|name| Line(name).to_string());
                let tree = self.process(pid, name, is_comm);
                self.put(Some(now.ns), Data::ProcessTree(tree), out)?;
            }
        }
        Ok(())
    }
}

impl Format for Perfetto<'_> {
    fn begin(&mut self, ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let clock = self.metadata.clock;
        let clock_value = |clock_id, timestamp| Clock {
            clock_id: Some(clock_id),
            timestamp: Some(timestamp),
        };
        // Time from the epoch to the 0 of the trace's clock.
        let zero = u64::try_from(clock.since_epoch(0)).ok();
        let real = zero.and_then(|zero| zero.checked_add(ns));
        let snapshot = ClockSnapshot {
            clocks: [
                Some(clock_value(BOOTTIME, ns)),
                real.map(|real| clock_value(REALTIME, real)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            primary_trace_clock: Some(BOOTTIME),
        };
        self.put(Some(ns), Data::ClockSnapshot(snapshot), out)?;
        let env = |name: &str| self.metadata.env.get(name).cloned();
        let system = SystemInfo {
            utsname: Some(Utsname {
                sysname: env("sysname"),
                version: env("kernel_version"),
                release: env("kernel_release"),
                machine: Some(architecture(self.metadata).machine().to_owned()),
            }),
        };
        self.put(None, Data::SystemInfo(system), out)
    }

    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.tell(event, now, out)?;
        let Some(mapping) = self.mappings.get(&key(event.layout)) else {
            return Ok(());
        };
        let bundle = self.bundles.entry(now.cpu).or_default();
        let tid = now.task.map(|task| task.tid);
        bundle.add(now.ns, tid, |out| mapping.put(out, event, now));
        if bundle.events >= BUNDLE {
            self.flush(now.cpu, out)?;
        }
        Ok(())
    }

    fn loss(&mut self, loss: &Loss, out: &mut dyn Write) -> io::Result<()> {
        self.flush(loss.cpu, out)?;
        self.bundles.entry(loss.cpu).or_default().is_lossy = true;
        Ok(())
    }

    fn end(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let mut cpus: Vec<u32> = self.bundles.keys().copied().collect();
        cpus.sort_unstable();
        cpus.into_iter().try_for_each(|cpu| self.flush(cpu, out))
    }
}
