// SPDX-License-Identifier: GPL-2.0

//! The notes that describe the probes of a file.

use super::argument::{self, Argument};
use anyhow::{anyhow, bail, Context};
use object::elf::{PF_W, PF_X};
use object::{Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use symbols::Contents;
use terminal::printable;

/// The section with the notes.
pub const SECTION: &str = ".note.stapsdt";

/// The section whose address the notes have. It moves with the code if the file is prelinked.
const BASE: &str = ".stapsdt.base";

/// Owner and type of the notes.
const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;

/// A location of a probe.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Site {
    /// Program or library that the probe belongs to.
    pub provider: String,
    /// Name of the probe.
    pub name: String,
    /// Address of the location in the file.
    pub address: u64,
    /// Offset of the location in the file.
    #[serde(skip)]
    pub offset: u64,
    /// Number that is not 0 while the probe is recorded. The program computes the arguments only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semaphore: Option<Semaphore>,
    /// Arguments at this location.
    pub arguments: Vec<Argument>,
}

/// A probe's number of users in a process.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Semaphore {
    /// Address in the file.
    pub address: u64,
    /// Offset in the file.
    #[serde(skip)]
    pub offset: u64,
}

type Elf<'a> = object::File<'a, &'a Contents>;

/// The probes of a program or library, in the order of its notes.
pub fn sites(file: &Path) -> anyhow::Result<Vec<Site>> {
    let shown = file.display();
    let contents = Contents::open(file).with_context(|| format!("{shown}"))?;
    let elf = object::File::parse(&contents)
        .map_err(|error| anyhow!("{shown} is not a program or library: {error}"))?;
    read(&elf).with_context(|| format!("{shown}: {SECTION}"))
}

fn read(elf: &Elf<'_>) -> anyhow::Result<Vec<Site>> {
    let Some(section) = elf.section_by_name(SECTION) else {
        return Ok(Vec::new());
    };
    if !elf.is_little_endian() {
        bail!("the processor has another order of bytes");
    }
    let base = elf.section_by_name(BASE).map(|section| section.address());
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let symbols = symbols.filter(ObjectSymbol::is_definition);
    let symbols: HashMap<_, _> = symbols
        .filter_map(|symbol| Some((symbol.name().ok()?, symbol.address())))
        .collect();
    let in_file = |address: u64, flag: u32| {
        elf.segments().find_map(|segment| {
            let SegmentFlags::Elf { p_flags } = segment.flags() else {
                return None;
            };
            let (offset, size) = segment.file_range();
            let inside = address.checked_sub(segment.address())?;
            (p_flags & flag != 0 && inside < size).then(|| offset + inside)
        })
    };
    let mut bytes = Bytes(section.data().context("it cannot be read")?);
    let mut sites = Vec::new();
    while !bytes.0.is_empty() {
        let found = note(&mut bytes, elf.is_64()).context("it ends inside a note")?;
        let Some(note) = found else {
            continue;
        };
        let moved = match base {
            Some(base) if note.base != 0 => base.wrapping_sub(note.base),
            _ => 0,
        };
        let address = note.address.wrapping_add(moved);
        let Some(offset) = in_file(address, PF_X) else {
            bail!("no code is at {address:#x}");
        };
        let semaphore = (note.semaphore != 0).then(|| {
            let address = note.semaphore.wrapping_add(moved);
            let offset = in_file(address, PF_W);
            let offset = offset.with_context(|| format!("no data is at {address:#x}"))?;
            anyhow::Ok(Semaphore { address, offset })
        });
        let at = argument::Context {
            is_arm64: elf.architecture() == Architecture::Aarch64,
            is_64_bit: elf.is_64(),
            address,
            symbols: &symbols,
        };
        sites.push(Site {
            provider: printable(&note.provider),
            name: printable(&note.name),
            address,
            offset,
            semaphore: semaphore.transpose()?,
            arguments: argument::parse(&note.arguments, &at),
        });
    }
    Ok(sites)
}

/// A note, as it is in the file.
struct Note {
    address: u64,
    base: u64,
    semaphore: u64,
    provider: String,
    name: String,
    arguments: String,
}

/// The rest of the section.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn address(&mut self, is_64_bit: bool) -> Option<u64> {
        match is_64_bit {
            true => Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            false => Some(self.word()?.into()),
        }
    }

    /// Takes bytes, and the bytes up to the next multiple of 4 if the section has them.
    fn padded(&mut self, len: u32) -> Option<&'a [u8]> {
        let taken = self.take(len.try_into().ok()?)?;
        let padding = taken.len().next_multiple_of(4) - taken.len();
        self.take(padding.min(self.0.len()))?;
        Some(taken)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.0.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(self.take(len)?).into_owned();
        self.take(1)?;
        Some(text)
    }
}

/// Takes the next note. The inner [`None`]: it is another kind of note.
fn note(bytes: &mut Bytes<'_>, is_64_bit: bool) -> Option<Option<Note>> {
    let (owner, content, ty) = (bytes.word()?, bytes.word()?, bytes.word()?);
    let owner = bytes.padded(owner)?;
    let mut content = Bytes(bytes.padded(content)?);
    if (owner, ty) != (OWNER, TYPE) {
        return Some(None);
    }
    Some(Some(Note {
        address: content.address(is_64_bit)?,
        base: content.address(is_64_bit)?,
        semaphore: content.address(is_64_bit)?,
        provider: content.text()?,
        name: content.text()?,
        // The last text may end with the note.
        arguments: content.text().unwrap_or_default(),
    }))
}
