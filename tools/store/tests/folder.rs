// SPDX-License-Identifier: GPL-2.0

//! The directories to which a trace is written, and the files that were there before.

use ctf::StreamName;
use rtrace_abi::header::Layout;
use rustix::fs::{chown, Uid};
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use store::{Claim, OutputOptions, Trace};
use synthetic::{metadata, UUID};
use system::access::Access;
use system::Result;
use tempfile::TempDir;
use uuid::Uuid;

const TRACE: Uuid = Uuid::from_bytes(UUID);

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn with_mode(mode: u32) -> OutputOptions {
    OutputOptions {
        access: Access::new(Some(mode), None),
        ..OutputOptions::default()
    }
}

/// Begins a trace, and ends it without a stream.
fn write(dir: &Path, options: OutputOptions) -> Result<()> {
    drop(Claim::take(dir, options.access)?);
    let mut sink = options.begin(dir, TRACE, &[])?;
    sink.describe(&metadata(UUID, Layout::Compact))?;
    sink.sync()
}

fn refusal<T>(result: Result<T>) -> String {
    result.err().expect("a refusal").to_string()
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    for (bits, asked) in [
        (0o700, 0o700),
        (0o755, 0o700),
        // The group of a new directory is this user's own.
        (0o770, 0o700),
        (0o777, 0o777),
    ] {
        let dir = TempDir::new().unwrap();
        mode(dir.path(), bits);
        write(dir.path(), with_mode(asked)).unwrap();
        Trace::open(dir.path()).unwrap();
    }
    for bits in [0o777, 0o1777, 0o702] {
        let dir = TempDir::new().unwrap();
        mode(dir.path(), bits);
        let error = refusal(write(dir.path(), OutputOptions::default()));
        assert!(error.contains("other users may write to it"), "{error}");
        assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // A new directory there is this user's.
        write(&dir.path().join("new"), OutputOptions::default()).unwrap();
    }
}

#[test]
fn the_directory_of_another_user_is_refused() {
    if !geteuid().is_root() {
        println!("SKIP: only root can give a directory away");
        return;
    }
    let dir = TempDir::new().unwrap();
    for (user, group, bits, why) in [
        (Some(4321), None, 0o755, "it belongs to user 4321"),
        (Some(0), Some(4321), 0o775, "group 4321 may write to it"),
    ] {
        let path = dir.path().join(why);
        fs::create_dir(&path).unwrap();
        let group = group.map(rustix::fs::Gid::from_raw);
        chown(&path, user.map(Uid::from_raw), group).unwrap();
        mode(&path, bits);
        let error = refusal(write(&path, OutputOptions::default()));
        assert!(error.contains(why), "{error}");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
    // The user has given the group the right to write by --mode.
    let of_group = dir.path().join("group 4321 may write to it");
    write(&of_group, with_mode(0o770)).unwrap();
}

/// Puts objects in the place of a stream's file, and calls `check` with a text about each object and its path.
fn planted(dir: &Path, mut check: impl FnMut(&str)) {
    let (file, other) = (dir.join("channel0_cpu0"), dir.join("other"));
    fs::write(&other, "precious").unwrap();
    let plants: [(&str, &dyn Fn()); 4] = [
        ("symbolic link", &|| symlink(&other, &file).unwrap()),
        ("link to nothing", &|| symlink("nothing", &file).unwrap()),
        ("hard link", &|| fs::hard_link(&other, &file).unwrap()),
        ("FIFO", &|| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
            rustix::fs::mknodat(rustix::fs::CWD, &file, kind, mode, 0).unwrap();
        }),
    ];
    for (name, plant) in plants {
        plant();
        check(name);
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious", "{name}");
        assert!(!dir.join("nothing").exists());
        fs::remove_file(&file).unwrap();
    }
}

fn stream() -> StreamName {
    StreamName {
        channel: "channel0".to_owned(),
        cpu: 0,
    }
}

#[test]
fn a_planted_stream_is_not_written() {
    let dir = TempDir::new().unwrap();
    let options = OutputOptions::default();
    let mut sink = options.begin(dir.path(), TRACE, &[stream()]).unwrap();
    sink.describe(&metadata(UUID, Layout::Compact)).unwrap();
    planted(dir.path(), |name| {
        let error = refusal(sink.open(&stream()));
        assert!(error.contains("it exists already"), "{name}: {error}");
    });
    // A file that another process made is no stream of this trace either.
    let file: PathBuf = dir.path().join("channel0_cpu0");
    fs::write(&file, "").unwrap();
    assert!(refusal(sink.open(&stream())).contains("it exists already"));
    fs::remove_file(&file).unwrap();
    sink.open(&stream()).unwrap();
}

#[test]
fn a_trace_continues_only_in_its_own_files() {
    let dir = TempDir::new().unwrap();
    let options = OutputOptions::default();
    write(dir.path(), options).unwrap();
    planted(dir.path(), |name| {
        let mut sink = options.begin(dir.path(), TRACE, &[stream()]).unwrap();
        let error = refusal(sink.open(&stream()));
        let reasons = ["a symbolic link", "another name", "a FIFO"];
        assert!(
            reasons.iter().any(|reason| error.contains(reason)),
            "{name}: {error}"
        );
    });
    if geteuid().is_root() {
        let file = dir.path().join("channel0_cpu0");
        fs::write(&file, "").unwrap();
        chown(&file, Some(Uid::from_raw(4321)), None).unwrap();
        let mut sink = options.begin(dir.path(), TRACE, &[stream()]).unwrap();
        let error = refusal(sink.open(&stream()));
        assert!(error.contains("belongs to another user"), "{error}");
    }
}
