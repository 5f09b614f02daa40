// SPDX-License-Identifier: GPL-2.0

//! The mounts that are seen from here, and the cgroups below one of them.

use super::devices::device;
use super::lines::Line;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The events.
pub const MOUNT: &str = "rtrace_statedump_mount";
pub const CGROUP: &str = "rtrace_statedump_cgroup";

/// A line of /proc/self/mountinfo.
struct Mount<'a> {
    id: &'a str,
    parent: &'a str,
    device: u32,
    point: Vec<u8>,
    kind: &'a str,
    source: Vec<u8>,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split(' ');
        let (id, parent, number) = (words.next()?, words.next()?, words.next()?);
        // Behind the directory that is mounted.
        let point = words.nth(1)?;
        let mut words = words.skip_while(|word| *word != "-").skip(1);
        let (kind, source) = (words.next()?, words.next()?);
        Some(Self {
            id,
            parent,
            device: device(number)?,
            point: unescaped(point),
            kind,
            source: unescaped(source),
        })
    }
}

/// One for each mount in the namespace of this process.
pub fn mounts(proc: &Path, _: &Path) -> io::Result<Vec<Line>> {
    let namespace = fs::metadata(proc.join("self/ns/mnt"))?.ino();
    let text = fs::read_to_string(proc.join("self/mountinfo"))?;
    let lines = text.lines().filter_map(Mount::parse).map(|mount| {
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

/// One for each cgroup (v2), by the paths that /proc/PID/cgroup has; none where that is not mounted.
pub fn cgroups(proc: &Path, _: &Path) -> io::Result<Vec<Line>> {
    let text = fs::read_to_string(proc.join("self/mountinfo"))?;
    let mut mounts = text.lines().filter_map(Mount::parse);
    let mut lines = Vec::new();
    if let Some(mount) = mounts.find(|mount| mount.kind == "cgroup2") {
        below(Path::new(OsStr::from_bytes(&mount.point)), &mut lines)?;
    }
    Ok(lines)
}

/// Those in a hierarchy that is mounted here.
fn below(root: &Path, lines: &mut Vec<Line>) -> io::Result<()> {
    let mut left = vec![PathBuf::from("/")];
    while let Some(path) = left.pop() {
        let dir = root.join(path.strip_prefix("/").unwrap_or(&path));
        // It may be gone meanwhile.
        let (Ok(metadata), Ok(entries)) = (fs::metadata(&dir), fs::read_dir(&dir)) else {
            continue;
        };
        lines.push(
            Line::new(CGROUP)
                .number("cgroup_id", metadata.ino())
                .text("path", path.as_os_str().as_bytes()),
        );
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(path.join(entry.file_name()));
            }
        }
    }
    Ok(())
}

/// What the kernel writes as three octal digits behind a backslash: blanks, and backslashes themselves.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = behind.get(..3);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(b'\\');
                rest = behind;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
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
        fs::write(
            proc.join("mountinfo"),
            format!(
                "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n\
                 23 22 0:25 /sub {point} rw - cgroup2 none\\134x rw\n"
            ),
        )
        .unwrap();
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
