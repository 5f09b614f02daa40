// SPDX-License-Identifier: GPL-2.0

//! Containers, as the paths of their cgroups tell them.
//!
//! | made by | last part of the path |
//! | --- | --- |
//! | Docker, nerdctl | `docker-ID.scope`, `nerdctl-ID.scope`, `ID` |
//! | Podman | `libpod-ID.scope`, `libpod-ID` |
//! | Kubernetes | `cri-containerd-ID.scope`, `crio-ID.scope`, `ID` |
//! | systemd-nspawn, machined | `systemd-nspawn@NAME.service`, `machine-NAME.scope` |
//! | LXC | `lxc.payload.NAME` |
//!
//! An ID has 64 hexadecimal digits. systemd escapes characters of a NAME as `\\xHH`.

use std::borrow::Cow;
use std::fmt;

/// Digits of an ID that are shown, as the programs that make containers show them.
const SHOWN: usize = 12;

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Container<'a> {
    /// Its ID.
    Id(&'a str),
    /// Its name.
    Name(Cow<'a, str>),
}

impl<'a> Container<'a> {
    /// The innermost container that a cgroup with this path belongs to.
    pub fn of(path: &'a str) -> Option<Self> {
        path.rsplit('/').find_map(Self::of_part)
    }

    fn of_part(part: &'a str) -> Option<Self> {
        let unit = part.strip_suffix(".scope");
        let scope = unit.unwrap_or(part);
        let id = ["docker-", "nerdctl-", "libpod-", "cri-containerd-", "crio-"]
            .iter()
            .find_map(|maker| scope.strip_prefix(maker))
            .unwrap_or(part);
        if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(Self::Id(id));
        }
        let service = part.strip_suffix(".service");
        let unit = unit.and_then(|unit| unit.strip_prefix("machine-"));
        let unit = unit.or_else(|| service?.strip_prefix("systemd-nspawn@"));
        let name = match unit {
            Some(unit) => unescaped(unit),
            None => part.strip_prefix("lxc.payload.")?.into(),
        };
        (!name.is_empty()).then_some(Self::Name(name))
    }

    /// Whether a user means the container by this text: its name, or the begin of its ID.
    pub fn is_called(&self, text: &str) -> bool {
        match self {
            Self::Id(id) => !text.is_empty() && id.starts_with(text),
            Self::Name(name) => name == text,
        }
    }
}

impl fmt::Display for Container<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Id(id) => id.get(..SHOWN).unwrap_or(id),
            Self::Name(name) => name,
        })
    }
}

/// Replaces systemd's escapes in the name of a unit.
fn unescaped(name: &str) -> Cow<'_, str> {
    let mut parts = name.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            // No escape of systemd's.
            _ => return name.into(),
        }
    }
    String::from_utf8(bytes).map_or(name.into(), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_containers() {
        let id = "0123456789ab".to_owned() + &"c".repeat(52);
        let other = "f".repeat(64);
        for (path, expected) in [
            (format!("/system.slice/docker-{id}.scope"), Some("0123456789ab")),
            (format!("/docker/{id}"), Some("0123456789ab")),
            (format!("/docker/{id}/init.scope"), Some("0123456789ab")),
            (format!("/machine.slice/libpod-{id}.scope/container"), Some("0123456789ab")),
            // Its monitor is not in the container.
            (format!("/machine.slice/libpod-conmon-{id}.scope"), None),
            (
                format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8e_1.slice/cri-containerd-{id}.scope"),
                Some("0123456789ab"),
            ),
            (format!("/kubepods/burstable/pod8e-1/{id}"), Some("0123456789ab")),
            // A container in a container.
            (format!("/docker/{other}/docker/{id}"), Some("0123456789ab")),
            ("/machine.slice/systemd-nspawn@web.service/payload".into(), Some("web")),
            ("/machine.slice/machine-my\\x2dbox.scope".into(), Some("my-box")),
            ("/machine.slice/machine-\\xzz.scope".into(), Some("\\xzz")),
            ("/lxc.payload.db/system.slice".into(), Some("db")),
            ("/system.slice/ssh.service".into(), None),
            ("/machine.slice/machine-.scope".into(), None),
            ("/".into(), None),
        ] {
            let found = Container::of(&path).map(|container| container.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn an_id_is_called_by_its_begin() {
        let id = "ab".repeat(32);
        let container = Container::of(&id).unwrap();
        for (text, expected) in [
            ("ab", true),
            (id.as_str(), true),
            ("ba", false),
            ("", false),
        ] {
            assert_eq!(container.is_called(text), expected, "{text}");
        }
        let container = Container::Name("web".into());
        assert!(container.is_called("web") && !container.is_called("we"));
    }
}
