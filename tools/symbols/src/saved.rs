// SPDX-License-Identifier: GPL-2.0

//! The names that a trace needs, saved beside it as a text, with a line for each function that occurs.
//!
//! ```text
//! rtrace symbols 3
//! trace UUID                  identity of the trace
//! kernel
//! ADDRESS SIZE NAME           functions of the kernel and of modules (numbers are hexadecimal, except times)
//! ADDRESS SIZE NAME [MODULE]
//! kernel FROM UNTIL           functions that existed for a part of the trace
//! file ID PATH                a file, as in the mappings
//! OFFSET SIZE NAME            functions of the file, by their offsets in it
//! inlined OFFSET NAME         a function that is inlined at this offset; of several, the innermost one is first
//! gone ID PATH                a file that was removed or replaced before its functions were read
//! ```
//!
//! FROM and UNTIL are times of the trace's clock in nanoseconds; UNTIL is `-` if the functions stayed. A text without
//! such functions, and without such files, is `rtrace symbols 1`; one without inlined functions `rtrace symbols 2`.

use super::elf::Function;
use super::kernel::{self, Image, Kernel, KernelSymbol};
use super::mappings::{escaped, unescaped, MappedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;
use store::beside::{Lines, SYMBOLS};
use system::access::Access;
use system::Result;
use terminal::printable;
use uuid::Uuid;

const HEADS: [&str; 3] = ["rtrace symbols 1", "rtrace symbols 2", "rtrace symbols 3"];

/// The names of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileNames {
    /// Its functions, sorted.
    pub functions: Vec<Function>,
    /// The functions that are inlined at an offset, the innermost first.
    pub inlined: BTreeMap<u64, Vec<String>>,
    /// Whether it was removed or replaced before its functions were read.
    pub is_gone: bool,
}

impl FileNames {
    /// Names of a file that was read.
    pub fn of(functions: Vec<Function>) -> Self {
        Self {
            functions,
            ..Self::default()
        }
    }
}

/// A time in which functions of the kernel existed.
pub type Time = (u64, u64);

/// All the time of a trace.
const ALWAYS: Time = (0, u64::MAX);

/// The saved functions.
#[derive(Debug, Default)]
pub struct Saved {
    /// Functions of the kernel.
    pub kernel: Kernel,
    /// Functions of files.
    pub files: Vec<(MappedFile, FileNames)>,
}

impl Saved {
    /// The functions saved with the trace in `dir`. [`None`]: none were saved, or they belong to another trace.
    pub fn read(dir: &Path, trace: Uuid) -> Result<Option<Self>> {
        match SYMBOLS.open_of_chunks(dir)? {
            Some(lines) => Self::parse(lines, trace),
            None => Ok(None),
        }
    }

    /// The functions in a text of `/proc/kallsyms` that a trace has. They count for all of its time.
    pub fn of_kallsyms(text: &str) -> Self {
        let owners = kernel::owners(text).into_iter();
        let images = owners.map(|(_, functions)| Image::new(0, u64::MAX, functions));
        Self {
            kernel: Kernel::new(images.collect()),
            files: Vec::new(),
        }
    }

    /// Parses saved symbols. [`None`]: the text belongs to another trace.
    pub fn parse(mut lines: Lines<impl BufRead>, trace: Uuid) -> Result<Option<Self>> {
        let head = lines.head()?;
        if !HEADS.contains(&head) {
            let [one, two, three] = HEADS;
            return Err(lines.wrong(format!(
                "it is not `{one}`, `{two}` or `{three}`: another version of rtrace wrote the file"
            )));
        }
        if lines.head()? != format!("trace {trace}") {
            return Ok(None);
        }
        let mut kernel: Vec<(Time, Vec<KernelSymbol>)> = Vec::new();
        let mut files: Vec<(MappedFile, FileNames)> = Vec::new();
        while let Some(line) = lines.next_line()? {
            if let Some(time) = section(line) {
                kernel.push((time, Vec::new()));
                continue;
            }
            if let Some((is_gone, file)) = file(line) {
                let Some(file) = file else {
                    return Err(lines.wrong("expected `file ID PATH`"));
                };
                let names = FileNames {
                    is_gone,
                    ..FileNames::default()
                };
                files.push((file, names));
                continue;
            }
            if let Some(inlined) = line.strip_prefix("inlined ") {
                let (Some((offset, name)), Some((_, names))) = (place(inlined), files.last_mut())
                else {
                    return Err(lines.wrong("expected `inlined OFFSET NAME` of a file"));
                };
                names.inlined.entry(offset).or_default().push(name);
                continue;
            }
            let Some((place, size, name)) = function(line) else {
                return Err(lines.wrong("expected `ADDRESS SIZE NAME`"));
            };
            if let Some((_, names)) = files.last_mut() {
                names.functions.push(Function {
                    offset: place,
                    size,
                    name,
                });
                continue;
            }
            let (name, module) = match name.split_once(' ') {
                Some((name, module)) => (name, Some(module)),
                None => (&*name, None),
            };
            let module = module.map(|module| module.trim_matches(['[', ']']).to_owned());
            let symbol = KernelSymbol {
                address: place,
                size,
                name: name.to_owned(),
                module,
            };
            match kernel.last_mut() {
                Some((_, functions)) => functions.push(symbol),
                None => kernel.push((ALWAYS, vec![symbol])),
            }
        }
        for (_, names) in &mut files {
            names.functions.sort();
        }
        let images = kernel.into_iter();
        let images = images.map(|((from, until), functions)| Image::new(from, until, functions));
        Ok(Some(Self {
            kernel: Kernel::new(images.collect()),
            files,
        }))
    }
}

/// The time of the functions after a line `kernel`.
fn section(line: &str) -> Option<Time> {
    let times = line.strip_prefix("kernel")?;
    if times.is_empty() {
        return Some(ALWAYS);
    }
    let (from, until) = times.strip_prefix(' ')?.split_once(' ')?;
    let until = match until {
        "-" => u64::MAX,
        until => until.parse().ok()?,
    };
    Some((from.parse().ok()?, until))
}

/// The file of a line `file` or `gone`, and whether it is gone.
fn file(line: &str) -> Option<(bool, Option<MappedFile>)> {
    let (kind, file) = line.split_once(' ')?;
    let is_gone = match kind {
        "file" => false,
        "gone" => true,
        _ => return None,
    };
    let file = file.split_once(' ').map(|(id, path)| MappedFile {
        path: unescaped(path),
        id: Some(id.to_owned()).filter(|id| id != "-"),
    });
    Some((is_gone, file))
}

/// Place and name of an inlined function.
fn place(line: &str) -> Option<(u64, String)> {
    let (place, name) = line.split_once(' ')?;
    Some((u64::from_str_radix(place, 16).ok()?, printable(name)))
}

/// Place, size and name of a function.
fn function(line: &str) -> Option<(u64, u64, String)> {
    let (place, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    // A trace may be of unknown origin.
    Some((hex(place)?, hex(size)?, printable(name)))
}

/// Functions that occur in a trace.
#[derive(Debug, Default)]
pub struct Names {
    /// Functions of the kernel, by the time in which they existed.
    pub kernel: BTreeMap<Time, BTreeSet<KernelSymbol>>,
    /// Functions of files.
    pub files: BTreeMap<MappedFile, BTreeSet<Function>>,
    /// The functions that are inlined at an offset of a file, the innermost first. The file is in `files`, too.
    pub inlined: BTreeMap<MappedFile, BTreeMap<u64, Vec<String>>>,
    /// Files that were removed or replaced before their functions were read.
    pub gone: BTreeSet<MappedFile>,
}

impl Names {
    /// Saves the functions with the trace in `dir`.
    pub fn save(&self, dir: &Path, trace: Uuid, access: Access) -> Result<()> {
        SYMBOLS.write(dir, access, |out| {
            out.write_all(self.text(trace).as_bytes())
        })
    }

    fn text(&self, trace: Uuid) -> String {
        let is_timed = self.kernel.keys().any(|time| *time != ALWAYS) || !self.gone.is_empty();
        let head = match self.inlined.is_empty() {
            true => HEADS[usize::from(is_timed)],
            false => HEADS[2],
        };
        let mut lines = vec![head.to_owned(), format!("trace {trace}")];
        let file_line = |kind: &str, file: &MappedFile| {
            let id = file.id.as_deref().unwrap_or("-");
            format!("{kind} {id} {}", escaped(&file.path))
        };
        for (time, functions) in &self.kernel {
            lines.push(match *time {
                ALWAYS => "kernel".to_owned(),
                (from, u64::MAX) => format!("kernel {from} -"),
                (from, until) => format!("kernel {from} {until}"),
            });
            for symbol in functions {
                let KernelSymbol {
                    address,
                    size,
                    name,
                    module,
                } = symbol;
                let module = module.as_ref().map(|module| format!(" [{module}]"));
                let module = module.unwrap_or_default();
                lines.push(format!("{address:x} {size:x} {name}{module}"));
            }
        }
        for (file, functions) in &self.files {
            lines.push(file_line("file", file));
            for Function { offset, size, name } in functions {
                lines.push(format!("{offset:x} {size:x} {name}"));
            }
            for (offset, names) in self.inlined.get(file).into_iter().flatten() {
                let names = names.iter();
                lines.extend(names.map(|name| format!("inlined {offset:x} {name}")));
            }
        }
        lines.extend(self.gone.iter().map(|file| file_line("gone", file)));
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read() {
        let symbol = |address, name: &str, module: Option<&str>| KernelSymbol {
            address,
            size: 0x10,
            name: name.to_owned(),
            module: module.map(str::to_owned),
        };
        let kernel = [
            symbol(0xffff_ffff_8100_0000, "schedule", None),
            symbol(0xffff_ffff_c000_0000, "probe", Some("rtrace")),
        ];
        let file = MappedFile {
            path: "/a b\nc".to_owned(),
            id: Some("12ab".to_owned()),
        };
        let function = Function {
            offset: 0x20,
            size: 3,
            name: "operator new".to_owned(),
        };
        let names = Names {
            kernel: [(ALWAYS, kernel.iter().cloned().collect())].into(),
            files: [(file.clone(), [function.clone()].into())].into(),
            ..Names::default()
        };
        let text = names.text(Uuid::nil());
        assert!(text.starts_with("rtrace symbols 1\n"), "{text}");
        let parse = |text: &str, trace| Saved::parse(SYMBOLS.lines(text.as_bytes()), trace);
        let saved = parse(&text, Uuid::nil()).unwrap().unwrap();
        let find = |saved: &Saved, ns, address| {
            saved
                .kernel
                .find(ns, address)
                .map(|(_, symbol)| symbol.clone())
        };
        for known in &kernel {
            assert_eq!(find(&saved, 7, known.address + 3).as_ref(), Some(known));
        }
        assert_eq!(find(&saved, 7, 0xffff_ffff_8100_0010), None);
        assert_eq!(saved.files, [(file.clone(), FileNames::of(vec![function]))]);
        assert!(parse(&text, Uuid::from_u128(1)).unwrap().is_none());
        for broken in ["12 x y\n", "kernel 5\n", "file ab\n", "gone ab\n"] {
            let broken = format!("{text}{broken}");
            let error = parse(&broken, Uuid::nil()).unwrap_err().to_string();
            assert!(error.contains("line 8"), "{error}");
        }
        // Functions that are inlined in others.
        let names = Names {
            inlined: [(
                file.clone(),
                [(0x21, vec!["inner".to_owned(), "a b".to_owned()])].into(),
            )]
            .into(),
            ..names
        };
        let text = names.text(Uuid::nil());
        assert!(text.starts_with("rtrace symbols 3\n"), "{text}");
        let saved = parse(&text, Uuid::nil()).unwrap().unwrap();
        assert_eq!(saved.files[0].1.inlined, names.inlined[&file]);
        let broken = text.replace("inlined 21 inner", "inlined x inner");
        assert!(parse(&broken, Uuid::nil()).is_err());
        // Two modules at one place, and a file that was removed.
        let other = symbol(0xffff_ffff_c000_0000, "other", Some("mod"));
        let names = Names {
            kernel: [
                ((0, 20), [kernel[1].clone()].into()),
                ((30, u64::MAX), [other.clone()].into()),
            ]
            .into(),
            gone: [file.clone()].into(),
            ..Names::default()
        };
        let text = names.text(Uuid::nil());
        assert!(text.starts_with("rtrace symbols 2\n"), "{text}");
        let saved = parse(&text, Uuid::nil()).unwrap().unwrap();
        let at = |ns| find(&saved, ns, other.address);
        assert_eq!(
            [at(19), at(20), at(30)],
            [Some(kernel[1].clone()), None, Some(other)]
        );
        assert_eq!(saved.files.len(), 1);
        assert!(saved.files[0].0 == file && saved.files[0].1.is_gone);
    }
}
