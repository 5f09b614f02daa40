// SPDX-License-Identifier: GPL-2.0

//! The mounts in this process's namespace, and the cgroups below one of them.

use super::devices::device;
use super::lines::Line;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str;

/// Names of the events.
pub const MOUNT: &str = "rtrace_statedump_mount";
/// The event of a cgroup.
pub const CGROUP: &str = "rtrace_statedump_cgroup";

/// A line of /proc/self/mountinfo.
pub struct Mount<'a> {
    id: &'a str,
    parent: &'a str,
    device: u32,
    /// The mounted directory of the file system.
    pub root: Vec<u8>,
    /// Mount point.
    pub point: Vec<u8>,
    /// Type of the file system.
    pub kind: &'a [u8],
    source: Vec<u8>,
}

impl<'a> Mount<'a> {
    /// Parses a line. The paths in it need not be UTF-8.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let mut number = || str::from_utf8(words.next()?).ok();
        let (id, parent, number) = (number()?, number()?, number()?);
        let (root, point) = (words.next()?, words.next()?);
        let mut words = words.skip_while(|word| *word != b"-").skip(1);
        let (kind, source) = (words.next()?, words.next()?);
        Some(Self {
            id,
            parent,
            device: device(number)?,
            root: unescaped(root),
            point: unescaped(point),
            kind,
            source: unescaped(source),
        })
    }
}

/// One line for each mount in the namespace of this process.
pub fn mounts(proc: &Path, _: &Path) -> io::Result<Vec<Line>> {
    let namespace = fs::metadata(proc.join("self/ns/mnt"))?.ino();
    let text = fs::read(proc.join("self/mountinfo"))?;
    let lines = lines(&text).filter_map(Mount::parse).map(|mount| {
        Line::new(MOUNT)
            .number("ns_inum", namespace)
            .number("mnt_id", mount.id)
            .number("parent_id", mount.parent)
            .number("dev", mount.device)
            .text("fstype", mount.kind)
            .text("source", mount.source)
            .text("mountpoint", mount.point)
    });
    Ok(lines.collect())
}

/// One line for each cgroup (v2), with the path as in /proc/PID/cgroup. No lines if the v2 hierarchy is not mounted.
pub fn cgroups(proc: &Path, _: &Path) -> io::Result<Vec<Line>> {
    let lines = hierarchy(proc)?.into_iter().map(|(id, path)| {
        Line::new(CGROUP)
            .number("cgroup_id", id)
            .text("path", path.as_os_str().as_bytes())
    });
    Ok(lines.collect())
}

/// The id and the path of each cgroup (v2); none if the v2 hierarchy is not mounted.
pub fn hierarchy(proc: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let text = fs::read(proc.join("self/mountinfo"))?;
    let mut mounts = lines(&text).filter_map(Mount::parse);
    let mount = mounts.find(|mount| mount.kind == b"cgroup2");
    Ok(mount.map_or_else(Vec::new, |mount| {
        below(Path::new(OsStr::from_bytes(&mount.point)))
    }))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// The cgroups in a hierarchy that is mounted here.
fn below(root: &Path) -> Vec<(u64, PathBuf)> {
    let mut cgroups = Vec::new();
    let mut left = vec![PathBuf::from("/")];
    while let Some(path) = left.pop() {
        let dir = root.join(path.strip_prefix("/").unwrap_or(&path));
        // The cgroup may be gone meanwhile.
        let (Ok(metadata), Ok(entries)) = (fs::metadata(&dir), fs::read_dir(&dir)) else {
            continue;
        };
        // The cgroup may also disappear while its entries are read.
        for entry in entries.map_while(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(path.join(entry.file_name()));
            }
        }
        cgroups.push((metadata.ino(), path));
    }
    cgroups
}

/// Decodes the kernel's three octal digits after a backslash, which stand for blanks and backslashes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| first == b'\\');
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_and_cgroups() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path().join("proc/self");
        fs::create_dir_all(proc.join("ns")).unwrap();
        fs::write(proc.join("ns/mnt"), "").unwrap();
        let hierarchy = dir.path().join("a b");
        fs::create_dir_all(hierarchy.join("x.slice/y")).unwrap();
        fs::write(hierarchy.join("cgroup.procs"), "").unwrap();
        let point = hierarchy.to_str().unwrap().replace(' ', "\\040");
        let mut text = format!(
            "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n\
             23 22 0:25 /sub {point} rw - cgroup2 none\\134x rw\n\
             24 22 0:26 / /mnt/"
        )
        .into_bytes();
        text.extend(b"\xe4\\8 rw - tmpfs \\04 rw\n");
        fs::write(proc.join("mountinfo"), text).unwrap();
        let proc = dir.path().join("proc");
        let found = mounts(&proc, &proc).unwrap();
        let namespace = fs::metadata(proc.join("self/ns/mnt")).unwrap().ino();
        let found: Vec<_> = found.iter().map(Line::as_str).collect();
        let hierarchy = hierarchy.to_str().unwrap();
        assert_eq!(
            found,
            [
                format!(
                    "rtrace_statedump_mount ns_inum={namespace} mnt_id=22 parent_id=1 dev=266338305 \
                     fstype=\"ext4\" source=\"/dev/vda1\" mountpoint=\"/\""
                ),
                format!(
                    "rtrace_statedump_mount ns_inum={namespace} mnt_id=23 parent_id=22 dev=25 \
                     fstype=\"cgroup2\" source=\"none\\\\x\" mountpoint=\"{hierarchy}\""
                ),
                format!(
                    "rtrace_statedump_mount ns_inum={namespace} mnt_id=24 parent_id=22 dev=26 \
                     fstype=\"tmpfs\" source=\"\\\\04\" mountpoint=\"/mnt/\\xe4\\\\8\""
                ),
            ]
        );
        let found = cgroups(&proc, &proc).unwrap();
        let paths: Vec<_> = found
            .iter()
            .map(|line| line.as_str().split_once("path=").unwrap().1)
            .collect();
        assert_eq!(paths, [r#""/""#, r#""/x.slice""#, r#""/x.slice/y""#]);
        let root = fs::metadata(hierarchy).unwrap().ino();
        assert!(found[0].as_str().contains(&format!("cgroup_id={root} ")));
    }
}
