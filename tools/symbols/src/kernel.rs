// SPDX-License-Identifier: GPL-2.0

//! The functions of the kernel.

use ctf::Metadata;
use std::fs;
use terminal::say;

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelSymbol {
    /// Its address.
    pub address: u64,
    /// The number of bytes up to the next function.
    pub size: u64,
    /// Its name.
    pub name: String,
    /// Its module, if it belongs to one.
    pub module: Option<String>,
}

/// Functions of a kernel, by address.
#[derive(Debug, Default)]
pub struct Kernel(Vec<KernelSymbol>);

impl Kernel {
    /// Makes the table. Of several functions at one address the first counts.
    pub fn new(mut symbols: Vec<KernelSymbol>) -> Self {
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by_key(|symbol| symbol.address);
        Self(symbols)
    }

    /// The functions of the running kernel, if the trace is of this boot; otherwise none. Prints a message if the
    /// kernel does not show them.
    pub fn running(metadata: &Metadata) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        if metadata.boot.is_none() || boot.trim().parse().ok() != metadata.boot {
            return Self::default();
        }
        let kernel = Self::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default());
        if kernel.0.is_empty() {
            say("/proc/kallsyms shows no addresses: run as root to see names of kernel functions");
        }
        kernel
    }

    /// Parses the text of `/proc/kallsyms`.
    fn parse(text: &str) -> Self {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            let name = words.next()?.to_owned();
            let module = words.next().map(|word| word.trim_matches(['[', ']']));
            (is_code && address != 0).then(|| KernelSymbol {
                address,
                size: 0,
                name,
                module: module.map(str::to_owned),
            })
        };
        let mut kernel = Self::new(text.lines().filter_map(symbol).collect());
        let mut next = u64::MAX;
        for symbol in kernel.0.iter_mut().rev() {
            symbol.size = next - symbol.address;
            next = symbol.address;
        }
        kernel
    }

    /// The function that contains an address.
    pub fn find(&self, address: u64) -> Option<&KernelSymbol> {
        let behind = self.0.partition_point(|symbol| symbol.address <= address);
        let symbol = self.0.get(behind.checked_sub(1)?)?;
        (address - symbol.address < symbol.size).then_some(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let kernel = Kernel::parse(
            "ffffffff81000000 T _text\nffffffff81000000 T startup\n\
             ffffffff81000020 t later\nffffffff81000010 D data\n\
             ffffffffc0000000 t probe\t[rtrace]\nnonsense\n",
        );
        for (address, found) in [
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8100_0000, Some(("_text", 0, None))),
            (0xffff_ffff_8100_001f, Some(("_text", 0x1f, None))),
            (0xffff_ffff_8100_0021, Some(("later", 1, None))),
            (
                0xffff_ffff_c000_0001,
                Some(("probe", 1, Some("rtrace".to_owned()))),
            ),
        ] {
            let symbol = kernel.find(address);
            let symbol = symbol.map(|s| (s.name.as_str(), address - s.address, s.module.clone()));
            assert_eq!(symbol, found, "{address:#x}");
        }
        let hidden = Kernel::parse("0000000000000000 T _text\n");
        assert_eq!(hidden.find(1), None);
    }
}
