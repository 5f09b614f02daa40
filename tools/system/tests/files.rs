// SPDX-License-Identifier: GPL-2.0

//! The limit of open files of a command.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::fs::File;
use std::process::{Command, Stdio};
use system::files;

/// The limit of this test, before it is raised.
const USUAL: u64 = 128;

fn current() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The limit that a command sees if it asks at once.
fn limit_of_command() -> u64 {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n"]).stdout(Stdio::piped());
    let ran = files::with_usual_limit(|| command.spawn())
        .unwrap()
        .wait_with_output()
        .unwrap();
    String::from_utf8(ran.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_command_has_the_usual_limit() {
    // On one CPU the command is often ahead of its parent.
    let mut first = CpuSet::new();
    first.set(
        (0..CpuSet::MAX_CPU)
            .find(|cpu| sched_getaffinity(None).unwrap().is_set(*cpu))
            .unwrap(),
    );
    sched_setaffinity(None, &first).unwrap();
    let limit = getrlimit(Resource::Nofile);
    let usual = Rlimit {
        current: Some(USUAL),
        ..limit
    };
    setrlimit(Resource::Nofile, usual).unwrap();
    files::open_many();
    assert_eq!(current(), limit.maximum);
    for _ in 0..100 {
        assert_eq!(limit_of_command(), USUAL);
        assert_eq!(current(), limit.maximum);
    }
    // More files than the usual limit are open. They stay open, and a command can be run.
    let many: Vec<_> = (0..2 * USUAL)
        .map(|_| File::open("/dev/null").unwrap())
        .collect();
    // The command may ask before it has its limit.
    assert!([Some(USUAL), limit.maximum].contains(&Some(limit_of_command())));
    assert_eq!(current(), limit.maximum);
    drop(many);
}
