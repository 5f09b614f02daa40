// SPDX-License-Identifier: GPL-2.0

//! Names of threads and mappings of programs, over time, from the records that tell them.

use std::collections::HashMap;
use std::fmt::Write;

/// The maximum number of changes that are kept.
const MOST: usize = 1 << 24;

/// The maximum length of a name, as the kernel has it.
const NAME: usize = 15;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A thread has a name. `is_exec`: because it executes a program.
    Name {
        pid: i32,
        tid: i32,
        name: Vec<u8>,
        is_exec: bool,
    },
    /// A thread begins.
    Fork {
        pid: i32,
        parent: i32,
        tid: i32,
        by: i32,
    },
    /// A thread ends.
    Exit { pid: i32, tid: i32 },
    /// Code of a file is mapped.
    Map {
        pid: i32,
        address: u64,
        length: u64,
        offset: u64,
        id: Option<String>,
        path: String,
    },
}

/// All changes.
#[derive(Debug, Default)]
pub struct Changes {
    all: Vec<(u64, Change)>,
    /// The number of changes that are too many.
    pub left_out: u64,
}

/// The names of threads over time.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<[u8; NAME + 1]>,
    /// By thread: since when it has which name, in order of time.
    threads: HashMap<i32, Vec<(u64, usize)>>,
}

impl Changes {
    /// Adds a change.
    pub fn add(&mut self, time: u64, change: Change) {
        match self.all.len() < MOST {
            true => self.all.push((time, change)),
            false => self.left_out += 1,
        }
    }

    /// Makes the names of threads, and the text of the mappings (`.mappings`). `ids` are the build ids of files.
    pub fn finish(mut self, head: &str, ids: &HashMap<String, String>) -> (Names, String) {
        self.all.sort_by_key(|(time, _)| *time);
        let (mut names, mut places) = (Names::default(), HashMap::new());
        let mut text = head.to_owned();
        for (time, change) in self.all {
            let written = match change {
                Change::Name {
                    pid,
                    tid,
                    name,
                    is_exec,
                } => {
                    let mut own = [0; NAME + 1];
                    let length = name.len().min(NAME);
                    own[..length].copy_from_slice(&name[..length]);
                    let place = *places.entry(own).or_insert_with(|| {
                        names.names.push(own);
                        names.names.len() - 1
                    });
                    names.set(tid, time, place);
                    match is_exec {
                        true => writeln!(text, "exec {time} {pid}"),
                        false => Ok(()),
                    }
                }
                Change::Fork {
                    pid,
                    parent,
                    tid,
                    by,
                } => {
                    if let Some(place) = names.place(by, time) {
                        names.set(tid, time, place);
                    }
                    writeln!(text, "fork {time} {pid} {tid} {parent}")
                }
                Change::Exit { pid, tid } => writeln!(text, "exit {time} {pid} {tid}"),
                Change::Map {
                    pid,
                    address,
                    length,
                    offset,
                    id,
                    path,
                } => {
                    let id = id.as_ref().or_else(|| ids.get(&path));
                    let id = id.map_or("-", String::as_str);
                    let path = path.replace('\\', "\\\\").replace('\n', "\\n");
                    writeln!(
                        text,
                        "map {time} {pid} {address:x} {length:x} {offset:x} {id} {path}"
                    )
                }
            };
            // A String takes all.
            let _ = written;
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "lost 0 {}", self.left_out);
        }
        (names, text)
    }
}

impl Names {
    fn set(&mut self, tid: i32, time: u64, place: usize) {
        let thread = self.threads.entry(tid).or_default();
        if thread.last().is_none_or(|(_, last)| *last != place) {
            thread.push((time, place));
        }
    }

    fn place(&self, tid: i32, time: u64) -> Option<usize> {
        let thread = self.threads.get(&tid)?;
        let count = thread.partition_point(|(since, _)| *since <= time);
        thread.get(count.checked_sub(1)?).map(|(_, place)| *place)
    }

    /// The name of a thread at a time, with NULs after it. Empty: it is not known.
    pub fn at(&self, tid: i32, time: u64) -> [u8; NAME + 1] {
        match self.place(tid, time) {
            Some(place) => self.names[place],
            None if tid == 0 => *b"swapper\0\0\0\0\0\0\0\0\0",
            None => [0; NAME + 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_time() {
        let mut changes = Changes::default();
        let name = |name: &[u8], is_exec| Change::Name {
            pid: 7,
            tid: 7,
            name: name.to_vec(),
            is_exec,
        };
        changes.add(30, name(b"ls", true));
        changes.add(0, name(b"bash", false));
        changes.add(
            20,
            Change::Fork {
                pid: 8,
                parent: 7,
                tid: 8,
                by: 7,
            },
        );
        changes.add(
            10,
            Change::Map {
                pid: 7,
                address: 0x1000,
                length: 0x2000,
                offset: 0,
                id: None,
                path: "/a\nb".into(),
            },
        );
        let ids = [("/a\nb".to_owned(), "abcd".to_owned())].into();
        let (names, text) = changes.finish("head\n", &ids);
        assert_eq!(
            text,
            "head\nmap 10 7 1000 2000 0 abcd /a\\nb\nfork 20 8 8 7\nexec 30 7\n"
        );
        let at = |tid, time| String::from_utf8(names.at(tid, time).to_vec()).unwrap();
        assert_eq!(at(7, 29).trim_end_matches('\0'), "bash");
        assert_eq!(at(7, 30).trim_end_matches('\0'), "ls");
        assert_eq!(at(8, 40).trim_end_matches('\0'), "bash");
        assert_eq!(at(8, 19).trim_end_matches('\0'), "");
        assert_eq!(at(0, 19).trim_end_matches('\0'), "swapper");
    }
}
