// SPDX-License-Identifier: GPL-2.0

//! The texts beside a trace: their names, their limits, one reader, and one writer.
//!
//! A trace may come from anywhere. So a reader opens only a regular file, and reads no more than the limit, line by
//! line. The writer replaces a text as a whole. The exception is [`RECORDING`], which is written in place, because a
//! full disk may have no space for another file.

use crate::folder::Folder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use system::access::Access;
use system::{regular_file, Error, Result};

/// A text beside a trace.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The file's name. It begins with a dot, so that readers of CTF ignore the file.
    pub name: &'static str,
    /// Maximum number of bytes.
    most: u64,
}

/// How the recording ended, and the kernel's counters then.
pub const RECORDING: Text = Text::new(".recording", 64 << 20);

/// The entries of the session's maps.
pub const MAPS: Text = Text::new(".maps", 1 << 30);

/// Names of functions.
pub const SYMBOLS: Text = Text::new(".symbols", 1 << 30);

/// Mappings of programs.
pub const MAPPINGS: Text = Text::new(".mappings", 4 << 30);

/// All texts.
pub const ALL: [Text; 4] = [RECORDING, MAPS, SYMBOLS, MAPPINGS];

/// The maximum length of a line in bytes: the longest path, escaped, and more.
const LONGEST: u64 = 1 << 16;

impl Text {
    const fn new(name: &'static str, most: u64) -> Self {
        Self { name, most }
    }

    /// Opens the text in `dir`. [`None`]: it is missing, as all texts beside a trace that is one file.
    pub fn open(self, dir: &Path) -> Result<Option<Lines<BufReader<File>>>> {
        let path = dir.join(self.name);
        match regular_file::open(&path) {
            Ok(file) => Ok(Some(Lines::new(self, path, BufReader::new(file)))),
            Err(e) => match e.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(Error::read(&path)(e)),
            },
        }
    }

    /// Opens the text in `dir` or, for a chunk, beside the chunks.
    pub fn open_of_chunks(self, dir: &Path) -> Result<Option<Lines<BufReader<File>>>> {
        match self.open(dir)? {
            None => self.open(&dir.join("..")),
            found => Ok(found),
        }
    }

    /// The lines of a text that is in memory.
    pub fn lines(self, text: &[u8]) -> Lines<&[u8]> {
        Lines::new(self, PathBuf::from(self.name), text)
    }

    /// Gives `chunk` the text of `dir`, so that the chunk can be moved elsewhere.
    pub fn share(self, dir: &Path, chunk: &Path, access: Access) -> Result<()> {
        let path = dir.join(self.name);
        if fs::hard_link(&path, chunk.join(self.name)).is_ok() {
            return Ok(());
        }
        // The file system may have no such links.
        let mut text = regular_file::open(&path).map_err(Error::read(&path))?;
        self.write(chunk, access, |out| io::copy(&mut text, out).map(drop))
    }

    /// Writes the text in `dir`, completely or not at all.
    pub fn write(
        self,
        dir: &Path,
        access: Access,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let path = dir.join(self.name);
        let folder = Folder::open(dir, access)?;
        let written = folder.replace(self.name, access, write);
        written.map_err(Error::write(&path))
    }
}

/// The lines of a text. One is in memory at a time, because a long recording has millions.
#[derive(Debug)]
pub struct Lines<R> {
    text: R,
    path: PathBuf,
    line: Vec<u8>,
    number: u64,
    /// The number of bytes that may be read.
    left: u64,
    most: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(of: Text, path: PathBuf, text: R) -> Self {
        Self {
            text,
            path,
            line: Vec::new(),
            number: 0,
            left: of.most,
            most: of.most,
        }
    }

    /// The next line. [`None`]: the end of the text.
    pub fn next_line(&mut self) -> Result<Option<&str>> {
        self.line.clear();
        let limit = LONGEST.min(self.left.saturating_add(1));
        let mut text = self.text.by_ref().take(limit);
        let read = text.read_until(b'\n', &mut self.line);
        let read = read.map_err(Error::read(&self.path))? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if read > self.left {
            let mib = self.most >> 20;
            return Err(self.wrong(format!("the file has more than {mib} MiB")));
        }
        self.left -= read;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read == LONGEST {
            return Err(self.wrong(format!("it has more than {LONGEST} bytes")));
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => Err(self.wrong(error.to_string())),
        }
    }

    /// The next line; an empty one at the end.
    pub fn head(&mut self) -> Result<&str> {
        Ok(self.next_line()?.unwrap_or(""))
    }

    /// The error for the last line.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Text {
            path: self.path.clone(),
            line: self.number.max(1),
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mknodat, FileType, Mode, CWD};

    fn refusal<T>(result: Result<T>) -> String {
        result.err().expect("a refusal").to_string()
    }

    #[test]
    fn a_text_is_written_completely_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        for text in ALL {
            let write = |contents: &[u8], result: io::Result<()>| {
                text.write(dir.path(), Access::default(), |out| {
                    out.write_all(contents)?;
                    result
                })
            };
            write(b"old\n", Ok(())).unwrap();
            let full = Err(io::ErrorKind::StorageFull.into());
            let error = refusal(write(b"ne", full));
            assert!(
                error.contains("cannot write") && error.contains(text.name),
                "{error}"
            );
            let mut lines = text.open(dir.path()).unwrap().unwrap();
            assert_eq!(lines.next_line().unwrap(), Some("old"));
            assert_eq!(lines.next_line().unwrap(), None);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), ALL.len());
    }

    #[test]
    fn a_chunk_keeps_its_text_without_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (above, chunk) = (dir.path().join("above"), dir.path().join("above/chunk"));
        fs::create_dir_all(&chunk).unwrap();
        SYMBOLS
            .write(&above, Access::default(), |out| out.write_all(b"names\n"))
            .unwrap();
        // The second time it exists.
        for _ in 0..2 {
            SYMBOLS.share(&above, &chunk, Access::default()).unwrap();
        }
        let moved = dir.path().join("moved");
        fs::rename(&chunk, &moved).unwrap();
        fs::remove_dir_all(&above).unwrap();
        let mut lines = SYMBOLS.open_of_chunks(&moved).unwrap().unwrap();
        assert_eq!(lines.head().unwrap(), "names");
    }

    #[test]
    fn only_a_regular_file_of_a_limited_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        for text in ALL {
            assert!(text.open(dir.path()).unwrap().is_none());
            let path = dir.path().join(text.name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let error = refusal(text.open(dir.path()));
            assert!(
                error.contains("a FIFO") && error.contains(text.name),
                "{error}"
            );
            fs::remove_file(&path).unwrap();
            // A hole needs no space on the disk.
            fs::write(&path, "a\n").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(1 << 40).unwrap();
            let mut lines = text.open(dir.path()).unwrap().unwrap();
            assert_eq!(lines.head().unwrap(), "a");
            let error = refusal(lines.next_line().map(drop));
            assert!(error.contains("line 2: it has more than"), "{error}");
        }
    }

    #[test]
    fn lines_have_numbers_and_the_text_has_an_end() {
        let small = Text::new(".small", 6);
        let mut lines = small.lines(b"ab\n\ncd\n");
        assert_eq!(lines.head().unwrap(), "ab");
        assert_eq!(lines.head().unwrap(), "");
        let error = refusal(lines.next_line().map(drop));
        assert_eq!(error, ".small: line 3: the file has more than 0 MiB");
        let mut lines = small.lines(b"a\n\xff\n");
        lines.head().unwrap();
        let error = refusal(lines.next_line().map(drop));
        assert!(error.contains("line 2: invalid utf-8"), "{error}");
        let mut lines = small.lines(b"a");
        assert_eq!(lines.head().unwrap(), "a");
        assert_eq!(lines.head().unwrap(), "");
    }
}
