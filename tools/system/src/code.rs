// SPDX-License-Identifier: GPL-2.0

//! The code that a process has mapped, from `/proc/PID/maps`.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The kernel's name of the vDSO.
pub const VDSO: &str = "[vdso]";

/// Mapped code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedCode<'a> {
    /// Its first address.
    pub begin: u64,
    /// The address after it.
    pub end: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// The file's device, as `MAJOR:MINOR`.
    pub device: &'a str,
    /// The file's inode; 0: no file is mapped.
    pub inode: u64,
    /// The file's path, or the kernel's name of memory without a file; may be empty.
    pub path: &'a str,
}

impl<'a> MappedCode<'a> {
    /// The mapped code of a line of `/proc/PID/maps`. [`None`]: the line is of other memory.
    fn of_line(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        let code = Self {
            begin: hex(begin)?,
            end: hex(end)?,
            offset: hex(words.next()?)?,
            device: words.next()?,
            inode: words.next()?.parse().ok()?,
            path: words.next()?.trim_start(),
        };
        is_code.then_some(code)
    }
}

/// The lines about a process: a number, or `self`.
pub fn maps(process: &str) -> io::Result<String> {
    let maps = fs::read(format!("/proc/{process}/maps"))?;
    Ok(String::from_utf8_lossy(&maps).into_owned())
}

/// The mapped code among the lines of `/proc/PID/maps`.
pub fn mapped_code(maps: &str) -> impl Iterator<Item = MappedCode<'_>> {
    maps.lines().filter_map(MappedCode::of_line)
}

/// The file that a process has mapped at these addresses, even if it was removed.
pub fn file_at(pid: i64, begin: u64, end: u64) -> PathBuf {
    format!("/proc/{pid}/map_files/{begin:x}-{end:x}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_maps() {
        let code = |begin, end, offset, device, inode, path| MappedCode {
            begin,
            end,
            offset,
            device,
            inode,
            path,
        };
        for (line, found) in [
            (
                "55d0c8a00000-55d0c8a20000 r-xp 00002000 08:01 123                        /usr/bin/a b",
                Some(code(0x55d0_c8a0_0000, 0x55d0_c8a2_0000, 0x2000, "08:01", 123, "/usr/bin/a b")),
            ),
            ("7f00-7f10 r--p 00000000 08:01 123 /usr/bin/a", None),
            ("7f00-7f10 r-xp 00000000 00:00 0 ", Some(code(0x7f00, 0x7f10, 0, "00:00", 0, ""))),
            (
                "7f00-7f10 r-xp 00000000 00:00 0                          [vdso]",
                Some(code(0x7f00, 0x7f10, 0, "00:00", 0, "[vdso]")),
            ),
            ("nonsense", None),
        ] {
            assert_eq!(MappedCode::of_line(line), found, "{line}");
        }
    }
}
