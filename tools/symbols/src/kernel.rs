// SPDX-License-Identifier: GPL-2.0

//! The functions of the kernel, each at the time when it existed.
//!
//! The kernel's own code stays at its place. Modules, BPF programs and trampolines are loaded and unloaded, and the next
//! one may take the same addresses. So the functions are in [images](Image), and each image has a time.

use ctf::{Clock, Metadata};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use terminal::say;

/// A page. No code of another owner is in it.
const PAGE: u64 = 4096;

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelSymbol {
    /// Its address.
    pub address: u64,
    /// Its length, at most.
    pub size: u64,
    /// Its name.
    pub name: String,
    /// Its module, if it belongs to one.
    pub module: Option<String>,
}

/// Code that was loaded at once, and the time when it was there.
#[derive(Clone, Debug)]
pub struct Image {
    /// The time of its load; 0 if it was there from the start.
    pub from: u64,
    /// The time of its end; [`u64::MAX`] if it stayed.
    pub until: u64,
    /// The addresses from the first function to the end of the last one.
    range: Range<u64>,
    /// The functions, by address.
    functions: Arc<[KernelSymbol]>,
}

/// Functions of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Kernel(Vec<Image>);

impl Image {
    /// Makes an image. Of several functions at one address the first counts.
    pub fn new(from: u64, until: u64, mut functions: Vec<KernelSymbol>) -> Self {
        functions.sort_by_key(|symbol| symbol.address);
        functions.dedup_by_key(|symbol| symbol.address);
        let end = |symbol: &KernelSymbol| symbol.address.saturating_add(symbol.size);
        let begin = functions.first().map_or(0, |symbol| symbol.address);
        Self {
            from,
            until,
            range: begin..functions.iter().map(end).max().unwrap_or(0),
            functions: functions.into(),
        }
    }

    fn find(&self, ns: u64, address: u64) -> Option<&KernelSymbol> {
        if !self.range.contains(&address) || !(self.from..self.until).contains(&ns) {
            return None;
        }
        let behind = self
            .functions
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.functions.get(behind.checked_sub(1)?)?;
        (address - symbol.address < symbol.size).then_some(symbol)
    }
}

impl Kernel {
    /// The kernel with these images. Images without functions do not count.
    pub fn new(mut images: Vec<Image>) -> Self {
        images.retain(|image| !image.functions.is_empty());
        Self(images)
    }

    /// The functions of the running kernel, if the trace is of this boot; otherwise none. A module is known only since
    /// it is seen loaded. Prints a message if the kernel does not show its functions.
    pub fn running(metadata: &Metadata) -> Self {
        if !is_running(metadata) {
            return Self::default();
        }
        let owners = owners(&fs::read_to_string(KALLSYMS).unwrap_or_default());
        if owners.is_empty() {
            say("/proc/kallsyms shows no addresses: run as root to see names of kernel functions");
        }
        let live = live_modules();
        let image = |(owner, functions): (Owner, _)| {
            let from = match owner {
                Owner::Kernel => 0,
                Owner::Module(name) if !live.contains(&name) => return None,
                Owner::Module(name) => loaded_since(&name, &metadata.clock)?,
                // The kernel does not say how long it has been there.
                Owner::Made(_) => return None,
            };
            Some(Image::new(from, u64::MAX, functions))
        };
        Self::new(owners.into_iter().filter_map(image).collect())
    }

    /// Converts the times of its images.
    pub fn timed(mut self, trace: impl Fn(u64) -> u64) -> Self {
        for image in &mut self.0 {
            image.from = trace(image.from);
            if image.until != u64::MAX {
                image.until = trace(image.until);
            }
        }
        self
    }

    /// The function that contains an address at a time, and the image to which it belongs. [`None`] also if two images
    /// claim the address.
    pub fn find(&self, ns: u64, address: u64) -> Option<(&Image, &KernelSymbol)> {
        let found = |image| Some((image, Image::find(image, ns, address)?));
        let mut found = self.0.iter().filter_map(found);
        let (image, symbol) = found.next()?;
        let is_same = |(_, other): (_, &KernelSymbol)| other.name == symbol.name;
        found.all(is_same).then_some((image, symbol))
    }
}

/// Whether a trace was recorded since this machine booted.
pub fn is_running(metadata: &Metadata) -> bool {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    metadata.boot.is_some() && boot.trim().parse().ok() == metadata.boot
}

/// The owner of functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The kernel itself.
    Kernel,
    /// A module.
    Module(String),
    /// The function at this address, which the kernel made: a BPF program, a trampoline of ftrace.
    Made(u64),
}

/// The file with the kernel's functions.
pub const KALLSYMS: &str = "/proc/kallsyms";

/// A line of `/proc/kallsyms`.
struct Line<'a> {
    address: u64,
    is_code: bool,
    name: &'a str,
    module: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
        let name = words.next()?;
        let module = words.next().map(|word| word.trim_matches(['[', ']']));
        (address != 0).then_some(Self {
            address,
            is_code,
            name,
            module,
        })
    }

    fn owner(&self) -> Owner {
        match self.module {
            None => Owner::Kernel,
            Some("bpf") => Owner::Made(self.address),
            Some(module) if module.starts_with("__builtin__") => Owner::Made(self.address),
            Some(module) => Owner::Module(module.to_owned()),
        }
    }

    /// The end of a function, if `next` is the next symbol. The code of an owner is in pages of its own, so the last
    /// function of an owner ends with its page at the latest.
    fn end(&self, next: Option<&Self>) -> u64 {
        let page = (self.address | (PAGE - 1)).saturating_add(1);
        match next {
            Some(next) if next.is_code && next.owner() == self.owner() => next.address,
            Some(next) => next.address.min(page),
            None => page,
        }
    }
}

/// The functions of each owner in the text of `/proc/kallsyms`.
pub fn owners(text: &str) -> Vec<(Owner, Vec<KernelSymbol>)> {
    let mut lines: Vec<_> = text.lines().filter_map(Line::parse).collect();
    lines.sort_by_key(|line| line.address);
    let at = |name| {
        lines
            .iter()
            .find(|line| line.name == name && line.module.is_none())
    };
    let bounds = [("_stext", "_etext"), ("_sinittext", "_einittext")];
    let bounds = bounds.map(|(begin, end)| Some(at(begin)?.address..at(end)?.address));
    let is_text = |line: &Line<'_>| {
        line.module.is_some()
            || bounds[0].is_none()
            || bounds
                .iter()
                .flatten()
                .any(|text| text.contains(&line.address))
    };
    let mut owners: Vec<(Owner, Vec<KernelSymbol>)> = Vec::new();
    let mut places = HashMap::new();
    for (place, line) in lines.iter().enumerate() {
        if !line.is_code || !is_text(line) {
            continue;
        }
        let mut rest = lines[place..].iter();
        let next = rest.find(|next| next.address > line.address);
        let owner = line.owner();
        let place = *places.entry(owner.clone()).or_insert_with(|| {
            owners.push((owner, Vec::new()));
            owners.len() - 1
        });
        owners[place].1.push(KernelSymbol {
            address: line.address,
            size: line.end(next) - line.address,
            name: line.name.to_owned(),
            module: line.module.map(str::to_owned),
        });
    }
    owners
}

/// The names, states and addresses of the loaded modules.
pub fn modules() -> Vec<String> {
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let place = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?;
        Some(format!("{name} {} {}", words.nth(3)?, words.next()?))
    };
    modules.lines().filter_map(place).collect()
}

/// The modules whose initialisation is over. Before, `/proc/kallsyms` also has functions that the kernel is about to
/// free.
pub fn live_modules() -> HashSet<String> {
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let live = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        (words.nth(3)? == "Live").then_some(name)
    };
    modules.lines().filter_map(live).collect()
}

/// Looks at all modules, so that the kernel notes that they are loaded now. See [`loaded_since`].
pub fn see_modules() {
    for module in fs::read_dir("/sys/module").into_iter().flatten().flatten() {
        let _ = module.metadata();
    }
}

/// A time of the trace's clock since which the module has been loaded. The module's directory in sysfs is made at its
/// load. The kernel gives it a time when a program looks at it for the first time, or again after it ran out of memory.
fn loaded_since(module: &str, clock: &Clock) -> Option<u64> {
    let seen = fs::metadata(format!("/sys/module/{module}")).ok()?;
    let seen = i128::from(seen.mtime()) * 1_000_000_000 + i128::from(seen.mtime_nsec());
    Some(u64::try_from(seen - clock.since_epoch(0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(text: &str) -> Kernel {
        let image = |(_, functions)| Image::new(0, u64::MAX, functions);
        Kernel::new(owners(text).into_iter().map(image).collect())
    }

    #[test]
    fn functions_are_found_only_inside_their_code() {
        let kernel = kernel(
            "ffffffff81000000 T _text\nffffffff81000000 T _stext\n\
             ffffffff81000010 t later\nffffffff81003000 t last\nffffffff81003100 T _etext\n\
             ffffffff81004000 t stub\nffffffff82000000 D data\n\
             ffffffffc0000000 t probe\t[rtrace]\nffffffffc0001800 t end\t[rtrace]\n\
             ffffffffc0003000 d state\t[rtrace]\nffffffffc0009ff0 t program\t[bpf]\n\
             ffffffffc000a100 t other\t[bpf]\nnonsense\n",
        );
        for (address, found) in [
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8100_0000, Some(("_text", 0, None))),
            (0xffff_ffff_8100_2fff, Some(("later", 0x2fef, None))),
            (0xffff_ffff_8100_30ff, Some(("last", 0xff, None))),
            // Behind the kernel's text.
            (0xffff_ffff_8100_3100, None),
            (0xffff_ffff_8100_4000, None),
            (
                0xffff_ffff_c000_17ff,
                Some(("probe", 0x17ff, Some("rtrace"))),
            ),
            // The last function of a module ends with its page, and no program reaches the next one.
            (0xffff_ffff_c000_1fff, Some(("end", 0x7ff, Some("rtrace")))),
            (0xffff_ffff_c000_2000, None),
            (0xffff_ffff_c000_9fff, Some(("program", 0xf, Some("bpf")))),
            (0xffff_ffff_c000_a000, None),
            (u64::MAX, None),
        ] {
            let symbol = kernel.find(1, address).map(|(_, symbol)| symbol);
            let symbol =
                symbol.map(|s| (s.name.as_str(), address - s.address, s.module.as_deref()));
            assert_eq!(symbol, found, "{address:#x}");
        }
        assert!(owners("0000000000000000 T _text\n").is_empty());
    }

    #[test]
    fn the_time_decides_between_modules_at_one_place() {
        let image = |from, until, name: &str| {
            let function = KernelSymbol {
                address: 0x1000,
                size: 0x100,
                name: name.to_owned(),
                module: Some(name.to_owned()),
            };
            Image::new(from, until, vec![function])
        };
        let kernel = Kernel::new(vec![
            image(0, 10, "one"),
            image(15, 30, "two"),
            image(20, u64::MAX, "three"),
        ]);
        for (ns, name) in [
            (0, Some("one")),
            (9, Some("one")),
            (10, None),
            (15, Some("two")),
            // Two claim it.
            (20, None),
            (30, Some("three")),
        ] {
            let found = kernel.find(ns, 0x10ff);
            assert_eq!(found.map(|(_, symbol)| symbol.name.as_str()), name, "{ns}");
        }
    }
}
