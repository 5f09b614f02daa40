// SPDX-License-Identifier: GPL-2.0

//! The permissions of a trace on disk. A trace contains the arguments of system calls and the addresses of kernel
//! functions. So only its owner can read it, unless the user chooses otherwise.

pub use rustix::fs::Gid;
use rustix::fs::{fchmod, fchown, Mode};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;

/// The file with the names of groups.
const GROUPS: &str = "/etc/group";

/// The permissions of a trace's directory and files, whatever the umask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The directory's permission bits.
    mode: u32,
    /// The group of both. [`None`]: the file system chooses it.
    group: Option<Gid>,
}

impl Default for Access {
    /// Permissions for the owner alone.
    fn default() -> Self {
        Self {
            mode: 0o700,
            group: None,
        }
    }
}

impl Access {
    /// The permissions that the user asked for. A group without a mode may read.
    pub fn new(mode: Option<u32>, group: Option<Gid>) -> Self {
        let usual = if group.is_some() { 0o750 } else { 0o700 };
        Self {
            mode: mode.unwrap_or(usual),
            group,
        }
    }

    /// The permission bits of the directory.
    pub fn directory_mode(self) -> u32 {
        self.mode
    }

    /// The permission bits of files: those of the directory, without the bits for execution.
    fn file_mode(self) -> u32 {
        self.mode & 0o666
    }

    /// Gives an open directory these permissions.
    pub fn set_directory(self, dir: &File) -> io::Result<()> {
        self.set(dir, self.mode)
    }

    /// Gives an open file these permissions.
    pub fn set_file(self, file: &File) -> io::Result<()> {
        self.set(file, self.file_mode())
    }

    fn set(self, file: &File, wanted: u32) -> io::Result<()> {
        if let Some(group) = self.group {
            fchown(file, None, Some(group))
                .map_err(|cause| explain(cause, &format!("it cannot be given to group {group}")))?;
        }
        if mode(file)? == wanted {
            return Ok(());
        }
        let refused = fchmod(file, Mode::from_raw_mode(wanted));
        // A file system without permissions shows the ones that it was mounted with.
        refused.or_else(|cause| match mode(file)? & !wanted {
            0 => Ok(()),
            _ => Err(explain(
                cause,
                &format!("it cannot be given mode {wanted:04o}"),
            )),
        })
    }
}

fn mode(file: &File) -> io::Result<u32> {
    Ok(file.metadata()?.permissions().mode() & 0o777)
}

fn explain(cause: rustix::io::Errno, what: &str) -> io::Error {
    let cause = io::Error::from(cause);
    io::Error::new(cause.kind(), format!("{what}: {cause}"))
}

/// Permission bits of a directory, in octal, for the command line.
pub fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| text.bytes().all(|b| b.is_ascii_digit()) && mode & !0o777 == 0)
        .ok_or_else(|| "not an octal mode up to 0777, such as 0750".to_owned())
}

/// A group by its name in /etc/group, or by its number, for the command line.
pub fn parse_group(text: &str) -> Result<Gid, String> {
    if let Ok(number) = text.parse::<u32>() {
        // The last number means "no change" to chown(2).
        return match number {
            u32::MAX => Err("not the number of a group".to_owned()),
            number => Ok(Gid::from_raw(number)),
        };
    }
    let groups = fs::read_to_string(GROUPS).map_err(|e| format!("cannot read {GROUPS}: {e}"))?;
    find_group(&groups, text).ok_or_else(|| format!("{GROUPS} has no such group"))
}

/// The number of a group in lines `name:password:number:members`.
fn find_group(groups: &str, name: &str) -> Option<Gid> {
    groups.lines().find_map(|line| {
        let mut words = line.split(':');
        let number = (words.next() == Some(name)).then(|| words.nth(1))??;
        number.parse().ok().map(Gid::from_raw)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_groups() {
        assert_eq!(parse_mode("0750"), Ok(0o750));
        assert_eq!(parse_mode("700"), Ok(0o700));
        for bad in ["", "rwx", "0800", "01777", "-1", "+7"] {
            assert!(parse_mode(bad).is_err(), "{bad}");
        }
        let groups = "root:x:0:\nadm:x:4:you,me\nbroken\n";
        assert_eq!(find_group(groups, "adm"), Some(Gid::from_raw(4)));
        assert_eq!(find_group(groups, "broken"), None);
        assert_eq!(find_group(groups, "x"), None);
        assert_eq!(parse_group("1234"), Ok(Gid::from_raw(1234)));
        assert!(parse_group("4294967295").is_err());
        assert!(parse_group("no such group").is_err());
    }

    #[test]
    fn a_group_may_read_unless_a_mode_says_otherwise() {
        let group = Some(Gid::from_raw(4));
        assert_eq!(Access::new(None, None), Access::default());
        assert_eq!(Access::new(None, group).file_mode(), 0o640);
        assert_eq!(Access::new(Some(0o770), group).file_mode(), 0o660);
    }

    #[test]
    fn a_file_gets_its_mode_whatever_it_had() {
        let file = tempfile::tempfile().unwrap();
        for before in [0o000, 0o600, 0o777] {
            fchmod(&file, Mode::from_raw_mode(before)).unwrap();
            Access::default().set_file(&file).unwrap();
            assert_eq!(mode(&file).unwrap(), 0o600);
        }
    }
}
