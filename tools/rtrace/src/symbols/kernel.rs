// SPDX-License-Identifier: GPL-2.0

//! Names of the kernel's functions.

use crate::terminal::say;
use std::fs;
use trace::ctf::Metadata;

/// The functions of the running kernel by address: none, if a trace is not of this boot.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Those that were there when a trace was recorded: the kernel's addresses are others after each
    /// boot. Where the kernel does not show them, it is said.
    pub fn of(metadata: &Metadata) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        if metadata.boot.is_none() || boot.trim().parse().ok() != metadata.boot {
            return Self::default();
        }
        let symbols = Self::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default());
        if symbols.0.is_empty() {
            say(
                "/proc/kallsyms shows no addresses: be root to have the kernel's functions by name",
            );
        }
        symbols
    }

    /// Of the text of `/proc/kallsyms`.
    fn parse(text: &str) -> Self {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            (is_code && address != 0).then_some((address, words.next()?.to_owned()))
        };
        let mut symbols: Vec<_> = text.lines().filter_map(symbol).collect();
        symbols.sort_by_key(|(address, _)| *address);
        // Of several names of one address the first.
        symbols.dedup_by_key(|(address, _)| *address);
        Self(symbols)
    }

    /// The function that an address of the kernel is in, and how far.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.0.partition_point(|(begin, _)| *begin <= address);
        let (begin, name) = self.0.get(behind.checked_sub(1)?)?;
        Some((name, address - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T _text\nffffffff81000000 T startup\n\
             ffffffff81000020 t later\nffffffff81000010 D data\n\
             ffffffffc0000000 t probe\t[rtrace]\nnonsense\n",
        );
        for (address, found) in [
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8100_0000, Some(("_text", 0))),
            (0xffff_ffff_8100_001f, Some(("_text", 0x1f))),
            (0xffff_ffff_8100_0021, Some(("later", 1))),
            (u64::MAX, Some(("probe", 0x3fff_ffff))),
        ] {
            assert_eq!(symbols.find(address), found, "{address:#x}");
        }
        let hidden = Symbols::parse("0000000000000000 T _text\n");
        assert_eq!(hidden.find(1), None);
    }
}
