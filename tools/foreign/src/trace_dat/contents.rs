// SPDX-License-Identifier: GPL-2.0

//! The parts of a `trace.dat`: versions 6 and 7.
//!
//! Version 6 has its parts one after the other. Version 7 has a list of options that tell where each part is; a part
//! may be compressed.

use super::options::{self, Options};
use crate::bytes::{Cursor, Source};
use crate::compressed::Compression;
use crate::ftrace::{EventFormat, PageLayout};
use system::Result;

/// The first bytes of a file.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// The maximum size of a part when it is decompressed.
const PART: u32 = 1 << 28;

/// The maximum size of a sub-buffer.
const PAGE: u32 = 1 << 24;

/// The contents of a file.
#[derive(Debug, Default)]
pub struct Contents {
    /// The size of a sub-buffer.
    pub page_size: u32,
    /// The compression of parts and of events.
    pub compression: Option<Compression>,
    /// The header of a sub-buffer.
    pub layout: PageLayout,
    /// The events.
    pub formats: Vec<EventFormat>,
    /// The kernel's functions, as `/proc/kallsyms` has them.
    pub kallsyms: String,
    /// The names of threads by id.
    pub comms: Vec<(i32, String)>,
    /// The formats of trace_printk() by address.
    pub printk: Vec<(u64, String)>,
    /// Values of its options.
    pub options: Options,
    /// The events of each buffer. The first one is the main buffer, whose name is empty.
    pub buffers: Vec<Buffer>,
}

/// A buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Its name; empty: the main one.
    pub name: String,
    /// Its clock.
    pub clock: String,
    /// The size of its sub-buffers.
    pub page_size: u32,
    /// Whether its events are compressed.
    pub is_compressed: bool,
    /// The events of each CPU.
    pub cpus: Vec<CpuData>,
}

/// The events of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuData {
    /// The CPU.
    pub cpu: u32,
    /// The offset in the file.
    pub offset: u64,
    /// The number of bytes.
    pub size: u64,
}

/// Reads the parts of a file. It begins with [`MAGIC`].
pub fn read(source: &Source) -> Result<Contents> {
    let mut at = Cursor::new(source, MAGIC.len() as u64);
    let version = at.name()?;
    if !matches!(version.as_str(), "6" | "7") {
        let what = format!("a trace.dat of version `{version}`: rtrace reads versions 6 and 7");
        return Err(at.wrong(what));
    }
    if at.u8()? != 0 {
        return Err(at.wrong("a trace.dat of a big-endian machine, which rtrace does not read"));
    }
    let long = at.u8()?;
    if long != 8 {
        let what = format!(
            "a trace.dat of a machine of {} bits: rtrace reads those of 64 bits",
            8 * u32::from(long)
        );
        return Err(at.wrong(what));
    }
    let mut this = Contents {
        page_size: page_size(&mut at)?,
        ..Contents::default()
    };
    match version.as_str() {
        "6" => this.version_6(source, at)?,
        _ => this.version_7(source, at)?,
    }
    if this.buffers.iter().all(|buffer| buffer.cpus.is_empty()) && this.options.has_latency {
        let what = "a trace.dat with the text of a latency tracer instead of events";
        return Err(source.wrong(0, what));
    }
    Ok(this)
}

/// The size of sub-buffers.
pub fn page_size(at: &mut Cursor<'_>) -> Result<u32> {
    let size = at.u32()?;
    if !(64..=PAGE).contains(&size) || size % 8 != 0 {
        return Err(at.wrong(format!("sub-buffers of {size} bytes")));
    }
    Ok(size)
}

impl Contents {
    /// Reads the description of events in a `perf.data`: perf writes it as version 6 begins, up to the names of threads.
    pub fn of_perf(source: &Source, offset: u64, bytes: &[u8]) -> Result<Self> {
        let mut at = Cursor::of_section(source, offset, bytes);
        if at.bytes(MAGIC.len() as u64)? != MAGIC {
            return Err(at.wrong("no description of tracepoints begins here"));
        }
        // The version, the order of bytes and the size of a word.
        at.name()?;
        at.skip(2)?;
        at.u32()?;
        let mut this = Self::default();
        this.header(&mut at)?;
        this.tracer_events(&mut at)?;
        this.events(&mut at)?;
        Ok(this)
    }

    fn version_6(&mut self, source: &Source, mut at: Cursor<'_>) -> Result<()> {
        self.header(&mut at)?;
        self.tracer_events(&mut at)?;
        self.events(&mut at)?;
        self.kallsyms(&mut at)?;
        self.printk(&mut at)?;
        self.comms(&mut at)?;
        let cpus = at.u32()?;
        let mut main = Buffer {
            page_size: self.page_size,
            ..Buffer::default()
        };
        let buffers = self.rest_6(source, &mut at, cpus, &mut main)?;
        main.clock.clone_from(&self.options.clock);
        self.buffers.push(main);
        for (offset, name) in buffers {
            let mut buffer = Buffer {
                name,
                clock: self.options.clock.clone(),
                page_size: self.page_size,
                ..Buffer::default()
            };
            self.rest_6(source, &mut Cursor::new(source, offset), cpus, &mut buffer)?;
            self.buffers.push(buffer);
        }
        Ok(())
    }

    /// Reads the options and the places of the events of a buffer in version 6. Returns the places of other buffers.
    fn rest_6(
        &mut self,
        source: &Source,
        at: &mut Cursor<'_>,
        cpus: u32,
        buffer: &mut Buffer,
    ) -> Result<Vec<(u64, String)>> {
        let mut others = Vec::new();
        let mut kind = at.bytes(10)?;
        if kind.starts_with(b"options") {
            loop {
                let option = at.u16()?;
                if option == options::DONE {
                    break;
                }
                let size = at.u32()?;
                let (begin, bytes) = (at.offset(), at.bytes(size.into())?);
                let mut at = Cursor::of_section(source, begin, &bytes);
                match option {
                    options::BUFFER => others.push((at.u64()?, at.text(at.left())?)),
                    option => self.options.read(option, &mut at)?,
                }
            }
            kind = at.bytes(10)?;
        }
        if kind.starts_with(b"latency") {
            self.options.has_latency = true;
            return Ok(others);
        }
        if !kind.starts_with(b"flyrecord") {
            return Err(at.wrong("neither options nor events begin here"));
        }
        let count = self.options.cpus.take().unwrap_or(cpus);
        for cpu in 0..count {
            let data = CpuData {
                cpu,
                offset: at.u64()?,
                size: at.u64()?,
            };
            buffer.cpus.push(data);
        }
        Ok(others)
    }

    fn version_7(&mut self, source: &Source, mut at: Cursor<'_>) -> Result<()> {
        let name = at.name()?;
        at.name()?;
        self.compression = match name.as_str() {
            "none" | "" => None,
            name => {
                let unknown = || {
                    at.wrong(format!(
                        "a trace.dat compressed by `{name}`, which rtrace does not read"
                    ))
                };
                Some(Compression::named(name).ok_or_else(unknown)?)
            }
        };
        let mut next = at.u64()?;
        let mut before = 0;
        let mut parts = Vec::new();
        while next != 0 {
            // So the list ends.
            if next <= before {
                return Err(source.wrong(before, "options that follow themselves"));
            }
            before = next;
            let (id, bytes, _) = self.part(source, next)?;
            if id != options::DONE {
                return Err(source.wrong(next, "no options begin here"));
            }
            let mut at = Cursor::of_section(source, next, &bytes);
            next = loop {
                let (option, size) = (at.u16()?, at.u32()?);
                let bytes = at.bytes(size.into())?;
                let mut at = Cursor::of_section(source, before, &bytes);
                match option {
                    options::DONE => break at.u64()?,
                    options::BUFFER => self.buffer_7(source, &mut at)?,
                    options::HEADER..=options::COMMS => parts.push((option, at.u64()?)),
                    options::BUFFER_TEXT => self.options.has_latency = true,
                    option => self.options.read(option, &mut at)?,
                }
            };
        }
        for (option, offset) in parts {
            let (id, bytes, _) = self.part(source, offset)?;
            if id != option {
                return Err(
                    source.wrong(offset, format!("part {id} in the place of part {option}"))
                );
            }
            let mut at = Cursor::of_section(source, offset, &bytes);
            match option {
                options::HEADER => self.header(&mut at)?,
                options::TRACER_EVENTS => self.tracer_events(&mut at)?,
                options::EVENTS => self.events(&mut at)?,
                options::KALLSYMS => self.kallsyms(&mut at)?,
                options::PRINTK => self.printk(&mut at)?,
                _ => self.comms(&mut at)?,
            }
        }
        self.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
        Ok(())
    }

    /// Reads the part at an offset: its kind, its bytes, and whether they are compressed. The events of a buffer are
    /// no such part.
    fn part(&self, source: &Source, offset: u64) -> Result<(u16, Vec<u8>, bool)> {
        let mut at = Cursor::new(source, offset);
        let (id, is_compressed, size) = head(&mut at)?;
        if !is_compressed {
            return Ok((id, at.bytes(size)?, false));
        }
        let (stored, size) = (at.u32()?, at.u32()?);
        if size > PART {
            return Err(at.wrong(format!("a part of {size} bytes when decompressed")));
        }
        let bytes = at.bytes(stored.into())?;
        let compression = self
            .compression
            .ok_or_else(|| at.wrong("a compressed part in a file without compression"))?;
        let bytes = compression.decompress(&bytes, size as usize);
        let bytes =
            bytes.map_err(|why| source.wrong(offset, format!("cannot decompress: {why}")))?;
        Ok((id, bytes, true))
    }

    /// Reads the option of a buffer in version 7.
    fn buffer_7(&mut self, source: &Source, at: &mut Cursor<'_>) -> Result<()> {
        let offset = at.u64()?;
        let mut buffer = Buffer {
            name: at.name()?,
            clock: at.name()?,
            page_size: page_size(at)?,
            ..Buffer::default()
        };
        let count = at.u32()?;
        for _ in 0..count {
            let data = CpuData {
                cpu: at.u32()?,
                offset: at.u64()?,
                size: at.u64()?,
            };
            buffer.cpus.push(data);
        }
        let (id, is_compressed, _) = head(&mut Cursor::new(source, offset))?;
        if id != options::BUFFER {
            return Err(source.wrong(offset, "no events of a buffer begin here"));
        }
        buffer.is_compressed = is_compressed;
        self.buffers.push(buffer);
        Ok(())
    }

    fn header(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        for name in ["header_page", "header_event"] {
            let found = at.name()?;
            if found != name {
                return Err(at.wrong(format!("`{found}` in the place of {name}")));
            }
            let size = at.u64()?;
            let text = at.text(size)?;
            if name == "header_page" {
                self.layout = PageLayout::parse(&text).map_err(|what| at.wrong(what))?;
            }
        }
        Ok(())
    }

    fn tracer_events(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        let count = at.u32()?;
        self.add_events("ftrace", count, at)
    }

    fn events(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        for _ in 0..at.u32()? {
            let (system, count) = (at.name()?, at.u32()?);
            self.add_events(&system, count, at)?;
        }
        Ok(())
    }

    fn add_events(&mut self, system: &str, count: u32, at: &mut Cursor<'_>) -> Result<()> {
        for _ in 0..count {
            let size = at.u64()?;
            let text = at.text(size)?;
            let format = EventFormat::parse(system, &text).map_err(|what| at.wrong(what))?;
            self.formats.push(format);
        }
        Ok(())
    }

    fn kallsyms(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        let size = at.u32()?;
        self.kallsyms = at.text(size.into())?;
        Ok(())
    }

    /// Reads lines `0xADDRESS : "FORMAT"`.
    fn printk(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        let size = at.u32()?;
        let text = at.text(size.into())?;
        let line = |line: &str| {
            let (address, format) = line.split_once(':')?;
            let address = address.trim().strip_prefix("0x")?;
            let format = format.trim().strip_prefix('"')?.strip_suffix('"')?;
            Some((u64::from_str_radix(address, 16).ok()?, format.to_owned()))
        };
        self.printk = text.lines().filter_map(line).collect();
        Ok(())
    }

    /// Reads lines `TID NAME`.
    fn comms(&mut self, at: &mut Cursor<'_>) -> Result<()> {
        let size = at.u64()?;
        let text = at.text(size)?;
        let line = |line: &str| {
            let (tid, comm) = line.split_once(' ')?;
            Some((tid.parse().ok()?, comm.to_owned()))
        };
        self.comms = text.lines().filter_map(line).collect();
        Ok(())
    }
}

/// Reads the head of a part of version 7: its kind, whether it is compressed, and its size.
fn head(at: &mut Cursor<'_>) -> Result<(u16, bool, u64)> {
    let (id, flags) = (at.u16()?, at.u16()?);
    at.u32()?;
    Ok((id, flags & 1 != 0, at.u64()?))
}
