// SPDX-License-Identifier: GPL-2.0

//! Kernel functions that can be probed: functions with a symbol, except those on the kernel's list of functions that
//! cannot.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

/// The names of functions that can be probed.
pub struct Symbols {
    names: BTreeSet<String>,
}

impl Symbols {
    /// Reads the functions of the kernel that has this debugfs, and of its modules.
    pub fn read(debugfs: &Path) -> Self {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let barred = read(&debugfs.join("kprobes/blacklist"));
        Self::parse(&read(Path::new("/proc/kallsyms")), &barred)
    }

    /// Parses the texts of `/proc/kallsyms` and `kprobes/blacklist`.
    fn parse(symbols: &str, barred: &str) -> Self {
        let barred = barred
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        let barred: HashSet<_> = barred.collect();
        let names = symbols.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (kind, name) = (words.next()?, words.next()?);
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            (is_code && !barred.contains(name)).then(|| name.to_owned())
        });
        Self {
            names: names.collect(),
        }
    }

    /// Names under which a function can be probed: its own name, or names such as `NAME.isra.0` of the functions that
    /// the compiler made from it.
    pub fn of<'a>(&'a self, function: &'a str) -> Vec<&'a str> {
        // Without the kernel's symbols any name may exist.
        if self.names.contains(function) || self.names.is_empty() {
            return vec![function];
        }
        let made = format!("{function}.");
        let names = self.names.range(made.clone()..);
        let names = names.take_while(|name| name.starts_with(&made));
        names.map(String::as_str).collect()
    }

    /// Advice for a name that is no symbol of the kernel. `None` if it is one.
    pub fn advice(&self, function: &str) -> Option<String> {
        match self.of(function).as_slice() {
            [own] if *own == function => None,
            [] => Some(format!(
                "`{function}` is misspelt, or cannot be probed, or has been inlined into its callers: \
                 `rtrace list --functions PATTERN` shows what can be probed"
            )),
            made => Some(format!(
                "the compiler replaced `{function}`: probe {}",
                made.join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_what_the_compiler_made_of_them() {
        let symbols = Symbols::parse(
            "0 T vfs_read\n0 t finish_task_switch.isra.0\n0 D jiffies\n0 t nft_eval\t[nf_tables]\n0 T do_int3\n",
            "0x0-0x0\tdo_int3\n",
        );
        for (function, names) in [
            ("vfs_read", &["vfs_read"][..]),
            ("nft_eval", &["nft_eval"]),
            ("finish_task_switch", &["finish_task_switch.isra.0"]),
            ("finish_task", &[]),
            ("jiffies", &[]),
            ("do_int3", &[]),
        ] {
            assert_eq!(symbols.of(function), names, "{function}");
        }
        assert_eq!(symbols.advice("vfs_read"), None);
        let said = symbols.advice("finish_task_switch").unwrap();
        assert!(said.ends_with("probe finish_task_switch.isra.0"), "{said}");
        let said = symbols.advice("do_int3").unwrap();
        assert!(said.contains("inlined"), "{said}");
    }
}
