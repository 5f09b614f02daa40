// SPDX-License-Identifier: GPL-2.0

//! A machine, as its files describe it.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a machine below a root directory: `/`, or that of a mounted image.
pub struct Machine {
    root: PathBuf,
    /// The kernel's release; empty if it is not known.
    pub release: String,
    mounts: Vec<Mount>,
}

/// A mounted file system.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The mount point.
    pub at: PathBuf,
    /// The type: debugfs, rtrace.
    pub kind: String,
}

/// State of Secure Boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecureBoot {
    /// The machine did not boot by UEFI.
    NoEfi,
    /// Secure Boot is off, or shim does not check signatures (`mokutil --disable-validation`).
    Off,
    /// The kernel accepts only modules with a known key.
    On,
}

/// State of the key that signs DKMS's modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// There is no key.
    Missing,
    /// The key is not enrolled.
    Unknown,
    /// The key will be enrolled at the next boot, after a confirmation.
    Pending,
    /// The key is enrolled.
    Enrolled,
}

/// Vendor of UEFI's own variables, and of shim's.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
const SHIM: &str = "605dab50-e046-4300-abb6-3dd810dd8b23";

/// Certificate of the key that signs DKMS's modules.
pub const MOK: &str = "/var/lib/dkms/mok.pub";

/// Size of a list of packages that is read, in bytes.
const LIST_MAX: u64 = 4 << 20;

impl Machine {
    /// The machine whose files are below `root`.
    pub fn at(root: &Path) -> Self {
        let mut machine = Self {
            root: root.to_owned(),
            release: String::new(),
            mounts: Vec::new(),
        };
        let release = machine.text("/proc/sys/kernel/osrelease");
        machine.release = release.unwrap_or_default().trim().to_owned();
        let mounts = machine.text("/proc/self/mounts").unwrap_or_default();
        machine.mounts = mounts.lines().filter_map(Mount::parse).collect();
        machine
    }

    /// The place of a file of this machine. A relative path stays as it is.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match path.strip_prefix("/") {
            Ok(path) => self.root.join(path),
            Err(_) => path.to_owned(),
        }
    }

    /// Whether a file exists.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The text of a file.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether a file system of this type is mounted on this directory, which is a result of [`path`](Self::path).
    pub fn is_mounted(&self, kind: &str, at: &Path) -> bool {
        let real = fs::canonicalize(at).unwrap_or_else(|_| at.to_owned());
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        let inside = Path::new("/").join(real.strip_prefix(&root).unwrap_or(&real));
        let mut mounts = self.mounts.iter();
        mounts.any(|mount| mount.kind == kind && mount.at == inside)
    }

    /// Whether the kernel knows a type of file system.
    pub fn knows(&self, kind: &str) -> bool {
        let known = self.text("/proc/filesystems").unwrap_or_default();
        known
            .lines()
            .any(|line| line.split('\t').nth(1) == Some(kind))
    }

    /// Whether the module is loaded.
    pub fn is_loaded(&self) -> bool {
        let modules = self.text("/proc/modules").unwrap_or_default();
        modules.lines().any(|line| line.starts_with("rtrace "))
    }

    /// Whether modprobe finds the module for this kernel.
    pub fn is_installed(&self) -> bool {
        if self.extension().as_ref() == Some(&self.release) {
            return true;
        }
        let known = self.text(format!("/lib/modules/{}/modules.dep", self.release));
        let known = known.unwrap_or_default();
        let mut modules = known.lines().filter_map(|line| line.split(':').next());
        modules.any(|module| {
            let file = module.rsplit('/').next().unwrap_or(module);
            file == "rtrace.ko" || file.starts_with("rtrace.ko.")
        })
    }

    /// The kernel that the modules of the merged system extension (scripts/sysext) are for.
    pub fn extension(&self) -> Option<String> {
        let commands = self.text("/usr/lib/modprobe.d/rtrace.conf")?;
        let (_, path) = commands.split_once("insmod /usr/lib/modules/")?;
        Some(path.split_once('/')?.0.to_owned())
    }

    /// The package with the compiled modules for this kernel, if a repository of apt has it.
    pub fn modules_package(&self) -> Option<String> {
        let release = self.release.to_lowercase().replace('_', "-");
        let package = format!("rtrace-modules-{release}");
        let line = format!("Package: {package}");
        let lists = fs::read_dir(self.path("/var/lib/apt/lists")).ok()?;
        // The list of a repository of scripts/repo is short.
        let is_list = |path: &PathBuf| {
            path.to_string_lossy().ends_with("_Packages")
                && fs::metadata(path).is_ok_and(|file| file.len() < LIST_MAX)
        };
        let mut lists = lists.flatten().map(|list| list.path()).filter(is_list);
        let is_known = lists.any(|list| {
            let text = fs::read_to_string(list).unwrap_or_default();
            text.lines().any(|known| known == line)
        });
        is_known.then_some(package)
    }

    /// Whether the backports of a release of Debian are among apt's sources.
    pub fn knows_backports(&self) -> bool {
        let lists = fs::read_dir(self.path("/var/lib/apt/lists"));
        let mut lists = lists.into_iter().flatten().flatten();
        // For example deb.debian.org_debian_dists_trixie-backports_main_binary-amd64_Packages.lz4.
        lists.any(|list| {
            let name = list.file_name();
            let name = name.to_string_lossy();
            name.contains("-backports_") && name.contains("_Packages")
        })
    }

    /// The identifier of the distribution, such as `debian`.
    pub fn distribution(&self) -> String {
        let text = self.text("/etc/os-release").unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(name, _)| *name == "ID");
        found.map_or_else(String::new, |(_, value)| value.trim_matches('"').to_owned())
    }

    /// The kind of container that the process is in, if it is in one.
    pub fn container(&self) -> Option<String> {
        if let Some(kind) = self.text("/run/systemd/container") {
            return Some(kind.trim().to_owned());
        }
        let files = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
        let found = files.into_iter().find(|(file, _)| self.has(file));
        found.map(|(_, kind)| kind.to_owned())
    }

    /// State of Secure Boot.
    pub fn secure_boot(&self) -> SecureBoot {
        let is_set = |name: &str, vendor: &str| {
            // The value follows four bytes of attributes.
            let variable = self.variable(name, vendor);
            variable.is_some_and(|bytes| bytes.get(4) == Some(&1))
        };
        match self.variable("SecureBoot", GLOBAL) {
            None => SecureBoot::NoEfi,
            Some(_) if !is_set("SecureBoot", GLOBAL) || is_set("MokSBStateRT", SHIM) => {
                SecureBoot::Off
            }
            Some(_) => SecureBoot::On,
        }
    }

    /// State of the key that signs DKMS's modules.
    pub fn key(&self) -> Key {
        let Ok(certificate) = fs::read(self.path(MOK)) else {
            return Key::Missing;
        };
        let has = |name: &str| {
            let copy = fs::read(self.path(format!("/sys/firmware/efi/mok-variables/{name}")));
            let mut lists = self.variable(name, SHIM).into_iter().chain(copy.ok());
            // A list has each certificate as it is in its file.
            lists.any(|list| has_part(&list, &certificate))
        };
        match (has("MokListRT"), has("MokNew")) {
            (true, _) => Key::Enrolled,
            (false, true) => Key::Pending,
            (false, false) => Key::Unknown,
        }
    }

    /// A variable of UEFI.
    fn variable(&self, name: &str, vendor: &str) -> Option<Vec<u8>> {
        let path = format!("/sys/firmware/efi/efivars/{name}-{vendor}");
        fs::read(self.path(path)).ok()
    }
}

impl Mount {
    /// Parses a line of `/proc/self/mounts`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        Some(Self {
            // No other escape occurs in the places that matter.
            at: at.replace("\\040", " ").into(),
            kind: kind.to_owned(),
        })
    }
}

fn has_part(whole: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && whole.windows(part.len()).any(|window| window == part)
}
