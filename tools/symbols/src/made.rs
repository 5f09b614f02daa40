// SPDX-License-Identifier: GPL-2.0

//! Code that processes make at run time, and where they name it.

use super::kept::Kept;
use super::mappings::{MapLine, MappedFile};
use super::perf_map;
use std::collections::HashMap;

/// The code of all processes.
#[derive(Debug, Default)]
pub struct Made {
    running: HashMap<u32, Code>,
    /// The named code of programs that ended.
    ended: Vec<(u32, Code)>,
}

/// The code that a program has made.
#[derive(Debug, Default)]
struct Code {
    /// Time, address and length of its mappings.
    areas: Vec<(u64, u64, u64)>,
    /// Where its names are.
    map: Option<MappedFile>,
}

impl Made {
    /// A process has mapped memory for such code.
    pub fn map(&mut self, ns: u64, pid: u32, begin: u64, len: u64) {
        let code = self.running.entry(pid).or_default();
        code.areas.push((ns, begin, len));
    }

    /// The program of a process has ended.
    pub fn end(&mut self, pid: u32) {
        let code = self.running.remove(&pid);
        let named = code.filter(|code| code.map.is_some());
        self.ended.extend(named.map(|code| (pid, code)));
    }

    /// Looks for names, and keeps them: with the process its root may vanish.
    pub fn look(&mut self, kept: &mut Kept) {
        for (pid, code) in &mut self.running {
            if code.map.is_some() {
                continue;
            }
            if let Some((map, file)) = perf_map::open(*pid) {
                code.map = Some(map.clone());
                kept.keep_map(map, file);
            }
        }
    }

    /// The lines by which the code belongs to the file of its names, where an offset is an address. They follow the
    /// lines of the mappings themselves.
    pub fn lines(&mut self) -> Vec<String> {
        let running = self.running.drain();
        let all = self.ended.drain(..).chain(running);
        let mut lines = Vec::new();
        for (pid, Code { areas, map }) in all {
            let Some(MappedFile { path, id }) = map else {
                continue;
            };
            for (ns, address, len) in areas {
                let line = MapLine {
                    ns,
                    pid,
                    address,
                    len,
                    offset: address,
                    id: id.as_deref(),
                    path: &path,
                };
                lines.push(line.to_string());
            }
        }
        lines
    }
}
