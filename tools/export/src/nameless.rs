// SPDX-License-Identifier: GPL-2.0

//! Files of programs whose functions have no name in a trace.

use std::collections::HashMap;
use std::fmt;
use symbols::MappedFile;

/// Frames of stacks, by file.
#[derive(Debug, Default)]
pub struct Nameless {
    files: HashMap<MappedFile, Frames>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    named: u64,
    nameless: u64,
    is_gone: bool,
}

impl Nameless {
    /// Counts a frame.
    pub fn add(&mut self, file: &MappedFile, has_name: bool, is_gone: bool) {
        let frames = match self.files.get_mut(file) {
            Some(frames) => frames,
            None => self.files.entry(file.clone()).or_default(),
        };
        frames.is_gone = is_gone;
        match has_name {
            true => frames.named += 1,
            false => frames.nameless += 1,
        }
    }

    /// Adds the frames of another trace.
    pub fn join(&mut self, other: Self) {
        for (file, frames) in other.files {
            let sum = self.files.entry(file).or_default();
            sum.named += frames.named;
            sum.nameless += frames.nameless;
            sum.is_gone |= frames.is_gone;
        }
    }

    /// The file with the most frames without a name, of the files that were read or were gone.
    fn first(&self, is_gone: bool) -> Option<(&MappedFile, Frames)> {
        let files = self.files.iter().map(|(file, frames)| (file, *frames));
        let files = files.filter(|(_, frames)| frames.is_gone == is_gone && frames.nameless > 0);
        files.max_by_key(|(file, frames)| (frames.nameless, *file))
    }

    fn gone(&self) -> Option<String> {
        let (file, _) = self.first(true)?;
        let gone = self.files.values().filter(|frames| frames.is_gone).count();
        let others = match gone {
            1 => String::new(),
            more => format!(" (and {} more)", more - 1),
        };
        Some(format!(
            "functions of {}{others} have no name: the file was removed or replaced before rtrace could read it",
            file.shown()
        ))
    }
}

/// A line for the user; none if no file is gone.
impl fmt::Display for Nameless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.gone().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> MappedFile {
        MappedFile {
            path: path.to_owned(),
            id: Some("abcd".to_owned()),
        }
    }

    #[test]
    fn removed_files_are_named() {
        let mut frames = Nameless::default();
        for path in ["/a", "/b\n", "/b\n"] {
            frames.add(&file(path), false, true);
        }
        let text = frames.to_string();
        assert!(
            text.starts_with(
                r"functions of /b\x0a (and 1 more) have no name: the file was removed"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
}
