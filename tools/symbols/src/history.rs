// SPDX-License-Identifier: GPL-2.0

//! The code of the kernel during a recording: which modules and other pieces were loaded, and when.
//!
//! The kernel reports each change with its time. The functions of a module are read from `/proc/kallsyms`, which takes
//! a while. So a [snapshot](Snapshot) counts for a module only if the module was loaded before the snapshot began, and
//! was still there when it ended.

use super::kernel::{live_modules, owners, Image, Kernel, KernelSymbol, Owner, KALLSYMS};
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;

/// The code so far. Times are those of the changes.
#[derive(Debug, Default)]
pub struct History {
    pieces: Vec<Piece>,
    has_snapshot: bool,
    /// Whether changes may be missing.
    is_blind: bool,
}

/// Code that was loaded at once.
#[derive(Debug)]
struct Piece {
    owner: Owner,
    from: u64,
    until: u64,
    /// The functions. [`None`]: not known yet.
    functions: Option<Vec<KernelSymbol>>,
}

impl Piece {
    /// Whether the code was there from the begin to the end of the snapshot.
    fn spans(&self, snapshot: &Snapshot) -> bool {
        self.from <= snapshot.from && snapshot.until < self.until
    }
}

/// The functions that the kernel had at a moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The time at which it began.
    from: u64,
    /// The time at which it ended.
    until: u64,
    /// The modules whose initialisation was over.
    live: HashSet<String>,
    text: String,
}

impl Snapshot {
    /// Reads the functions. `now` is the time of the changes.
    pub fn read(now: impl Fn() -> u64) -> Self {
        let live = live_modules();
        let from = now();
        let mut text = String::new();
        let file = File::open(KALLSYMS);
        // Without the right to read, there are no functions.
        let _ = file.as_ref().map(|mut file| file.read_to_string(&mut text));
        // The file is still open: who sees it closed knows that the snapshot is over.
        let until = now();
        Self {
            from,
            until,
            live,
            text,
        }
    }
}

impl History {
    /// Code was loaded. Its functions are known if the kernel reports them.
    pub fn load(&mut self, ns: u64, owner: Owner, functions: Option<Vec<KernelSymbol>>) {
        self.unload(ns, &owner);
        self.pieces.push(Piece {
            owner,
            from: ns,
            until: u64::MAX,
            functions,
        });
    }

    /// Code was unloaded.
    pub fn unload(&mut self, ns: u64, owner: &Owner) {
        match self.last(owner) {
            Some(piece) => piece.until = piece.until.min(ns),
            // It was there at the start, and the first snapshot may have missed it.
            None => self.pieces.push(Piece {
                owner: owner.clone(),
                from: 0,
                until: ns,
                functions: None,
            }),
        }
    }

    /// From now on changes may be missing.
    pub fn miss(&mut self) {
        self.is_blind = true;
    }

    fn last(&mut self, owner: &Owner) -> Option<&mut Piece> {
        let mut pieces = self.pieces.iter_mut().rev();
        pieces.find(|piece| piece.owner == *owner)
    }

    /// Adds a snapshot, after all changes that happened before its end. Later changes may have been added, too.
    pub fn add(&mut self, snapshot: &Snapshot) {
        let is_first = !std::mem::replace(&mut self.has_snapshot, true);
        for (owner, functions) in snapshot.owners(is_first) {
            let is_ready = match &owner {
                Owner::Module(name) => snapshot.live.contains(name),
                Owner::Kernel | Owner::Made(_) => true,
            };
            match self.last(&owner) {
                Some(_) => {
                    let mut pieces = self.pieces.iter_mut();
                    let piece = pieces.find(|piece| piece.owner == owner && piece.spans(snapshot));
                    if let Some(piece) = piece.filter(|_| is_ready) {
                        piece.functions.get_or_insert(functions);
                    }
                }
                None => self.pieces.push(Piece {
                    owner,
                    from: if is_first { 0 } else { snapshot.from },
                    until: u64::MAX,
                    functions: is_ready.then_some(functions),
                }),
            }
        }
    }

    /// Whether a snapshot would add functions.
    pub fn lacks(&self) -> bool {
        let is_open = |piece: &&Piece| piece.until == u64::MAX && piece.functions.is_none();
        let mut open = self.pieces.iter().filter(is_open).peekable();
        if open.peek().is_none() {
            return false;
        }
        let live = live_modules();
        open.any(|piece| matches!(&piece.owner, Owner::Module(name) if live.contains(name)))
    }

    /// Ends the history. If changes may be missing, code whose functions are no longer the same has no name, because
    /// the time of the change is unknown.
    pub fn end(mut self, read: impl FnOnce() -> Snapshot) -> Kernel {
        if self.is_blind {
            let now = read().owners(false);
            let stayed = |piece: &Piece| match &piece.functions {
                Some(functions) if piece.owner != Owner::Kernel && piece.until == u64::MAX => {
                    let mut now = now.iter();
                    now.any(|(owner, now)| *owner == piece.owner && now == functions)
                }
                _ => true,
            };
            self.pieces.retain(stayed);
        }
        let images = self.pieces.into_iter();
        let images =
            images.filter_map(|piece| Some(Image::new(piece.from, piece.until, piece.functions?)));
        Kernel::new(images.collect())
    }
}

impl Snapshot {
    /// The functions of each owner; without those of the kernel itself, if they are known already.
    fn owners(&self, with_kernel: bool) -> Vec<(Owner, Vec<KernelSymbol>)> {
        if with_kernel {
            return owners(&self.text);
        }
        let lines = self.text.split_inclusive('\n');
        let lines: String = lines
            .filter(|line| line.trim_end().ends_with(']'))
            .collect();
        owners(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot that takes a nanosecond.
    fn snapshot(from: u64, live: &[&str], text: &str) -> Snapshot {
        Snapshot {
            from,
            until: from + 1,
            live: live.iter().map(|&name| name.to_owned()).collect(),
            text: text.to_owned(),
        }
    }

    fn names(kernel: &Kernel, address: u64) -> [Option<&str>; 4] {
        [1, 10, 20, 30].map(|ns| Some(kernel.find(ns, address)?.1.name.as_str()))
    }

    const ONE: &str = "c000 t one\t[one]\n";
    const TWO: &str = "c000 t two\t[two]\n";

    fn module(name: &str) -> Owner {
        Owner::Module(name.to_owned())
    }

    fn none() -> Snapshot {
        unreachable!("no change is missing")
    }

    #[test]
    fn each_module_has_its_time() {
        let mut history = History::default();
        history.add(&snapshot(0, &["one"], &format!("8000 t kernel\n{ONE}")));
        history.unload(10, &module("one"));
        history.load(20, module("two"), None);
        // It was read before the load.
        history.add(&snapshot(19, &["two"], TWO));
        history.add(&snapshot(25, &["two"], TWO));
        // Unloaded before it was read.
        history.load(26, module("three"), None);
        history.unload(27, &module("three"));
        history.add(&snapshot(26, &["three"], "d000 t three\t[three]\n"));
        let kernel = history.end(none);
        assert_eq!(
            names(&kernel, 0xc000),
            [Some("one"), None, Some("two"), Some("two")]
        );
        assert_eq!(names(&kernel, 0xd000), [None; 4]);
        assert_eq!(names(&kernel, 0x8000), [Some("kernel"); 4]);
    }

    #[test]
    fn a_module_that_goes_during_the_first_snapshot_has_no_names() {
        let mut history = History::default();
        history.unload(5, &module("one"));
        history.load(6, module("one"), None);
        history.add(&Snapshot {
            until: 7,
            ..snapshot(3, &["one"], ONE)
        });
        // Its initialisation is not over.
        history.add(&snapshot(8, &[], ONE));
        assert_eq!(names(&history.end(none), 0xc000), [None; 4]);
    }

    #[test]
    fn a_module_that_goes_after_its_snapshot_keeps_its_names() {
        let mut history = History::default();
        history.add(&snapshot(0, &[], ""));
        history.load(5, module("one"), None);
        let read = snapshot(8, &["one"], ONE);
        // Both changes happened after the snapshot, and were reported before it is added.
        history.unload(15, &module("one"));
        history.load(25, module("one"), None);
        history.add(&read);
        assert_eq!(
            names(&history.end(none), 0xc000),
            [None, Some("one"), None, None]
        );
    }

    #[test]
    fn code_that_the_kernel_makes_has_its_time() {
        let function = |name: &str| KernelSymbol {
            address: 0xe000,
            size: 0x2000,
            name: name.to_owned(),
            module: Some("bpf".to_owned()),
        };
        let mut history = History::default();
        history.add(&snapshot(0, &[], "e000 t old\t[bpf]\n"));
        history.unload(5, &Owner::Made(0xe000));
        history.load(10, Owner::Made(0xe000), Some(vec![function("new")]));
        history.unload(30, &Owner::Made(0xe000));
        let kernel = history.end(none);
        assert_eq!(
            names(&kernel, 0xe000),
            [Some("old"), Some("new"), Some("new"), None]
        );
        assert_eq!(
            names(&kernel, 0xf000),
            [None, Some("new"), Some("new"), None]
        );
    }

    #[test]
    fn without_changes_only_what_stayed_has_names() {
        let both = "c000 t one\t[one]\nd000 t other\t[other]\n";
        let mut history = History::default();
        history.add(&snapshot(0, &["one", "other"], both));
        history.miss();
        let last = || {
            snapshot(
                40,
                &["two", "other"],
                "c000 t two\t[two]\nd000 t other\t[other]\n",
            )
        };
        let kernel = history.end(last);
        assert_eq!(names(&kernel, 0xc000), [None; 4]);
        assert_eq!(names(&kernel, 0xd000), [Some("other"); 4]);
    }
}
