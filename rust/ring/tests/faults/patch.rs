// SPDX-License-Identifier: GPL-2.0

//! Makes a copy of a room with each patch of a folder applied, and lists the checks that must find
//! the fault. For the build scripts of the crates with faults.
//!
//! A patch is a unified diff of the room as git makes it, after a header:
//!
//!     What is wrong: TEXT
//!     Found by: CHECK: MESSAGE
//!
//! There is one `Found by` for each check that must fail, with the words of its failure. A patch
//! may also have
//!
//!     Below: CHECK
//!
//! if another fault (in `lib.rs`) is made on top of it, which that check finds. A patch that no
//! longer applies fails the build.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// The files of a room, by name.
type Sources = BTreeMap<String, String>;

/// A room with seeded faults.
pub struct Room {
    /// Name of its folder.
    pub name: &'static str,
    /// Suites of its tests: the name in `Suite`, and the folder.
    pub suites: &'static [(&'static str, &'static str)],
    /// Returns the suite that a check belongs to, by its name in `Suite`.
    pub suite: fn(&str) -> &'static str,
    /// Returns the expression that runs a check of the tests of a module.
    pub call: fn(&str, &str) -> String,
}

/// A seeded fault.
struct Fault {
    name: String,
    text: String,
    /// Checks, each with the message that it must print.
    found_by: Vec<(String, String)>,
    /// Checks that find a fault made on top of this one.
    below: Vec<String>,
    diff: String,
}

impl Fault {
    fn parse(room: &Room, name: &str, patch: &str) -> Self {
        let (header, diff) = patch.split_once("\n--- ").expect("a diff");
        let values = |key: &'static str| {
            header
                .lines()
                .filter_map(move |line| line.strip_prefix(key))
        };
        let found_by: Vec<_> = values("Found by: ")
            .map(|line| line.split_once(": ").expect("CHECK: MESSAGE"))
            .map(|(check, message)| (check.into(), message.into()))
            .collect();
        // Long random runs may miss what short ones find.
        assert!(
            found_by
                .iter()
                .any(|(check, _): &(String, _)| (room.suite)(check) != "Shuttle"),
            "{name}: no search has to find it"
        );
        Self {
            name: name.into(),
            text: values("What is wrong: ")
                .next()
                .expect("what is wrong")
                .into(),
            found_by,
            below: values("Below: ").map(String::from).collect(),
            diff: format!("--- {diff}"),
        }
    }

    /// Returns the name of the fault's module.
    fn module(&self) -> String {
        let mut module = String::new();
        for letter in self.name.chars() {
            if letter.is_uppercase() && !module.is_empty() {
                module.push('_');
            }
            module.extend(letter.to_lowercase());
        }
        module
    }

    /// Returns the room's sources with this fault.
    fn apply(&self, room: &Room, right: &Sources) -> Sources {
        let mut wrong = right.clone();
        for file in self.diff.split("\n--- ") {
            let (head, hunks) = file.split_once("\n@@ ").expect("a hunk");
            let name = head.rsplit('/').next().expect("a file name").trim();
            let text = wrong
                .get_mut(name)
                .unwrap_or_else(|| panic!("{}: no {name}", self.name));
            for hunk in hunks.split("\n@@ ") {
                let lines = hunk.lines().skip(1).filter(|line| !line.is_empty());
                let side = |other: char| {
                    let lines = lines.clone().filter(|line| !line.starts_with(other));
                    lines.fold(String::new(), |side, line| side + &line[1..] + "\n")
                };
                let (before, after) = (side('+'), side('-'));
                assert!(
                    text.matches(&before).count() == 1,
                    "{}.patch does not apply to rust/{}/{name} any more",
                    self.name,
                    room.name
                );
                *text = text.replace(&before, &after);
            }
        }
        wrong
    }
}

impl Room {
    /// Returns a module of this name, with the room and its tests.
    fn with_tests(&self, module: &str, room: &str, suites: &[&str], tests: &Path) -> String {
        let mut text = format!("pub mod {module} {{\n{room}\n");
        for (_, folder) in self
            .suites
            .iter()
            .filter(|(suite, _)| suites.contains(suite))
        {
            let main = tests.join(folder).join("main.rs");
            text += &format!("#[path = {main:?}]\npub mod {folder}_tests;\n");
        }
        text + "}\n"
    }

    /// Writes the copies, their tests and the list of checks.
    pub fn build(&self) {
        println!("cargo::rustc-cfg=fault");
        let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        let out = env::var("OUT_DIR").expect("cargo sets it");
        let tests = Path::new(&here).parent().expect("the room's tests");
        let right: Sources = files(tests.parent().expect("the room"), ".rs")
            .into_iter()
            .map(|(name, text)| (name + ".rs", text))
            .collect();
        let name = self.name;
        let all: Vec<_> = self.suites.iter().map(|(suite, _)| *suite).collect();
        let unchanged = format!("pub use rtrace_{name} as {name};");
        let mut modules = self.with_tests("right", &unchanged, &all, tests);
        let mut found = String::new();
        for (file, patch) in files(Path::new(&here), ".patch") {
            let fault = Fault::parse(self, &file, &patch);
            let module = fault.module();
            let folder = Path::new(&out).join(&module);
            fs::create_dir_all(&folder).expect("a folder for the copy");
            for (name, text) in fault.apply(self, &right) {
                fs::write(folder.join(name), text).expect("a copy is written");
            }
            let found_by = fault.found_by.iter().map(|(check, _)| check);
            let checks = found_by.chain(&fault.below);
            let suites: Vec<_> = checks.map(|check| (self.suite)(check)).collect();
            let copy = format!("#[path = {:?}]\npub mod {name};", folder.join("mod.rs"));
            modules += &self.with_tests(&module, &copy, &suites, tests);
            for (check, message) in &fault.found_by {
                let suite = (self.suite)(check);
                let (run, without) = ((self.call)(&module, check), (self.call)("right", check));
                writeln!(
                    found,
                    "Kill {{ suite: Suite::{suite}, fault: {:?}, text: {:?}, check: {check:?}, \
                     message: {message:?}, run: || {run}, without: || {without} }},",
                    fault.name, fault.text
                )
                .expect("a string");
            }
        }
        let all = format!("{modules}\nconst PATCHED: &[Kill] = &[\n{found}];\n");
        fs::write(Path::new(&out).join("faults.rs"), all).expect("a list is written");
    }
}

fn read(path: &Path) -> String {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files of a folder whose names have this ending, by name without the ending.
fn files(folder: &Path, ending: &str) -> BTreeMap<String, String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(ending)?.into();
            Some((name, read(&path)))
        })
        .collect()
}
