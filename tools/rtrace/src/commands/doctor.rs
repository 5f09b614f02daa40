// SPDX-License-Identifier: GPL-2.0

//! `rtrace doctor`: checks that this machine can record, and says how to fix what is missing.

use crate::options::Place;
use control::{Tracer, DEFAULT_SESSION};
use rustix::fs::{access, statfs, Access};
use rustix::io::Errno;
use rustix::system::uname;
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use terminal::{print, print_json, BAD, GOOD};

/// The oldest kernel that the module builds for.
const OLDEST: (u32, u32) = (7, 2);

/// Magic number of debugfs in statfs(2) (linux/magic.h).
const DEBUGFS_MAGIC: i64 = 0x6462_6720;

/// Result of a check.
enum Finding {
    Good(String),
    /// The fault, and how to fix it.
    Bad(String, String),
    /// The check has no result, for this reason.
    Unknown(String),
}

use Finding::{Bad, Good, Unknown};

/// A check as JSON.
#[derive(Serialize)]
struct Row<'a> {
    check: &'a str,
    state: &'a str,
    what: &'a str,
    fix: Option<&'a String>,
}

/// Prints every check. Returns whether all are good.
pub fn doctor(place: &Place, json: bool) -> anyhow::Result<bool> {
    let release = uname().release().to_string_lossy().into_owned();
    let checks = [
        ("permission", permission(&place.debugfs)),
        ("kernel", kernel(&release)),
        ("Rust support", rust(&release)),
        ("lockdown", lockdown()),
        ("functions", functions()),
        ("debugfs", debugfs(&place.debugfs)),
        ("module", module()),
        ("rtrace files", files(&place.debugfs)),
    ];
    let well = !checks.iter().any(|(_, finding)| matches!(finding, Bad(..)));
    if json {
        let rows = checks.iter().map(|(check, finding)| match finding {
            Good(what) => Row {
                check,
                state: "ok",
                what,
                fix: None,
            },
            Unknown(why) => Row {
                check,
                state: "unknown",
                what: why,
                fix: None,
            },
            Bad(what, fix) => Row {
                check,
                state: "missing",
                what,
                fix: Some(fix),
            },
        });
        print_json(&rows.collect::<Vec<_>>())?;
        return Ok(well);
    }
    let mut out = String::new();
    for (name, finding) in checks {
        match finding {
            Good(what) => writeln!(out, "{GOOD}ok{GOOD:#}       {name}: {what}")?,
            Unknown(why) => writeln!(out, "unknown  {name}: {why}")?,
            Bad(what, fix) => writeln!(
                out,
                "{BAD}missing{BAD:#}  {name}: {what}\n         fix it: {fix}"
            )?,
        }
    }
    print(&out)?;
    Ok(well)
}

/// Checks that the user may record: that `enable` is writable.
fn permission(debugfs: &Path) -> Finding {
    if rustix::process::geteuid().is_root() {
        return Good("root".to_owned());
    }
    match access(debugfs.join("rtrace/enable"), Access::WRITE_OK) {
        Ok(()) => Good("not root; the module's gid= and mode= grant access".to_owned()),
        Err(Errno::ACCESS) => Bad(
            "not root, and the module's gid= and mode= grant no access".to_owned(),
            "sudo rtrace ...".to_owned(),
        ),
        Err(error) => Unknown(error.to_string()),
    }
}

fn kernel(release: &str) -> Finding {
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|word| word.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Good(release.to_owned()),
        (Some(_), Some(_)) => Bad(
            format!("{release} is older than {}.{}", OLDEST.0, OLDEST.1),
            "install a newer kernel; on Debian 13: apt install -t trixie-backports linux-image-amd64"
                .to_owned(),
        ),
        _ => Unknown(format!("cannot read the release `{release}`")),
    }
}

fn rust(release: &str) -> Finding {
    let paths = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/build/.config"),
    ];
    for path in &paths {
        let Ok(config) = fs::read_to_string(path) else {
            continue;
        };
        return if config.lines().any(|line| line == "CONFIG_RUST=y") {
            Good(format!("CONFIG_RUST=y in {path}"))
        } else {
            Bad(
                format!("{path} has no CONFIG_RUST=y"),
                "boot a kernel with CONFIG_RUST=y, for example a backports kernel of Debian, 7.2 or newer".to_owned(),
            )
        };
    }
    // The kernel's own symbols. The symbols of modules follow them in the file.
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if symbols
        .lines()
        .any(|line| line.contains(" rust_helper_") && !line.ends_with(']'))
    {
        Good("the running kernel has it".to_owned())
    } else {
        Unknown(format!(
            "cannot tell: neither {} nor {} exists",
            paths[0], paths[1]
        ))
    }
}

fn lockdown() -> Finding {
    const PATH: &str = "/sys/kernel/security/lockdown";
    let Ok(text) = fs::read_to_string(PATH) else {
        return Good("none (no lockdown file)".to_owned());
    };
    let mode = text.split(['[', ']']).nth(1).unwrap_or("none");
    if mode == "none" {
        Good("none".to_owned())
    } else {
        Bad(
            format!("the kernel is locked down ({mode}): unsigned modules or debugfs are refused"),
            "switch Secure Boot off, or boot without lockdown=".to_owned(),
        )
    }
}

/// Whether functions can be traced (`-F`, `--graph`).
fn functions() -> Finding {
    const PATH: &str = "/proc/sys/kernel/ftrace_enabled";
    match fs::read_to_string(PATH) {
        Ok(text) if text.trim() == "0" => Bad(
            format!("function tracing is switched off for all tracers: {PATH} is 0"),
            "sudo sysctl kernel.ftrace_enabled=1".to_owned(),
        ),
        Ok(_) => Good("can be traced".to_owned()),
        Err(_) => Good("this kernel cannot trace functions".to_owned()),
    }
}

fn debugfs(path: &Path) -> Finding {
    // All of debugfs may be mounted there, or rtrace's directory alone.
    let is_debugfs = |path: &Path| statfs(path).is_ok_and(|found| found.f_type == DEBUGFS_MAGIC);
    let mounted = is_debugfs(path) || is_debugfs(&path.join("rtrace"));
    let known = fs::read_to_string("/proc/filesystems")
        .is_ok_and(|text| text.lines().any(|line| line.ends_with("\tdebugfs")));
    if mounted {
        Good(format!("mounted on {}", path.display()))
    } else if known {
        Bad(
            format!("not mounted on {}", path.display()),
            format!("mount -t debugfs none {}", path.display()),
        )
    } else {
        Bad(
            "this kernel has no debugfs".to_owned(),
            "boot without debugfs=off".to_owned(),
        )
    }
}

fn module() -> Finding {
    let loaded = fs::read_to_string("/proc/modules")
        .is_ok_and(|text| text.lines().any(|line| line.starts_with("rtrace ")));
    if loaded {
        Good("loaded".to_owned())
    } else {
        Bad(
            "not loaded".to_owned(),
            "modprobe rtrace (or insmod rtrace.ko where it was built)".to_owned(),
        )
    }
}

fn files(debugfs: &Path) -> Finding {
    let found = Tracer::find(debugfs).and_then(|tracer| {
        let clock = tracer.session(DEFAULT_SESSION)?.clock()?;
        Ok((tracer.version()?, clock))
    });
    match found {
        Ok((version, clock)) => Good(format!("version {version}, clock {clock}")),
        Err(error) => Bad(
            error.to_string(),
            "fix the checks above; if this one still fails, look at dmesg".to_owned(),
        ),
    }
}
