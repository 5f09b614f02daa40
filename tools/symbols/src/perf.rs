// SPDX-License-Identifier: GPL-2.0

//! The kernel's records for perf about changes of code: mappings of programs, executed programs, threads; modules, BPF
//! programs and trampolines of the kernel.

use super::kernel::{KernelSymbol, Owner};
use perf_event::data::endian::Native;
use perf_event::data::parse::{ParseConfig, Parser};
use perf_event::data::{
    Comm, Exit, Fork, KSymbol, KSymbolFlags, KSymbolType, Lost, Mmap2, RecordMetadata, Sample,
    Visitor,
};
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::collections::hash_map::{Entry, HashMap};
use std::fs;
use std::io;
use system::cpus;

/// The size of a CPU's buffer for mappings and threads between two reads.
const BUFFER: usize = 1 << 19;

/// The size of a CPU's buffer for loads or unloads of modules.
const MODULES: usize = 1 << 14;

/// The bit in `misc` of a record with a thread's name: the thread has executed a program.
const COMM_EXEC: u16 = 1 << 13;

/// A change. Times are CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug)]
pub enum Change {
    /// Code was mapped. `id` is that of a [`MappedFile`](super::MappedFile).
    Map {
        ns: u64,
        pid: u32,
        begin: u64,
        len: u64,
        offset: u64,
        id: Option<String>,
        path: String,
    },
    /// A thread began.
    Fork {
        ns: u64,
        pid: u32,
        tid: u32,
        parent: u32,
    },
    /// A process executed a program.
    Exec { ns: u64, pid: u32 },
    /// A thread ended.
    Exit { ns: u64, pid: u32, tid: u32 },
    /// The kernel loaded code.
    Load {
        ns: u64,
        owner: Owner,
        functions: Option<Vec<KernelSymbol>>,
    },
    /// The kernel unloaded code.
    Unload { ns: u64, owner: Owner },
    /// Changes were lost.
    Lost { ns: u64, count: u64 },
}

/// The CPUs on which records may appear.
pub struct Cpus {
    /// The kernel's last list of them.
    list: String,
    online: Vec<usize>,
    samplers: HashMap<usize, Vec<Sampler>>,
    /// The events at a load and an unload of a module. [`None`]: this machine does not show them.
    modules: Option<[ModuleEvent; 2]>,
}

/// An event that has the name of a module.
#[derive(Clone, Copy, Debug)]
struct ModuleEvent {
    id: u64,
    /// The place of the name's place in the record.
    name: usize,
}

impl ModuleEvent {
    fn find(name: &str) -> Option<Self> {
        let read = |file: &str| {
            let roots = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
            let mut paths = roots
                .map(|root| format!("{root}/events/module/{name}/{file}"))
                .into_iter();
            paths.find_map(|path| fs::read_to_string(path).ok())
        };
        let format = read("format")?;
        let field = format.lines().find(|line| line.contains("char[] name;"))?;
        let offset = field.split("offset:").nth(1)?.split(';').next()?;
        Some(Self {
            id: read("id")?.trim().parse().ok()?,
            name: offset.parse().ok()?,
        })
    }

    /// The module of a record, if the record is of this event.
    fn module(&self, record: &[u8]) -> Option<String> {
        let event = u16::from_ne_bytes(record.get(..2)?.try_into().ok()?);
        if u64::from(event) != self.id {
            return None;
        }
        let place = record.get(self.name..self.name.checked_add(4)?)?;
        let place = u32::from_ne_bytes(place.try_into().ok()?);
        let (begin, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let name = record.get(begin..begin.checked_add(len)?)?;
        let name = name.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

impl Cpus {
    /// The CPUs that are online. Changes from now on are recorded.
    pub fn open() -> io::Result<Self> {
        let load = ModuleEvent::find("module_load");
        let mut cpus = Self {
            list: String::new(),
            online: Vec::new(),
            samplers: HashMap::new(),
            modules: load
                .zip(ModuleEvent::find("module_free"))
                .map(<[_; 2]>::from),
        };
        if let Err(error) = cpus.open_new() {
            // The kernel may refuse only the events of modules.
            if cpus.modules.take().is_none() {
                return Err(error);
            }
            cpus.samplers.clear();
            cpus.open_new()?;
        }
        Ok(cpus)
    }

    /// Whether loads and unloads of modules are recorded.
    pub fn sees_modules(&self) -> bool {
        self.modules.is_some()
    }

    /// Opens the CPUs that came online, too.
    pub fn open_new(&mut self) -> io::Result<()> {
        let list = fs::read_to_string(cpus::ONLINE)?;
        if list == self.list {
            return Ok(());
        }
        let online = cpus::parse(&list, u32::MAX).into_iter();
        self.online = online.map(|cpu| cpu as usize).collect();
        for &cpu in &self.online {
            if let Entry::Vacant(entry) = self.samplers.entry(cpu) {
                let mut samplers = vec![open(cpu)?];
                for event in self.modules.iter().flatten() {
                    samplers.push(open_module_event(cpu, *event)?);
                }
                entry.insert(samplers);
            }
        }
        self.list = list;
        Ok(())
    }

    /// Passes on all changes since the last call. Returns whether there were any.
    pub fn read(&mut self, mut change: impl FnMut(Change) -> io::Result<()>) -> io::Result<bool> {
        let mut any = false;
        let modules = self.modules;
        for sampler in self.samplers.values_mut().flatten() {
            let config: ParseConfig<Native> = sampler.config().clone();
            while let Some(record) = sampler.next_record() {
                let mut bytes = record.ty().to_ne_bytes().to_vec();
                bytes.extend(record.misc().to_ne_bytes());
                let size = u16::try_from(record.len() + 8).unwrap_or(0);
                bytes.extend(size.to_ne_bytes());
                record.data().iter().for_each(|part| bytes.extend(*part));
                let parsed = Parser::new(&bytes[..], config.clone()).parse_record(Reader(modules));
                // A record that the library cannot parse is not about code.
                if let Ok(Some(parsed)) = parsed {
                    change(parsed)?;
                    any = true;
                }
            }
        }
        // The buffers of CPUs that went offline have been read completely.
        self.samplers.retain(|cpu, _| self.online.contains(cpu));
        Ok(any)
    }
}

fn open(cpu: usize) -> io::Result<Sampler> {
    Builder::new(Software::DUMMY)
        .any_pid()
        .one_cpu(cpu)
        .mmap(true)
        .mmap2(true)
        .build_id(true)
        .comm(true)
        .comm_exec(true)
        .task(true)
        .ksymbol(true)
        .sample_id_all(true)
        .sample(SampleFlag::TIME)
        .clockid(Clock::MONOTONIC)
        .enabled(true)
        .build()?
        .sampled(BUFFER)
}

fn open_module_event(cpu: usize, event: ModuleEvent) -> io::Result<Sampler> {
    Builder::new(Tracepoint::with_id(event.id))
        .any_pid()
        .one_cpu(cpu)
        .include_kernel()
        .sample_period(1)
        .sample_id_all(true)
        .sample(SampleFlag::TIME)
        .sample(SampleFlag::RAW)
        .clockid(Clock::MONOTONIC)
        .enabled(true)
        .build()?
        .sampled(MODULES)
}

/// Reads a record, if it is a change.
struct Reader(Option<[ModuleEvent; 2]>);

impl<'a> Visitor<'a> for Reader {
    type Output = Option<Change>;

    fn visit_unimplemented(self, _: RecordMetadata) -> Option<Change> {
        None
    }

    fn visit_mmap2(self, map: Mmap2<'a>, metadata: RecordMetadata) -> Option<Change> {
        let build_id = map.build_id().map(|id| {
            let bytes = id.iter().map(|byte| format!("{byte:02x}"));
            bytes.collect::<String>()
        });
        let inode = || {
            let (major, minor, inode) = (map.maj()?, map.min()?, map.ino()?);
            (inode != 0).then(|| format!("{major:02x}:{minor:02x}:{inode}"))
        };
        Some(Change::Map {
            ns: metadata.sample_id().time()?,
            pid: map.pid,
            begin: map.addr,
            len: map.len,
            offset: map.pgoff,
            id: build_id.filter(|id| !id.is_empty()).or_else(inode),
            path: map.filename_os().to_string_lossy().into_owned(),
        })
    }

    fn visit_comm(self, comm: Comm<'a>, metadata: RecordMetadata) -> Option<Change> {
        let ns = metadata.sample_id().time()?;
        let is_exec = metadata.misc() & COMM_EXEC != 0;
        is_exec.then_some(Change::Exec { ns, pid: comm.pid })
    }

    fn visit_fork(self, fork: Fork, _: RecordMetadata) -> Option<Change> {
        Some(Change::Fork {
            ns: fork.time,
            pid: fork.pid,
            tid: fork.tid,
            parent: fork.ppid,
        })
    }

    fn visit_exit(self, exit: Exit, _: RecordMetadata) -> Option<Change> {
        Some(Change::Exit {
            ns: exit.time,
            pid: exit.pid,
            tid: exit.tid,
        })
    }

    fn visit_ksymbol(self, symbol: KSymbol<'a>, metadata: RecordMetadata) -> Option<Change> {
        let ns = metadata.sample_id().time()?;
        let owner = Owner::Made(symbol.addr);
        if symbol.flags.contains(KSymbolFlags::UNREGISTER) {
            return Some(Change::Unload { ns, owner });
        }
        let module = match symbol.ksym_type {
            KSymbolType::BPF => "bpf",
            _ => "__builtin__",
        };
        let function = KernelSymbol {
            address: symbol.addr,
            size: symbol.len.into(),
            name: String::from_utf8_lossy(&symbol.name)
                .trim_end_matches('\0')
                .to_owned(),
            module: Some(module.to_owned()),
        };
        Some(Change::Load {
            ns,
            owner,
            functions: Some(vec![function]),
        })
    }

    fn visit_sample(self, sample: Sample<'a>, _: RecordMetadata) -> Option<Change> {
        let (ns, record) = (sample.time()?, sample.raw()?);
        let [load, free] = self.0?;
        if let Some(name) = load.module(record) {
            return Some(Change::Load {
                ns,
                owner: Owner::Module(name),
                functions: None,
            });
        }
        let owner = Owner::Module(free.module(record)?);
        Some(Change::Unload { ns, owner })
    }

    fn visit_lost(self, lost: Lost, metadata: RecordMetadata) -> Option<Change> {
        Some(Change::Lost {
            ns: metadata.sample_id().time()?,
            count: lost.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_name_of_a_module() {
        let event = ModuleEvent { id: 300, name: 12 };
        let mut record = 300_u16.to_ne_bytes().to_vec();
        record.resize(12, 0);
        record.extend((16_u32 | (9 << 16)).to_ne_bytes());
        record.extend(*b"null_blk\0\0\0\0");
        assert_eq!(event.module(&record).as_deref(), Some("null_blk"));
        assert_eq!(event.module(&record[..20]), None);
        record[0] ^= 1;
        assert_eq!(event.module(&record), None);
    }
}
