// SPDX-License-Identifier: GPL-2.0

//! Records all mappings during a recording: the state at the start from /proc, and from then on the kernel's records
//! for perf about mappings, executed programs, and threads.

use super::elf;
use super::mappings::{self, MapLine};
use anyhow::Context;
use perf_event::data::endian::Native;
use perf_event::data::parse::{ParseConfig, Parser};
use perf_event::data::{Comm, Exit, Fork, Lost, Mmap2, RecordMetadata, Visitor};
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::io::Errno;
use rustix::time::{clock_gettime, ClockId};
use std::collections::hash_map::{Entry, HashMap};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::beside::MAPPINGS;
use system::access::Access;
use system::cpus;
use terminal::say;
use uuid::Uuid;

/// The size of the buffer of a CPU between two reads.
const BUFFER: usize = 1 << 19;

/// The interval of these reads.
const PERIOD: Duration = Duration::from_millis(100);

/// The bit in `misc` of a record with a thread's name: the thread has executed a program.
const COMM_EXEC: u16 = 1 << 13;

/// Records from its creation until it [ends](Self::end).
pub struct Recorder {
    /// Two clocks at one moment.
    clocks: [u64; 2],
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<File>>,
}

impl Recorder {
    /// Begins. If it does not end, it leaves no file on the disk of `dir`.
    pub fn begin(dir: &Path) -> anyhow::Result<Self> {
        let there = dir.ancestors().find(|dir| dir.exists());
        let file = tempfile::tempfile_in(there.unwrap_or(Path::new(".")));
        let mut out = BufWriter::new(file.with_context(|| dir.display().to_string())?);
        let mut cpus = Cpus::default();
        cpus.open_new()
            .context("cannot record the mappings of programs (perf_event_open)")?;
        // Changes in the meantime are recorded already.
        write_processes(&mut out).context("cannot write the mappings of programs")?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let thread = thread::spawn(move || {
            let mut is_blind = false;
            loop {
                // Before the read, so that records that follow are read, too.
                let is_last = is_over.load(Ordering::Acquire);
                cpus.write_new(&mut out)?;
                if is_last {
                    return Ok(out.into_inner()?);
                }
                thread::park_timeout(PERIOD);
                match cpus.open_new() {
                    // A CPU of the list has gone offline meanwhile. The next pass has a new list.
                    Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
                    Err(error) if !is_blind => {
                        say(format_args!(
                            "cannot record the mappings of programs on a new CPU, so some of their \
                             functions will have no name: {error}"
                        ));
                        is_blind = true;
                    }
                    _ => {}
                }
            }
        });
        Ok(Self {
            clocks: [now(ClockId::Monotonic), now(ClockId::Realtime)],
            stop,
            thread,
        })
    }

    /// Ends the recording, and writes it beside the trace in `dir`.
    pub fn end(self, dir: &Path, trace: Uuid, access: Access) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let written = self
            .thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes it has panicked")));
        let mut from = written.context("cannot write the mappings of programs")?;
        MAPPINGS.write(dir, access, |to| {
            let [monotonic, realtime] = self.clocks;
            to.write_all(mappings::head(trace, monotonic, realtime).as_bytes())?;
            from.rewind()?;
            io::copy(&mut from, to).map(drop)
        })?;
        Ok(())
    }
}

fn now(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// The CPUs on which records may appear.
#[derive(Default)]
struct Cpus {
    /// The kernel's last list of them.
    list: String,
    online: Vec<usize>,
    samplers: HashMap<usize, Sampler>,
}

impl Cpus {
    /// Opens the CPUs that came online, too.
    fn open_new(&mut self) -> io::Result<()> {
        let list = fs::read_to_string(cpus::ONLINE)?;
        if list == self.list {
            return Ok(());
        }
        let online = cpus::parse(&list, u32::MAX).into_iter();
        self.online = online.map(|cpu| cpu as usize).collect();
        for &cpu in &self.online {
            if let Entry::Vacant(entry) = self.samplers.entry(cpu) {
                entry.insert(open(cpu)?);
            }
        }
        self.list = list;
        Ok(())
    }

    fn write_new(&mut self, out: &mut impl Write) -> io::Result<()> {
        for sampler in self.samplers.values_mut() {
            write_records(sampler, out)?;
        }
        // The buffers of CPUs that went offline have been read completely.
        self.samplers.retain(|cpu, _| self.online.contains(cpu));
        Ok(())
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
        .sample_id_all(true)
        .sample(SampleFlag::TIME)
        .clockid(Clock::MONOTONIC)
        .enabled(true)
        .build()?
        .sampled(BUFFER)
}

/// Writes a line for each relevant record.
fn write_records(sampler: &mut Sampler, out: &mut impl Write) -> io::Result<()> {
    let config: ParseConfig<Native> = sampler.config().clone();
    while let Some(record) = sampler.next_record() {
        let mut bytes = record.ty().to_ne_bytes().to_vec();
        bytes.extend(record.misc().to_ne_bytes());
        let size = u16::try_from(record.len() + 8).unwrap_or(0);
        bytes.extend(size.to_ne_bytes());
        record.data().iter().for_each(|part| bytes.extend(*part));
        let line = Parser::new(&bytes[..], config.clone()).parse_record(Line);
        // A record that the library cannot parse is not about mappings.
        if let Ok(Some(line)) = line {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Makes the line of a record, if the record is relevant.
struct Line;

impl<'a> Visitor<'a> for Line {
    type Output = Option<String>;

    fn visit_unimplemented(self, _: RecordMetadata) -> Option<String> {
        None
    }

    fn visit_mmap2(self, map: Mmap2<'a>, metadata: RecordMetadata) -> Option<String> {
        let build_id = map.build_id().map(|id| {
            let bytes = id.iter().map(|byte| format!("{byte:02x}"));
            bytes.collect::<String>()
        });
        let line = MapLine {
            ns: metadata.sample_id().time()?,
            pid: map.pid,
            address: map.addr,
            len: map.len,
            offset: map.pgoff,
            build_id: build_id.as_deref(),
            path: &map.filename_os().to_string_lossy(),
        };
        Some(line.to_string())
    }

    fn visit_comm(self, comm: Comm<'a>, metadata: RecordMetadata) -> Option<String> {
        let ns = metadata.sample_id().time()?;
        let is_exec = metadata.misc() & COMM_EXEC != 0;
        is_exec.then(|| format!("exec {ns} {}", comm.pid))
    }

    fn visit_fork(self, fork: Fork, _: RecordMetadata) -> Option<String> {
        let Fork {
            pid,
            ppid,
            tid,
            time,
            ..
        } = fork;
        Some(format!("fork {time} {pid} {tid} {ppid}"))
    }

    fn visit_exit(self, exit: Exit, _: RecordMetadata) -> Option<String> {
        let Exit { pid, tid, time, .. } = exit;
        Some(format!("exit {time} {pid} {tid}"))
    }

    fn visit_lost(self, lost: Lost, metadata: RecordMetadata) -> Option<String> {
        let ns = metadata.sample_id().time()?;
        say(format_args!(
            "{} changes of programs' mappings were lost: some of their functions will have no name",
            lost.lost
        ));
        Some(format!("lost {ns} {}", lost.lost))
    }
}

/// Build ids of files. A path alone does not identify a file, because a container has its own files.
type BuildIds = HashMap<String, Option<String>>;

/// Writes the mappings of all processes, and their threads.
fn write_processes(out: &mut impl Write) -> io::Result<()> {
    let mut ids = BuildIds::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // The process may end meanwhile.
        let _ = write_process(pid, &process.path(), &mut ids, out);
    }
    out.flush()
}

fn write_process(pid: u32, dir: &Path, ids: &mut BuildIds, out: &mut impl Write) -> io::Result<()> {
    let maps = fs::read(dir.join("maps"))?;
    let mut is_program = false;
    for line in String::from_utf8_lossy(&maps).lines() {
        let Some(Code {
            begin,
            end,
            offset,
            file,
            path,
        }) = code(line)
        else {
            continue;
        };
        let build_id = ids.entry(file.to_owned()).or_insert_with(|| {
            let own = dir.join("root").join(path.trim_start_matches('/'));
            elf::build_id(&own)
        });
        is_program = true;
        let line = MapLine {
            ns: 0,
            pid,
            address: begin,
            len: end - begin,
            offset,
            build_id: build_id.as_deref(),
            path,
        };
        writeln!(out, "{line}")?;
    }
    if !is_program {
        return Ok(());
    }
    for thread in fs::read_dir(dir.join("task"))?.flatten() {
        let tid = thread.file_name();
        writeln!(out, "fork 0 {pid} {} {pid}", tid.to_string_lossy())?;
    }
    Ok(())
}

/// Mapped code.
#[derive(Debug, PartialEq, Eq)]
struct Code<'a> {
    begin: u64,
    end: u64,
    /// Its offset in the file.
    offset: u64,
    /// The file: its device, inode and path.
    file: &'a str,
    path: &'a str,
}

/// The mapped code of a line of `/proc/PID/maps`. [`None`]: the line is of other memory.
fn code(line: &str) -> Option<Code<'_>> {
    let mut words = line.splitn(4, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let offset = words.next()?;
    let file = words.next()?;
    let path = file.splitn(3, ' ').nth(2)?.trim_start();
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let code = Code {
        begin: hex(begin)?,
        end: hex(end)?,
        offset: hex(offset)?,
        file,
        path,
    };
    (is_code && !path.is_empty()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_maps() {
        for (line, found) in [
            (
                "55d0c8a00000-55d0c8a20000 r-xp 00002000 08:01 123                        /usr/bin/a b",
                Some((0x55d0_c8a0_0000, 0x55d0_c8a2_0000, 0x2000, "/usr/bin/a b")),
            ),
            ("7f00-7f10 r--p 00000000 08:01 123 /usr/bin/a", None),
            ("7f00-7f10 r-xp 00000000 00:00 0 ", None),
            ("7f00-7f10 r-xp 00000000 00:00 0 [vdso]", Some((0x7f00, 0x7f10, 0, "[vdso]"))),
            ("nonsense", None),
        ] {
            let code = code(line).map(|code| (code.begin, code.end, code.offset, code.path));
            assert_eq!(code, found, "{line}");
        }
    }

    #[test]
    fn a_path_is_another_file_in_another_container() {
        let this = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut ids = BuildIds::new();
        let mut id_of = |name: &str, device, has_program| {
            let process = dir.path().join(name);
            fs::create_dir_all(process.join("root/bin")).unwrap();
            fs::create_dir_all(process.join("task")).unwrap();
            let maps = format!("1000-2000 r-xp 00000000 {device} 7      /bin/program\n");
            fs::write(process.join("maps"), maps).unwrap();
            if has_program {
                std::os::unix::fs::symlink(&this, process.join("root/bin/program")).unwrap();
            }
            let mut out = Vec::new();
            write_process(1, &process, &mut ids, &mut out).unwrap();
            let line = String::from_utf8(out).unwrap();
            line.split(' ').nth(6).unwrap().to_owned()
        };
        let id = elf::build_id(&this).unwrap();
        assert_eq!(id_of("one", "00:1e", true), id);
        assert_eq!(id_of("other", "00:1f", false), "-");
        assert_eq!(id_of("like-one", "00:1e", false), id);
    }

    #[test]
    fn this_process_is_written() {
        let mut out = Vec::new();
        write_process(
            std::process::id(),
            Path::new("/proc/self"),
            &mut HashMap::new(),
            &mut out,
        )
        .unwrap();
        let out = String::from_utf8(out).unwrap();
        let this = std::env::current_exe().unwrap();
        let line = out
            .lines()
            .find(|line| line.ends_with(this.to_str().unwrap()));
        let id = elf::build_id(&this).unwrap();
        assert!(line.unwrap().contains(&format!(" {id} ")), "{out}");
        let pid = std::process::id();
        assert!(
            out.contains(&format!("fork 0 {pid} {pid} {pid}\n")),
            "{out}"
        );
    }
}
