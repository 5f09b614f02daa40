// SPDX-License-Identifier: GPL-2.0

//! `rtrace doctor`: checks that this machine can record, and says how to fix what is missing.

mod machine;

use crate::args::DoctorArgs;
use crate::schema::Schema;
use control::{Tracer, DEBUGFS, DEFAULT_SESSION};
use machine::{Key, Machine, SecureBoot, MOK};
use record::exit::{Code, DAMAGED, DONE};
use record::place::Place;
use rustix::fs::{access, Access};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use terminal::{print, BAD, GOOD};

/// The oldest kernel whose interfaces the module knows: Debian 13's own.
const OLDEST: (u32, u32) = (6, 12);

/// The oldest kernel whose own crates the module uses. A build for an older one needs the crates of this
/// (scripts/graft-crates).
const CRATES: (u32, u32) = (7, 2);

/// Debian's package of the newest kernel.
const IMAGE: &str = match cfg!(target_arch = "aarch64") {
    true => "linux-image-arm64",
    false => "linux-image-amd64",
};

/// The options that the module needs of the kernel (scripts/check-kdir).
const NEEDED: [&str; 6] = [
    "MODULES",
    "TRACEPOINTS",
    "KPROBES",
    "FPROBE",
    "DEBUG_FS",
    "SCHEDSTATS",
];

/// The oldest rustc that compiles the module.
const OLDEST_RUSTC: (u32, u32) = (1, 85);

/// The type of the module's own file system, and its mount point.
const RTRACE: &str = "rtrace";
const MOUNT: &str = "/sys/kernel/rtrace";
const OWN: &str = "/sys/kernel";

/// The clock that the kernel uses: `tsc`, if it trusts the time stamp counter.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Result of a check.
enum Finding {
    Good(String),
    /// The fault, and the command that fixes it.
    Bad(String, String),
    /// The check has no result, for this reason.
    Unknown(String),
}

use Finding::{Bad, Good, Unknown};

/// The checks, for JSON.
#[derive(JsonSchema, Serialize)]
pub struct Checks<'a> {
    checks: Vec<Row<'a>>,
}

/// A check.
#[derive(JsonSchema, Serialize)]
struct Row<'a> {
    check: &'a str,
    /// ok, missing or unknown.
    state: &'a str,
    /// Result of the check.
    what: &'a str,
    /// The command that fixes the fault.
    fix: Option<&'a String>,
}

/// Prints every check, and the one command to run next. The exit code says whether all checks are good.
pub fn doctor(place: &Place, args: &DoctorArgs) -> anyhow::Result<Code> {
    let machine = Machine::at(&args.root);
    let is_usual = [DEBUGFS, OWN]
        .iter()
        .any(|usual| place.debugfs == Path::new(usual));
    let debugfs = match is_usual {
        true if machine.is_mounted(RTRACE, &machine.path(MOUNT)) => machine.path(OWN),
        true => machine.path(DEBUGFS),
        false => machine.path(&place.debugfs),
    };
    let mut checks = vec![
        ("permission", permission(&machine, &debugfs)),
        ("kernel", kernel(&machine)),
    ];
    let is_there = machine.is_loaded() || machine.is_installed();
    let extension = machine.extension().filter(|_| !is_there);
    if let Some(kernel) = &extension {
        let other = format!("the system extension has the modules for {kernel} only");
        let fix = format!("make sysext KERNEL={}", machine.release);
        checks.push(("extension", Bad(other, fix)));
    } else if let Some(package) = machine.modules_package().filter(|_| !is_there) {
        let missing = format!("apt knows the package {package}, which is not installed");
        let fix = format!("apt install {package}");
        checks.push(("package", Bad(missing, fix)));
    } else if let Some(crates) = crates_of_backports(&machine).filter(|_| !is_there) {
        let release = &machine.release;
        let missing = format!(
            "apt knows no package of modules for {release}, and no {crates}, which a build here needs and only the backports have"
        );
        let fix = format!("make deb KERNEL={release}");
        checks.push(("package", Bad(missing, fix)));
    } else if !is_there {
        checks.push(("rustc", rustc()));
        checks.push(("bindgen", bindgen()));
        checks.push(("source", source(&machine)));
    }
    checks.extend([
        ("kernel options", options(&machine, is_there)),
        ("Secure Boot", secure_boot(&machine)),
        ("lockdown", lockdown(&machine)),
        ("functions", functions(&machine)),
        ("module", module(&machine, is_there)),
        ("debugfs", mount(&machine, &debugfs)),
        ("versions", versions(&debugfs)),
        ("rtrace files", files(&machine, &debugfs)),
    ]);
    if let Some(kind) = machine.container() {
        checks.push(("container", container(&kind, &debugfs)));
    }
    let code = match checks.iter().any(|(_, finding)| matches!(finding, Bad(..))) {
        true => DAMAGED,
        false => DONE,
    };
    if args.json {
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
        let checks = rows.collect();
        Schema::Doctor.print(&Checks { checks }, None)?;
        return Ok(code);
    }
    let mut out = String::new();
    let mut next = None;
    for (name, finding) in &checks {
        match finding {
            Good(what) => writeln!(out, "{GOOD}ok{GOOD:#}       {name}: {what}")?,
            Unknown(why) => writeln!(out, "unknown  {name}: {why}")?,
            Bad(what, fix) => {
                next = next.or(Some(fix));
                writeln!(
                    out,
                    "{BAD}missing{BAD:#}  {name}: {what}\n         fix it: {fix}"
                )?;
            }
        }
    }
    if let Some(next) = next {
        // A later fault may be a consequence of the first.
        writeln!(out, "\nnext: {next}")?;
    }
    print(&out)?;
    Ok(code)
}

/// Checks that the user may record: that `enable` is writable.
fn permission(machine: &Machine, debugfs: &Path) -> Finding {
    if rustix::process::geteuid().is_root() {
        return Good("root".to_owned());
    }
    let is_closed = |path: &Path| access(path, Access::EXEC_OK) == Err(Errno::ACCESS);
    let may_write = |tree: &Path| access(tree.join("enable"), Access::WRITE_OK);
    let own = may_write(&machine.path(MOUNT));
    match own.or_else(|_| may_write(&debugfs.join("rtrace"))) {
        Ok(()) => Good("not root; the module's gid= and mode= grant access".to_owned()),
        Err(_) if own == Err(Errno::ACCESS) => Bad(
            format!("not root, and gid= and mode= of {MOUNT} grant no access"),
            format!("sudo mount -o remount,gid=$(id -g),mode=0770 {MOUNT}"),
        ),
        Err(Errno::ACCESS) if machine.is_mounted("debugfs", debugfs) && is_closed(debugfs) => Bad(
            format!(
                "not root, and only root may enter {}: debugfs has its own mode, whatever the module's",
                debugfs.display()
            ),
            "sudo rtrace ...".to_owned(),
        ),
        Err(Errno::ACCESS) => Bad(
            "not root, and the module's gid= and mode= grant no access".to_owned(),
            "sudo rtrace ...".to_owned(),
        ),
        Err(error) => Unknown(error.to_string()),
    }
}

/// Parses the two first numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .split(['.', '-', '+', '~'])
        .map_while(|word| word.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Checks that the module can be built for the kernel.
fn kernel(machine: &Machine) -> Finding {
    let release = &machine.release;
    match version(release) {
        Some(found) if found >= OLDEST => Good(release.clone()),
        Some(_) => {
            let (major, minor) = OLDEST;
            let fix = match machine.distribution().as_str() {
                "debian" => format!("apt install {IMAGE}"),
                _ => format!("install Linux {major}.{minor} or later, and boot it"),
            };
            Bad(format!("{release} is older than {major}.{minor}"), fix)
        }
        None => Unknown(format!("cannot read the release `{release}`")),
    }
}

/// Checks that the rustc here can compile the module.
fn rustc() -> Finding {
    let (major, minor) = OLDEST_RUSTC;
    let output = Command::new("rustc").arg("--version").output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // rustc 1.85.1 (4eb161250 2025-03-15)
    let found = said.as_ref().ok().and_then(|said| said.split(' ').nth(1));
    match found.and_then(version) {
        Some(known) if known >= OLDEST_RUSTC => Good(said.unwrap_or_default().trim().to_owned()),
        Some(_) => Bad(
            format!(
                "rustc {} cannot compile the kernel's crates: {major}.{minor} or later can",
                found.unwrap_or_default()
            ),
            "rustup update stable".to_owned(),
        ),
        None => Bad(
            "there is no rustc to build the module with".to_owned(),
            "apt install rustc".to_owned(),
        ),
    }
}

/// Checks that bindgen, which a build needs, is here.
fn bindgen() -> Finding {
    match Command::new("bindgen").arg("--version").output() {
        Ok(output) => Good(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(_) => Bad(
            "there is no bindgen to build the module with".to_owned(),
            "apt install bindgen".to_owned(),
        ),
    }
}

/// The package of the source whose crates a build for this kernel needs, if neither the machine nor apt has it.
fn crates_of_backports(machine: &Machine) -> Option<String> {
    let is_old = version(&machine.release).is_some_and(|own| own >= OLDEST && own < CRATES);
    let package = source_package(CRATES);
    let build = format!("/lib/modules/{}/build", machine.release);
    let is_there = machine.has(metadata(&build)) || machine.has(tarball(&package));
    (is_old && !is_there && !machine.knows_backports()).then_some(package)
}

/// Debian's package of a kernel's source.
fn source_package((major, minor): (u32, u32)) -> String {
    format!("linux-source-{major}.{minor}")
}

/// The file that such a package has.
fn tarball(package: &str) -> String {
    format!("/usr/src/{package}.tar.xz")
}

/// The metadata of the kernel's crates in a kernel's build folder.
fn metadata(build: &str) -> String {
    format!("{build}/rust/libkernel.rmeta")
}

/// Checks what a build of the module for this kernel needs.
fn source(machine: &Machine) -> Finding {
    let release = &machine.release;
    let build = format!("/lib/modules/{release}/build");
    if !machine.has(format!("{build}/Makefile")) {
        return Bad(
            format!("the headers of {release} are not installed"),
            format!("apt install linux-headers-{release}"),
        );
    }
    if machine.has(metadata(&build)) {
        return Good(format!("the metadata of the kernel's crates in {build}"));
    }
    let own = version(release);
    let crates = (own < Some(CRATES)).then_some(CRATES);
    let series = own.into_iter().chain(crates);
    let packages: Vec<_> = series.map(source_package).collect();
    match packages
        .iter()
        .find(|package| !machine.has(tarball(package)))
    {
        Some(package) => Bad(
            format!(
                "neither the metadata of the kernel's crates nor {} exists",
                tarball(package)
            ),
            format!("apt install {package}"),
        ),
        None => {
            let tarballs: Vec<_> = packages.iter().map(|package| tarball(package)).collect();
            Good(tarballs.join(", "))
        }
    }
}

/// Checks the kernel's configuration. A module that is there needs no further answer.
fn options(machine: &Machine, is_there: bool) -> Finding {
    if is_there {
        return Good("the module was built for this kernel".to_owned());
    }
    let release = &machine.release;
    let paths = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/build/.config"),
    ];
    let found = paths
        .iter()
        .find_map(|path| Some((path, machine.text(path)?)));
    let Some((path, config)) = found else {
        return Unknown(format!(
            "cannot tell: neither {} nor {} exists",
            paths[0], paths[1]
        ));
    };
    let has = |option: &str| {
        config
            .lines()
            .any(|line| line == format!("CONFIG_{option}=y"))
    };
    let missing = NEEDED.into_iter().find(|option| !has(option));
    match missing {
        Some(option) => Bad(
            format!("{path} has no CONFIG_{option}=y"),
            format!("boot a kernel with CONFIG_{option}=y"),
        ),
        None if has("RANDSTRUCT") => Bad(
            format!("{path} has CONFIG_RANDSTRUCT=y: Rust code cannot know the order of fields"),
            "boot a kernel without CONFIG_RANDSTRUCT".to_owned(),
        ),
        None => Good(format!("{path} has all that rtrace needs")),
    }
}

/// Checks that the firmware's rules let the module load.
fn secure_boot(machine: &Machine) -> Finding {
    match machine.secure_boot() {
        SecureBoot::NoEfi => return Good("no UEFI".to_owned()),
        SecureBoot::Off => return Good("off".to_owned()),
        SecureBoot::On => {}
    }
    if machine.is_loaded() {
        return Good("on, and the module is loaded".to_owned());
    }
    match machine.key() {
        Key::Enrolled => Good(format!("on, and the key {MOK} is enrolled")),
        Key::Pending => Bad(
            format!("on, and the key {MOK} is not enrolled yet: MOK manager asks at the next boot"),
            "reboot".to_owned(),
        ),
        Key::Unknown => Bad(
            format!("on, and the key that signs the module is not enrolled: {MOK}"),
            format!("mokutil --import {MOK}"),
        ),
        Key::Missing => Bad(
            format!("on, and there is no key to sign the module with: {MOK}"),
            "dkms generate_mok".to_owned(),
        ),
    }
}

/// Checks that lockdown leaves a way to the module's files.
fn lockdown(machine: &Machine) -> Finding {
    let text = machine.text("/sys/kernel/security/lockdown");
    let Some(text) = text else {
        return Good("none (no lockdown file)".to_owned());
    };
    let has_mount = machine.is_mounted(RTRACE, &machine.path(MOUNT));
    match text.split(['[', ']']).nth(1).unwrap_or("none") {
        "none" => Good("none".to_owned()),
        "integrity" if has_mount => Good(format!("integrity: {MOUNT} is open, debugfs is not")),
        "integrity" if machine.knows(RTRACE) => Bad(
            "integrity: the kernel closes debugfs, and rtrace's own file system is not mounted"
                .to_owned(),
            mount_command(),
        ),
        "integrity" if !machine.is_loaded() => match machine.key() {
            Key::Enrolled => Good(format!("integrity: modules signed with {MOK} load")),
            _ => Bad(
                "integrity: the kernel loads only signed modules".to_owned(),
                format!("mokutil --import {MOK}"),
            ),
        },
        "integrity" => Bad(
            "integrity: the kernel closes debugfs, and this module has no file system of its own"
                .to_owned(),
            "install a newer rtrace, or boot without lockdown=".to_owned(),
        ),
        mode => Bad(
            format!("{mode}: the kernel refuses all tracing"),
            "boot with lockdown=integrity".to_owned(),
        ),
    }
}

/// The command that mounts the module's own file system.
fn mount_command() -> String {
    format!("mount -t {RTRACE} {RTRACE} {MOUNT}")
}

/// Whether functions can be traced (`-F`, `--graph`).
fn functions(machine: &Machine) -> Finding {
    const PATH: &str = "/proc/sys/kernel/ftrace_enabled";
    match machine.text(PATH) {
        Some(text) if text.trim() == "0" => Bad(
            format!("function tracing is switched off for all tracers: {PATH} is 0"),
            "sudo sysctl kernel.ftrace_enabled=1".to_owned(),
        ),
        Some(_) => Good("can be traced".to_owned()),
        None => Good("this kernel cannot trace functions".to_owned()),
    }
}

/// Checks that the module's files have a place: in debugfs, or in a file system of their own.
fn mount(machine: &Machine, debugfs: &Path) -> Finding {
    // All of debugfs may be mounted there, or rtrace's directory alone.
    let mut places = [debugfs.to_owned(), debugfs.join("rtrace")].into_iter();
    if places.any(|path| machine.is_mounted("debugfs", &path)) {
        return Good(format!("mounted on {}", debugfs.display()));
    }
    if machine.is_mounted(RTRACE, &machine.path(MOUNT)) {
        return Good(format!("not needed: {MOUNT} is mounted"));
    }
    if machine.knows(RTRACE) {
        return Bad(
            format!("neither debugfs nor {MOUNT} is mounted"),
            mount_command(),
        );
    }
    if machine.knows("debugfs") {
        return Bad(
            format!("not mounted on {}", debugfs.display()),
            format!("mount -t debugfs none {}", debugfs.display()),
        );
    }
    if !machine.is_loaded() {
        return Unknown(format!(
            "this kernel has no debugfs; a loaded module has {MOUNT} instead"
        ));
    }
    let line = machine.text("/proc/cmdline").unwrap_or_default();
    let mut words = line.split_whitespace();
    let word = words.find(|word| word.starts_with("debugfs="));
    Bad(
        "this kernel has no debugfs".to_owned(),
        format!("boot without {}", word.unwrap_or("debugfs=off")),
    )
}

fn module(machine: &Machine, is_there: bool) -> Finding {
    if machine.is_loaded() {
        Good("loaded".to_owned())
    } else if is_there {
        Bad("not loaded".to_owned(), "modprobe rtrace".to_owned())
    } else if machine.has("/var/lib/dkms/rtrace") {
        Bad(
            format!("DKMS has not built it for {}", machine.release),
            format!("dkms autoinstall -k {}", machine.release),
        )
    } else {
        Bad(
            "not loaded".to_owned(),
            "modprobe rtrace (or insmod rtrace.ko where it was built)".to_owned(),
        )
    }
}

/// Checks that the loaded module and this program have one version.
fn versions(debugfs: &Path) -> Finding {
    const OURS: &str = rtrace_abi::VERSION;
    match Tracer::find(debugfs).and_then(|tracer| tracer.version()) {
        Ok(version) if version == OURS => Good(format!("module and tools are {OURS}")),
        Ok(version) => Bad(
            format!("the module is {version}, the tools are {OURS}"),
            "modprobe -r rtrace && modprobe rtrace".to_owned(),
        ),
        Err(_) => Unknown("the module's files are not there".to_owned()),
    }
}

/// Checks that a container has the host's files.
fn container(kind: &str, debugfs: &Path) -> Finding {
    match Tracer::find(debugfs) {
        Ok(_) => Good(format!("{kind}, with the host's rtrace files")),
        Err(_) => Bad(
            format!("{kind}, and the host's rtrace files are not bound into it"),
            format!("{kind} run --privileged -v {MOUNT}:{MOUNT} ..."),
        ),
    }
}

fn files(machine: &Machine, debugfs: &Path) -> Finding {
    let found = Tracer::find(debugfs).and_then(|tracer| {
        let clock = tracer.session(DEFAULT_SESSION)?.clock()?;
        Ok((tracer.version()?, clock))
    });
    match found {
        Ok((version, clock)) => {
            let why = match machine.text(CLOCK_SOURCE) {
                Some(source) if clock == "mono" => {
                    format!(" (the kernel's own clock is {})", source.trim())
                }
                _ => String::new(),
            };
            Good(format!("version {version}, clock {clock}{why}"))
        }
        Err(error) => Bad(
            error.to_string(),
            "fix the checks above; if this one still fails, look at dmesg".to_owned(),
        ),
    }
}
