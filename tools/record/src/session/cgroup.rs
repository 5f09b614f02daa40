// SPDX-License-Identifier: GPL-2.0

//! Paths of cgroups: conversion from the user's form to the kernel's.

use crate::state::mounts;
use std::fs;

/// A mount of the v2 hierarchy.
struct Mount {
    /// Path of the mounted cgroup.
    root: String,
    /// Mount point.
    point: String,
}

/// The kernel's paths of cgroups. A path below a mount point of the v2 hierarchy names a cgroup by its directory. Any
/// other path begins at the root of the hierarchy.
pub fn paths(given: &[String]) -> Vec<String> {
    let mounts = mounts(&fs::read("/proc/self/mountinfo").unwrap_or_default());
    given.iter().map(|given| path(given, &mounts)).collect()
}

fn path(given: &str, mounts: &[Mount]) -> String {
    let mounted = mounts.iter().find_map(|mount| {
        let below = given.strip_prefix(&mount.point)?;
        let is_below = below.is_empty() || below.starts_with('/');
        is_below.then(|| format!("{}{below}", mount.root.trim_end_matches('/')))
    });
    let path = mounted.unwrap_or_else(|| given.to_owned());
    format!("/{}", path.trim_matches('/'))
}

/// The mounts of the v2 hierarchy in the text of `/proc/PID/mountinfo`.
fn mounts(text: &[u8]) -> Vec<Mount> {
    let lines = text.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(|line| {
        let mount = mounts::Mount::parse(line)?;
        (mount.kind == b"cgroup2").then_some(())?;
        Some(Mount {
            root: String::from_utf8(mount.root).ok()?,
            point: String::from_utf8(mount.point)
                .ok()?
                .trim_end_matches('/')
                .to_owned(),
        })
    });
    mounts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
31 22 0:26 /a.slice /mnt/a rw - cgroup2 none rw
33 22 0:26 /b\\040c /mnt/b\\040c rw - cgroup2 none rw
32 22 0:27 / /sys/fs/cgroup-v1 rw - cgroup cgroup rw,cpu
";

    #[test]
    fn paths_below_a_mount_are_those_of_cgroups() {
        let mounts = mounts(MOUNTINFO.as_bytes());
        for (given, expected) in [
            ("/system.slice/ssh.service", "/system.slice/ssh.service"),
            ("system.slice", "/system.slice"),
            ("/sys/fs/cgroup/system.slice/", "/system.slice"),
            ("/sys/fs/cgroup", "/"),
            ("/sys/fs/cgroup-v1/x", "/sys/fs/cgroup-v1/x"),
            ("/sys/fs/cgroups", "/sys/fs/cgroups"),
            ("/mnt/a/b", "/a.slice/b"),
            ("/mnt/a", "/a.slice"),
            ("/mnt/b c/d", "/b c/d"),
            ("/", "/"),
        ] {
            assert_eq!(path(given, &mounts), expected, "{given}");
        }
    }
}
