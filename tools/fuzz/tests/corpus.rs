// SPDX-License-Identifier: GPL-2.0

//! Runs each target on the stored inputs.

use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn replay(name: &str) {
    let target = fuzz::find(name).unwrap();
    let mut inputs = 0;
    for entry in fs::read_dir(folder().join(name)).unwrap() {
        (target.check)(&fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0);
}

macro_rules! replayed {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn all_targets_are_here() {
            let names: Vec<&str> = fuzz::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

replayed! { beside config description dynamic eh_frame elf events filter foreign frames http maps metadata packets patterns perf_data program receiver region rings sizes state stats trace trace_dat triggers unwind_blob }

#[test]
fn all_folders_have_a_target() {
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(fuzz::find(&name).is_some(), "corpus/{name}");
    }
}

/// After a change of a format or a seed, write the seeds again:
/// `scripts/tools cargo run -p fuzz --example seeds -- fuzz/corpus`.
#[test]
fn seeds_are_what_the_example_writes() {
    for seed in fuzz::seeds() {
        let path = folder().join(seed.target).join(&seed.name);
        assert!(fs::read(&path).ok() == Some(seed.bytes), "{path:?}");
    }
}

/// An input that a fuzzer found is stored under a name that says why, or not here.
#[test]
fn every_input_has_a_name() {
    for target in fuzz::TARGETS {
        for entry in fs::read_dir(folder().join(target.name)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let hash = name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(!hash, "corpus/{}/{name}", target.name);
        }
    }
}
