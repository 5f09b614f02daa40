// SPDX-License-Identifier: GPL-2.0

//! Processes that cause new events with each printed line: this process, and the processes that show its lines on a
//! terminal.

use record::session::tasks::threads;
use std::fs;
use std::process;

/// The major numbers of pseudo terminals. A process holds the other end of a pseudo terminal
/// (`Documentation/admin-guide/devices.txt`).
const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// The threads of these processes. If the lines do not go to a terminal, only those of this process.
pub fn threads_of_ours(to_terminal: bool) -> Vec<u32> {
    let mut processes = vec![process::id()];
    if to_terminal {
        let stat = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat"));
            Stat::parse(&text.ok()?)
        };
        processes.extend(relays(process::id(), stat));
    }
    let threads = processes.into_iter().map(threads);
    threads.flatten().flatten().collect()
}

/// A process's parent, and its terminal, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// As a device number; 0 is none.
    terminal: u32,
}

impl Stat {
    /// Parses `/proc/PID/stat`. The process's name in it may contain any character.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut words = rest.split(' ');
        // The fields are state, parent, process group, session, terminal.
        Some(Self {
            parent: words.nth(1)?.parse().ok()?,
            terminal: words.nth(2)?.parse::<i32>().ok()? as u32,
        })
    }

    fn has_pseudo_terminal(self) -> bool {
        PSEUDO_TERMINALS.contains(&((self.terminal >> 8) & 0xfff))
    }
}

/// The processes that hold the other end of the terminal of process `pid`, of their own terminal, and so on. Each
/// is the first ancestor whose terminal differs from the one below.
fn relays(pid: u32, stat: impl Fn(u32) -> Option<Stat>) -> Vec<u32> {
    let mut found = Vec::new();
    let mut below = stat(pid);
    while let Some(process) = below.filter(|process| process.has_pseudo_terminal()) {
        let above = stat(process.parent);
        if above.is_some_and(|above| above.terminal != process.terminal) {
            found.push(process.parent);
        }
        below = above;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc() {
        let stat = Stat::parse("17 (a) b) (c) S 16 17 15 34817 17 4194304 1 0\n");
        let expected = Stat {
            parent: 16,
            terminal: 34817,
        };
        assert_eq!(stat, Some(expected));
        assert!(expected.has_pseudo_terminal());
        for bad in ["", "17 (x) S", "17 (x) S a 17 15 34817"] {
            assert_eq!(Stat::parse(bad), None);
        }
        assert!(threads_of_ours(true).contains(&process::id()));
    }

    #[test]
    fn who_shows_a_terminal() {
        let (outer, inner) = ((136 << 8) + 1, (136 << 8) + 2);
        // Processes: rtrace, a shell and sudo's child, on the terminal that sudo made; sudo and a shell, on the
        // terminal of sshd; init.
        let processes = [
            (7, 6, inner),
            (6, 5, inner),
            (5, 4, inner),
            (4, 3, outer),
            (3, 2, outer),
            (2, 1, 0),
            (1, 0, 0),
        ];
        let stat = |pid| {
            let found = processes.iter().find(|process| process.0 == pid)?;
            let (_, parent, terminal) = *found;
            Some(Stat { parent, terminal })
        };
        assert_eq!(relays(7, stat), [4, 2]);
        assert_eq!(relays(3, stat), [2]);
        assert!(relays(2, stat).is_empty());
        // No process holds the other end of a serial line.
        let serial = |pid: u32| {
            (pid > 0).then_some(Stat {
                parent: pid - 1,
                terminal: if pid > 1 { (4 << 8) + 64 } else { 0 },
            })
        };
        assert!(relays(3, serial).is_empty());
    }
}
