// SPDX-License-Identifier: GPL-2.0

//! Opens the files of a trace on disk: regular files only. Opening or reading a FIFO may wait forever, and opening a
//! device may have effects.

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens `path` for reading. Never waits. Refuses a file that is not regular, with a text that names its kind
/// ([`io::ErrorKind::InvalidInput`]).
pub fn open(path: &Path) -> io::Result<File> {
    // The first check comes before open(2), because opening a device can have effects. The second comes after it,
    // because the name may refer to another file by then. If that is a FIFO, O_NONBLOCK opens it at once.
    check(fs::metadata(path)?.file_type())?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// The largest file that is read at once: a description, a text beside a trace.
pub const LARGEST: u64 = 64 << 20;

/// The bytes of the file `path`, opened as [`open`] does. A file of more than [`LARGEST`] bytes is refused.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let what = format!("it has more than {} MiB", LARGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// The text of the file `path`, as [`read`] reads it.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Refuses a file that is not regular, with a text that names its kind.
pub fn check(kind: FileType) -> io::Result<()> {
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a FIFO",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_symlink() => "a symbolic link",
        _ => "a device",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}, not a regular file"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mknodat, FileType, Mode, CWD};

    fn refusal<T: std::fmt::Debug>(result: io::Result<T>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, fifo) = (
            dir.path().join("file"),
            dir.path().join("link"),
            dir.path().join("fifo"),
        );
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read_to_string(&file).unwrap(), "text");
        assert_eq!(read_to_string(&link).unwrap(), "text");
        // Without a writer an ordinary open would wait here forever.
        assert!(refusal(read_to_string(&fifo)).contains("a FIFO"));
        assert!(refusal(open(Path::new("/dev/null"))).contains("a device"));
        assert!(refusal(open(dir.path())).contains("a directory"));
        let missing = open(&dir.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
