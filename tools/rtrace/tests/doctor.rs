// SPDX-License-Identifier: GPL-2.0

//! `rtrace doctor` on machines that are directories of files.

mod schema;

use assert_cmd::Command;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use synthetic::machine::{Machine, RELEASE};
use tempfile::TempDir;

/// A certificate, and a list of enrolled keys that has it.
const KEY: &[u8] = b"certificate of DKMS";
const LIST: &[u8] = b"header, certificate of DKMS, another certificate";

fn doctor(root: &Path) -> Command {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.args(["doctor", "--root"]).arg(root);
    command
}

/// Returns the checks that are not good, each with its fix.
fn faults(command: &mut Command) -> Vec<(String, String, String)> {
    let output = command.arg("--json").output().unwrap();
    let answer = schema::read(&output.stdout);
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = answer["checks"].as_array().unwrap().iter();
    let faults = rows.filter(|row| row["state"] == "missing");
    let faults: Vec<_> = faults
        .map(|row| (text(row, "check"), text(row, "what"), text(row, "fix")))
        .collect();
    assert_eq!(output.status.success(), faults.is_empty(), "{faults:?}");
    faults
}

/// Makes a machine, changes it, and returns the first fault: check and fix.
fn first(change: impl FnOnce(&Machine)) -> (String, String) {
    let root = TempDir::new().unwrap();
    let machine = Machine::new(root.path()).unwrap();
    change(&machine);
    let faults = faults(&mut doctor(root.path()));
    let (check, _, fix) = faults.first().cloned().unwrap_or_default();
    // The text ends with that one command.
    let output = doctor(root.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    match check.is_empty() {
        true => assert!(!text.contains("next:"), "{text}"),
        false => assert!(text.ends_with(&format!("\nnext: {fix}\n")), "{text}"),
    }
    (check, fix.replace(root.path().to_str().unwrap(), ""))
}

fn is(found: (String, String), check: &str, fix: &str) {
    assert_eq!((found.0.as_str(), found.1.as_str()), (check, fix));
}

#[test]
fn a_machine_that_can_record_has_no_fault() {
    is(first(|_| ()), "", "");
    is(first(|machine| machine.own_file_system().unwrap()), "", "");
    let root = TempDir::new().unwrap();
    Machine::new(root.path()).unwrap();
    let output = doctor(root.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        format!("ok       kernel: {RELEASE}\n"),
        "ok       lockdown: none\n".to_owned(),
        "ok       module: loaded\n".to_owned(),
        "ok       Secure Boot: no UEFI\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn an_old_kernel_is_replaced() {
    let old = |machine: &Machine| {
        let release = "6.11.10+deb13-amd64\n";
        machine.write("proc/sys/kernel/osrelease", release).unwrap();
        machine.without_module().unwrap();
    };
    let fix = "apt install linux-image-amd64";
    is(first(old), "kernel", fix);
    let found = first(|machine| {
        old(machine);
        machine.write("etc/os-release", "ID=arch\n").unwrap();
    });
    is(found, "kernel", "install Linux 6.12 or later, and boot it");
}

#[test]
fn a_module_is_loaded_or_built() {
    let found = first(|machine| machine.write("proc/modules", "ext4 1 0\n").unwrap());
    is(found, "module", "modprobe rtrace");
    // Without the module, its build is examined.
    let root = TempDir::new().unwrap();
    let machine = Machine::new(root.path()).unwrap();
    machine.without_module().unwrap();
    let programs = TempDir::new().unwrap();
    let program = |name: &str, version: &str| {
        let path = programs.path().join(name);
        fs::write(
            &path,
            format!("#!/bin/sh\necho '{name} {version} (4eb161250 2025-03-15)'\n"),
        )
        .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    };
    let next = || {
        let mut command = doctor(root.path());
        let faults = faults(command.env("PATH", programs.path()));
        faults
            .into_iter()
            .next()
            .map(|(check, _, fix)| format!("{check}: {fix}"))
    };
    assert_eq!(next().unwrap(), "rustc: apt install rustc");
    program("rustc", "1.84.1");
    assert_eq!(next().unwrap(), "rustc: rustup update stable");
    program("rustc", "1.85.0");
    assert_eq!(next().unwrap(), "bindgen: apt install bindgen");
    program("bindgen", "0.71.1");
    let headers = format!("source: apt install linux-headers-{RELEASE}");
    assert_eq!(next().unwrap(), headers);
    machine
        .write(&format!("lib/modules/{RELEASE}/build/Makefile"), "")
        .unwrap();
    assert_eq!(next().unwrap(), "source: apt install linux-source-7.2");
    machine
        .write("usr/src/linux-source-7.2.tar.xz", "")
        .unwrap();
    let config = format!("lib/modules/{RELEASE}/build/.config");
    let needed = "MODULES TRACEPOINTS KPROBES FPROBE DEBUG_FS SCHEDSTATS";
    let configure = |options: &str| {
        let lines = options
            .split(' ')
            .map(|option| format!("CONFIG_{option}=y\n"));
        machine.write(&config, lines.collect::<String>()).unwrap();
        next().unwrap()
    };
    let without = "kernel options: boot a kernel with CONFIG_FPROBE=y";
    assert_eq!(configure(&needed.replace(" FPROBE", "")), without);
    let random = "kernel options: boot a kernel without CONFIG_RANDSTRUCT";
    assert_eq!(configure(&format!("{needed} RANDSTRUCT")), random);
    configure(needed);
    machine
        .write("var/lib/dkms/rtrace/0.1.0/source", "")
        .unwrap();
    assert_eq!(
        next().unwrap(),
        format!("module: dkms autoinstall -k {RELEASE}")
    );
    // The build for Debian 13's own kernel takes crates of a later one.
    let own = "6.12.57+deb13-amd64";
    machine.write("proc/sys/kernel/osrelease", own).unwrap();
    machine
        .write(&format!("lib/modules/{own}/build/Makefile"), "")
        .unwrap();
    assert_eq!(next().unwrap(), "source: apt install linux-source-6.12");
    machine.remove("usr/src/linux-source-7.2.tar.xz").unwrap();
    machine
        .write("usr/src/linux-source-6.12.tar.xz", "")
        .unwrap();
    // Without the backports among its sources, apt does not know them.
    assert_eq!(next().unwrap(), format!("package: make deb KERNEL={own}"));
    let list = "deb.debian.org_debian_dists_trixie-backports_main_binary-amd64_Packages.lz4";
    machine
        .write(&format!("var/lib/apt/lists/{list}"), "")
        .unwrap();
    assert_eq!(next().unwrap(), "source: apt install linux-source-7.2");
}

#[test]
fn a_package_of_modules_is_named_for_its_kernel() {
    let package = format!("rtrace-modules-{RELEASE}");
    let list = "var/lib/apt/lists/example.org_rtrace_._Packages";
    let with = |known: String| {
        first(|machine| {
            machine.without_module().unwrap();
            machine.write(list, &known).unwrap();
        })
    };
    let found = with(format!("Package: rtrace\n\nPackage: {package}\n"));
    is(found, "package", &format!("apt install {package}"));
    // It must be that of this very kernel.
    let (check, _) = with(format!("Package: {package}-other\n"));
    assert_ne!(check, "package");
}

#[test]
fn a_system_extension_has_the_modules_of_one_kernel() {
    let with = |kernel: &str| {
        first(|machine| {
            machine.without_module().unwrap();
            let conf = include_str!("../../../packaging/extension/modprobe.conf");
            let conf = conf.replace("@RELEASE@", kernel);
            let path = "usr/lib/modprobe.d/rtrace.conf";
            machine.write(path, conf).unwrap();
        })
    };
    is(with(RELEASE), "module", "modprobe rtrace");
    let fix = format!("make sysext KERNEL={RELEASE}");
    is(with("6.12.117+deb13-amd64"), "extension", &fix);
}

#[test]
fn secure_boot_needs_a_key() {
    let secure = |machine: &Machine| {
        machine.variable("SecureBoot", &[1]).unwrap();
        machine.write("proc/modules", "").unwrap();
    };
    is(first(secure), "Secure Boot", "dkms generate_mok");
    let keyed = |machine: &Machine| {
        secure(machine);
        machine.write("var/lib/dkms/mok.pub", KEY).unwrap();
    };
    is(
        first(keyed),
        "Secure Boot",
        "mokutil --import /var/lib/dkms/mok.pub",
    );
    let found = first(|machine| {
        keyed(machine);
        machine.variable("MokNew", LIST).unwrap();
    });
    is(found, "Secure Boot", "reboot");
    // The next fault is that the module is not loaded.
    let next = ("module", "modprobe rtrace");
    for change in [
        |machine: &Machine| machine.variable("MokListRT", LIST).unwrap(),
        |machine: &Machine| {
            let path = "sys/firmware/efi/mok-variables/MokListRT";
            machine.write(path, LIST).unwrap();
        },
        |machine: &Machine| machine.variable("MokSBStateRT", &[1]).unwrap(),
        |machine: &Machine| machine.variable("SecureBoot", &[0]).unwrap(),
    ] {
        let found = first(|machine| {
            keyed(machine);
            change(machine);
        });
        is(found, next.0, next.1);
    }
}

#[test]
fn lockdown_needs_the_own_file_system() {
    let mode = |mode: &'static str| {
        move |machine: &Machine| {
            let all = "none integrity confidentiality\n".replace(mode, &format!("[{mode}]"));
            machine.write("sys/kernel/security/lockdown", all).unwrap();
        }
    };
    let own = |machine: &Machine| {
        let known = "nodev\tdebugfs\nnodev\trtrace\n";
        machine.write("proc/filesystems", known).unwrap();
    };
    is(
        first(mode("confidentiality")),
        "lockdown",
        "boot with lockdown=integrity",
    );
    let found = first(mode("integrity"));
    is(
        found,
        "lockdown",
        "install a newer rtrace, or boot without lockdown=",
    );
    let mount = "mount -t rtrace rtrace /sys/kernel/rtrace";
    let found = first(|machine| {
        mode("integrity")(machine);
        own(machine);
    });
    is(found, "lockdown", mount);
    let found = first(|machine| {
        mode("integrity")(machine);
        machine.own_file_system().unwrap();
    });
    is(found, "", "");
    let found = first(|machine| {
        mode("integrity")(machine);
        machine.write("proc/modules", "").unwrap();
    });
    is(found, "lockdown", "mokutil --import /var/lib/dkms/mok.pub");
}

#[test]
fn the_files_need_a_mount() {
    let unmounted = |machine: &Machine| machine.write("proc/self/mounts", "").unwrap();
    let found = first(unmounted);
    is(found, "debugfs", "mount -t debugfs none /sys/kernel/debug");
    let found = first(|machine| {
        unmounted(machine);
        machine
            .write("proc/filesystems", "nodev\trtrace\n")
            .unwrap();
    });
    is(
        found,
        "debugfs",
        "mount -t rtrace rtrace /sys/kernel/rtrace",
    );
    let found = first(|machine| {
        unmounted(machine);
        machine.write("proc/filesystems", "nodev\tsysfs\n").unwrap();
        machine
            .write("proc/cmdline", "quiet debugfs=no-mount ro\n")
            .unwrap();
    });
    is(found, "debugfs", "boot without debugfs=no-mount");
    // Loading the module may be enough: it has a file system of its own.
    let root = TempDir::new().unwrap();
    let machine = Machine::new(root.path()).unwrap();
    unmounted(&machine);
    machine.write("proc/filesystems", "nodev\tsysfs\n").unwrap();
    machine.write("proc/modules", "").unwrap();
    machine.remove("sys/kernel/debug/rtrace").unwrap();
    let faults = faults(&mut doctor(root.path()));
    let checks: Vec<_> = faults.iter().map(|(check, ..)| check.as_str()).collect();
    assert_eq!(checks, ["module", "rtrace files"]);
}

#[test]
fn module_and_tools_have_one_version() {
    let found = first(|machine| {
        machine
            .write("sys/kernel/debug/rtrace/version", "0.0.9\n")
            .unwrap();
    });
    is(found, "versions", "modprobe -r rtrace && modprobe rtrace");
}

#[test]
fn a_container_has_the_files_of_its_host() {
    is(
        first(|machine| machine.write(".dockerenv", "").unwrap()),
        "",
        "",
    );
    let root = TempDir::new().unwrap();
    let machine = Machine::new(root.path()).unwrap();
    machine.write("run/systemd/container", "podman\n").unwrap();
    machine.remove("sys/kernel/debug/rtrace").unwrap();
    let faults = faults(&mut doctor(root.path()));
    let container = faults.iter().find(|(check, ..)| check == "container");
    let (_, what, fix) = container.unwrap();
    assert_eq!(
        what,
        "podman, and the host's rtrace files are not bound into it"
    );
    assert_eq!(
        fix,
        "podman run --privileged -v /sys/kernel/rtrace:/sys/kernel/rtrace ..."
    );
}
