// SPDX-License-Identifier: GPL-2.0

//! Cgroups, as the user names them: by a path, a directory or a container.

use crate::state::mounts;
use anyhow::bail;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use system::container::Container;

/// A mount of the v2 hierarchy.
struct Mount {
    /// Path of the mounted cgroup.
    root: String,
    /// Mount point.
    point: String,
}

/// The kernel's paths of cgroups. A path below a mount point of the v2 hierarchy names a cgroup by its directory. A word
/// without `/` is a cgroup at the root of the hierarchy, or a container. Any other path begins at the root.
pub fn paths(given: &[String]) -> anyhow::Result<Vec<String>> {
    let mounts = mounts(&fs::read("/proc/self/mountinfo").unwrap_or_default());
    // The rights may not suffice to list all cgroups.
    let all: Vec<_> = all().unwrap_or_default().into_values().collect();
    given
        .iter()
        .map(|given| path(given, &mounts, &all))
        .collect()
}

/// The paths of all cgroups, by their ids.
pub fn all() -> std::io::Result<BTreeMap<u64, String>> {
    let cgroups = mounts::hierarchy(Path::new("/proc"))?.into_iter();
    Ok(cgroups
        .filter_map(|(id, path)| Some((id, path.into_os_string().into_string().ok()?)))
        .collect())
}

fn path(given: &str, mounts: &[Mount], all: &[String]) -> anyhow::Result<String> {
    let mounted = mounts.iter().find_map(|mount| {
        let below = given.strip_prefix(&mount.point)?;
        let is_below = below.is_empty() || below.starts_with('/');
        is_below.then(|| format!("{}{below}", mount.root.trim_end_matches('/')))
    });
    let path = mounted.unwrap_or_else(|| given.to_owned());
    let path = format!("/{}", path.trim_matches('/'));
    if given.is_empty() || given.contains('/') || all.contains(&path) {
        return Ok(path);
    }
    // The shortest path of each container: those below it belong to the container, too.
    let mut containers: Vec<(Container<'_>, &String)> = Vec::new();
    let mut by_length: Vec<_> = all.iter().collect();
    by_length.sort_by_key(|path| path.len());
    for path in by_length {
        if let Some(container) = Container::of(path) {
            if containers.iter().all(|(known, _)| *known != container) {
                containers.push((container, path));
            }
        }
    }
    let names = |containers: &[&(Container<'_>, &String)]| {
        let mut names: Vec<_> = containers
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        names.sort();
        names.join(", ")
    };
    let called: Vec<_> = containers
        .iter()
        .filter(|(container, _)| container.is_called(given))
        .collect();
    match called.as_slice() {
        [(_, path)] => Ok((*path).clone()),
        [] if containers.is_empty() => bail!("there is no cgroup /{given}, and no container"),
        [] => bail!(
            "there is no cgroup /{given}, and no container {given}; there are {}",
            names(&containers.iter().collect::<Vec<_>>())
        ),
        several => bail!("{given} is not clear: {}", names(several)),
    }
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
            ("a.slice", "/a.slice"),
            ("/sys/fs/cgroup/system.slice/", "/system.slice"),
            ("/sys/fs/cgroup", "/"),
            ("/sys/fs/cgroup-v1/x", "/sys/fs/cgroup-v1/x"),
            ("/sys/fs/cgroups", "/sys/fs/cgroups"),
            ("/mnt/a/b", "/a.slice/b"),
            ("/mnt/a", "/a.slice"),
            ("/mnt/b c/d", "/b c/d"),
            ("/", "/"),
        ] {
            let path = path(given, &mounts, &["/a.slice".to_owned()]);
            assert_eq!(path.unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn a_word_is_a_container() {
        let one = "1a".repeat(32);
        let other = "1b".repeat(32);
        let all = [
            format!("/system.slice/docker-{one}.scope/init.scope"),
            format!("/system.slice/docker-{one}.scope"),
            format!("/docker/{other}"),
            "/machine.slice/machine-web.scope".to_owned(),
            "/web2".to_owned(),
        ];
        for (given, expected) in [
            ("1a1a", Ok(all[1].as_str())),
            (&other, Ok(&all[2])),
            ("web", Ok(&all[3])),
            ("web2", Ok("/web2")),
            ("1", Err("1 is not clear: 1a1a1a1a1a1a, 1b1b1b1b1b1b")),
            (
                "db",
                Err("there is no cgroup /db, and no container db; there are 1a1a1a1a1a1a, 1b1b1b1b1b1b, web"),
            ),
        ] {
            let path = path(given, &[], &all).map_err(|error| error.to_string());
            assert_eq!(path.as_deref().map_err(String::as_str), expected, "{given}");
        }
        let none = path("db", &[], &[]).unwrap_err();
        assert_eq!(none.to_string(), "there is no cgroup /db, and no container");
    }
}
