// SPDX-License-Identifier: GPL-2.0

//! Files of programs whose functions have no name in a trace, and what helps.

use std::collections::HashMap;
use std::fmt;
use std::process::{Command, Stdio};
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

    /// Says what to install if most frames have no name.
    fn hint(&self) -> Option<String> {
        let all = self.files.values();
        let (named, nameless) = all.fold((0, 0), |(named, nameless), frames| {
            (named + frames.named, nameless + frames.nameless)
        });
        let (file, _) = self.first(false).filter(|_| nameless > named)?;
        // Other names are those of memory.
        let id = file.build_id()?;
        let install = match package(&file.path) {
            // The only package of Debian whose symbols have another name.
            Some(package) if package == "libc6" => {
                format!("install its debug symbols ({package}-dbg)")
            }
            Some(package) => format!("install its debug symbols ({package}-dbgsym)"),
            None => format!(
                "install its debug symbols, as /usr/lib/debug/.build-id/{}/{}.debug",
                id.get(..2)?,
                id.get(2..)?
            ),
        };
        Some(format!(
            "most functions of programs have no name, most of them in {}: {install}, or use --debuginfod",
            file.shown()
        ))
    }
}

/// A line for the user for each reason; none if no name is missing.
impl fmt::Display for Nameless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.gone().into_iter().chain(self.hint()).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The package of Debian that has a file.
fn package(path: &str) -> Option<String> {
    let mut command = Command::new("dpkg-query");
    command.args(["--search", "--", path]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = text.split([':', ',']).next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    Some(name.to_owned()).filter(|name| !name.is_empty() && name.chars().all(is_name))
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
    fn a_hint_appears_if_most_names_are_missing() {
        let mut frames = Nameless::default();
        let stripped = file("/no/such/program");
        frames.add(&stripped, false, false);
        frames.add(&stripped, true, false);
        assert_eq!(frames.to_string(), "");
        let mut more = Nameless::default();
        more.add(&stripped, false, false);
        frames.join(more);
        let hint = frames.to_string();
        assert!(hint.contains("/no/such/program"), "{hint}");
        assert!(
            hint.contains("/usr/lib/debug/.build-id/ab/cd.debug"),
            "{hint}"
        );
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
