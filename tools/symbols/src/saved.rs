// SPDX-License-Identifier: GPL-2.0

//! The names that a trace needs, saved beside it as a text, with a line for each function that occurs.
//!
//! ```text
//! rtrace symbols 1
//! trace UUID                  identity of the trace
//! kernel
//! ADDRESS SIZE NAME           functions of the kernel and of modules (numbers are hexadecimal)
//! ADDRESS SIZE NAME [MODULE]
//! file ID PATH                a file, as in the mappings
//! OFFSET SIZE NAME            functions of the file, by their offsets in it
//! ```

use super::elf::Function;
use super::kernel::{Kernel, KernelSymbol};
use super::mappings::{escaped, unescaped, MappedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;
use store::beside::{Lines, SYMBOLS};
use system::access::Access;
use system::Result;
use terminal::printable;
use uuid::Uuid;

const HEAD: &str = "rtrace symbols 1";

/// The saved functions.
#[derive(Debug, Default)]
pub struct Saved {
    /// Functions of the kernel.
    pub kernel: Kernel,
    /// Functions of files.
    pub files: Vec<(MappedFile, Vec<Function>)>,
}

impl Saved {
    /// The functions saved with the trace in `dir`. [`None`]: none were saved, or they belong to another trace.
    pub fn read(dir: &Path, trace: Uuid) -> Result<Option<Self>> {
        match SYMBOLS.open_of_chunks(dir)? {
            Some(lines) => Self::parse(lines, trace),
            None => Ok(None),
        }
    }

    /// Parses saved symbols. [`None`]: the text belongs to another trace.
    pub fn parse(mut lines: Lines<impl BufRead>, trace: Uuid) -> Result<Option<Self>> {
        if lines.head()? != HEAD {
            return Err(lines.wrong(format!(
                "it is not `{HEAD}`: another version of rtrace wrote the file"
            )));
        }
        if lines.head()? != format!("trace {trace}") {
            return Ok(None);
        }
        let mut kernel = Vec::new();
        let mut files: Vec<(MappedFile, Vec<Function>)> = Vec::new();
        while let Some(line) = lines.next_line()? {
            if line == "kernel" {
                continue;
            }
            if let Some(file) = line.strip_prefix("file ") {
                let Some((id, path)) = file.split_once(' ') else {
                    return Err(lines.wrong("expected `file ID PATH`"));
                };
                let file = MappedFile {
                    path: unescaped(path),
                    build_id: Some(id.to_owned()).filter(|id| id != "-"),
                };
                files.push((file, Vec::new()));
                continue;
            }
            let Some((place, size, name)) = function(line) else {
                return Err(lines.wrong("expected `ADDRESS SIZE NAME`"));
            };
            match files.last_mut() {
                Some((_, functions)) => functions.push(Function {
                    offset: place,
                    size,
                    name,
                }),
                None => {
                    let (name, module) = match name.split_once(' ') {
                        Some((name, module)) => (name, Some(module)),
                        None => (&*name, None),
                    };
                    let module = module.map(|module| module.trim_matches(['[', ']']).to_owned());
                    kernel.push(KernelSymbol {
                        address: place,
                        size,
                        name: name.to_owned(),
                        module,
                    });
                }
            }
        }
        for (_, functions) in &mut files {
            functions.sort();
        }
        Ok(Some(Self {
            kernel: Kernel::new(kernel),
            files,
        }))
    }
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
    /// Functions of the kernel.
    pub kernel: BTreeSet<KernelSymbol>,
    /// Functions of files.
    pub files: BTreeMap<MappedFile, BTreeSet<Function>>,
}

impl Names {
    /// Saves the functions with the trace in `dir`.
    pub fn save(&self, dir: &Path, trace: Uuid, access: Access) -> Result<()> {
        SYMBOLS.write(dir, access, |out| {
            out.write_all(self.text(trace).as_bytes())
        })
    }

    fn text(&self, trace: Uuid) -> String {
        let mut lines = vec![
            HEAD.to_owned(),
            format!("trace {trace}"),
            "kernel".to_owned(),
        ];
        for symbol in &self.kernel {
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
        for (file, functions) in &self.files {
            let id = file.build_id.as_deref().unwrap_or("-");
            lines.push(format!("file {id} {}", escaped(&file.path)));
            for Function { offset, size, name } in functions {
                lines.push(format!("{offset:x} {size:x} {name}"));
            }
        }
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
            build_id: Some("12ab".to_owned()),
        };
        let function = Function {
            offset: 0x20,
            size: 3,
            name: "operator new".to_owned(),
        };
        let names = Names {
            kernel: kernel.iter().cloned().collect(),
            files: [(file.clone(), [function.clone()].into())].into(),
        };
        let text = names.text(Uuid::nil());
        let parse = |text: &str, trace| Saved::parse(SYMBOLS.lines(text.as_bytes()), trace);
        let saved = parse(&text, Uuid::nil()).unwrap().unwrap();
        for known in &kernel {
            assert_eq!(saved.kernel.find(known.address + 3), Some(known));
        }
        assert_eq!(saved.kernel.find(0xffff_ffff_8100_0010), None);
        assert_eq!(saved.files, [(file, vec![function])]);
        assert!(parse(&text, Uuid::from_u128(1)).unwrap().is_none());
        let broken = text + "12 x y\n";
        let error = parse(&broken, Uuid::nil()).unwrap_err().to_string();
        assert!(error.contains("line 8"), "{error}");
    }
}
