// SPDX-License-Identifier: GPL-2.0

//! The files of a machine, for tests of commands that examine one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Vendors of the variables of UEFI.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
const SHIM: &str = "605dab50-e046-4300-abb6-3dd810dd8b23";

/// Kernel of the machine.
pub const RELEASE: &str = "7.2.12+deb13-amd64";

/// A directory with the files of a machine.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
}

impl Machine {
    /// A Debian machine below `root` that can record: module installed and loaded, debugfs mounted.
    pub fn new(root: &Path) -> io::Result<Self> {
        let machine = Self {
            root: root.to_owned(),
        };
        for (path, text) in [
            ("proc/sys/kernel/osrelease", format!("{RELEASE}\n")),
            ("proc/sys/kernel/ftrace_enabled", "1\n".to_owned()),
            (
                "proc/filesystems",
                "nodev\tsysfs\nnodev\tdebugfs\n".to_owned(),
            ),
            (
                "proc/self/mounts",
                "none /sys/kernel/debug debugfs rw,mode=700 0 0\n".to_owned(),
            ),
            ("proc/modules", "rtrace 1 0 - Live 0x0\n".to_owned()),
            ("proc/cmdline", "quiet\n".to_owned()),
            (
                "etc/os-release",
                "ID=debian\nVERSION_CODENAME=\"trixie\"\n".to_owned(),
            ),
            (
                "sys/kernel/security/lockdown",
                "[none] integrity confidentiality\n".to_owned(),
            ),
        ] {
            machine.write(path, text)?;
        }
        machine.files("sys/kernel/debug/rtrace")?;
        machine.write(
            &format!("lib/modules/{RELEASE}/modules.dep"),
            "kernel/fs/ext4/ext4.ko.xz:\nupdates/dkms/rtrace.ko.xz:\n",
        )?;
        Ok(machine)
    }

    /// Makes the module's files in a directory.
    pub fn files(&self, dir: &str) -> io::Result<()> {
        let version = format!("{}\n", rtrace_abi::VERSION);
        self.write(&format!("{dir}/enable"), "0\n")?;
        self.write(&format!("{dir}/version"), version)?;
        self.write(&format!("{dir}/sessions/default/clock"), "[tsc] mono\n")
    }

    /// Mounts the module's own file system, and not debugfs.
    pub fn own_file_system(&self) -> io::Result<()> {
        let mounts = "rtrace /sys/kernel/rtrace rtrace rw 0 0\n";
        self.write("proc/filesystems", "nodev\tdebugfs\nnodev\trtrace\n")?;
        self.write("proc/self/mounts", mounts)?;
        self.remove("sys/kernel/debug")?;
        self.files("sys/kernel/rtrace")
    }

    /// Writes a file, in new directories if need be.
    pub fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> io::Result<()> {
        let path = self.root.join(path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(path, contents)
    }

    /// Removes a file or a directory.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.root.join(path);
        match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
    }

    /// Removes the module: neither loaded nor installed.
    pub fn without_module(&self) -> io::Result<()> {
        self.write("proc/modules", "")?;
        self.write(&format!("lib/modules/{RELEASE}/modules.dep"), "")?;
        self.remove("sys/kernel/debug/rtrace")
    }

    /// Sets a variable of UEFI.
    pub fn variable(&self, name: &str, value: &[u8]) -> io::Result<()> {
        let vendor = if name.starts_with("Mok") {
            SHIM
        } else {
            GLOBAL
        };
        // Attributes come first.
        let bytes = [&[6, 0, 0, 0], value].concat();
        self.write(&format!("sys/firmware/efi/efivars/{name}-{vendor}"), bytes)
    }
}
