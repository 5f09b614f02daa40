// SPDX-License-Identifier: GPL-2.0

//! The kernel's part of the state: all threads, their namespaces and their open files.
//!
//! The threads are visited one by one, in the order of their ids, without a lock for the whole walk: the events
//! of threads that begin or end meanwhile tell about them.

use super::declared::{
    FileDescriptor, InNamespace, InPidNamespace, InUserNamespace, ProcessState, CGROUP_NS,
    FILE_DESCRIPTOR, IPC_NS, MNT_NS, NET_NS, PID_NS, PROCESS_STATE, TIME_NS, USER_NS, UTS_NS,
};
use super::{Dump, StateDeclaration};
use crate::probe::captured::LONGEST;
use crate::probe::Probe;
use crate::record::memory::{NulTerminated, Space, Tail};
use crate::source::field::{Hex, Hex32};
use crate::sys::signal;
use crate::sys::threads::{self, OpenFile, PathRoom, Thread};
use core::mem::size_of;
use kernel::prelude::*;

/// `mode` and `submode` of a thread, as LTTng's numbers: unknown, and none.
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_NONE: i32 = 0;

/// The number of files that are visited in one go under the lock of their table.
const FILES_AT_ONCE: u32 = 64;

/// With a longer path, a record would be too long for filters.
const PATH_MAX: usize = LONGEST - size_of::<FileDescriptor>() - 1;

/// The kinds of namespaces of which a thread is in one at a time.
const NAMESPACES: [&StateDeclaration; 6] =
    [&CGROUP_NS, &IPC_NS, &MNT_NS, &NET_NS, &TIME_NS, &UTS_NS];

/// The kinds of the kernel's records that somebody wants.
struct Wanted {
    state: bool,
    namespaces: bool,
    pid_namespaces: bool,
    user_namespaces: bool,
    files: bool,
}

impl<P: Fn(&Probe) -> bool> Dump<P> {
    /// Records all threads. `EINTR`: the current task was killed meanwhile. May sleep.
    pub(super) fn walk(&self) -> Result {
        let wanted = Wanted {
            state: self.has(&PROCESS_STATE),
            namespaces: NAMESPACES.iter().any(|event| self.has(event)),
            pid_namespaces: self.has(&PID_NS),
            user_namespaces: self.has(&USER_NS),
            files: self.has(&FILE_DESCRIPTOR),
        };
        let mut room = PathRoom::new()?;
        let (mut tid, mut shown) = (1, None);
        loop {
            let mut table = None;
            let visited = threads::visit(tid, |thread| {
                self.record_thread(thread, &wanted);
                table = thread.own_table().filter(|_| wanted.files);
            });
            let Some(visited) = visited else {
                return Ok(());
            };
            // The threads of a process often follow one another, and share a table.
            if table.is_some() && table != shown {
                self.walk_files(visited, &mut room)?;
                shown = table;
            }
            signal::go_on()?;
            tid = visited.saturating_add(1);
        }
    }

    fn record_thread(&self, thread: &Thread<'_>, wanted: &Wanted) {
        if wanted.state {
            self.record(&PROCESS_STATE, &Now(thread));
        }
        let tid = thread.state().tid;
        if wanted.namespaces {
            let of = thread.namespaces();
            let inums = [of.cgroup, of.ipc, of.mnt, of.net, of.time, of.uts];
            for (event, inum) in NAMESPACES.into_iter().zip(inums) {
                // A thread that is ending has no namespaces any more.
                if inum != 0 {
                    let ns_inum = inum;
                    self.record(event, &InNamespace { tid, ns_inum });
                }
            }
        }
        if wanted.pid_namespaces {
            for at in thread.in_pid_namespaces() {
                let record = InPidNamespace {
                    tid,
                    vtid: at.vtid,
                    vpid: at.vpid,
                    vppid: at.vppid,
                    ns_level: at.level,
                    ns_inum: at.inum,
                };
                self.record(&PID_NS, &record);
            }
        }
        if wanted.user_namespaces {
            for at in thread.in_user_namespaces() {
                let record = InUserNamespace {
                    tid,
                    vuid: at.vuid,
                    vgid: at.vgid,
                    ns_level: at.level,
                    ns_inum: at.inum,
                };
                self.record(&USER_NS, &record);
            }
        }
    }

    /// Records the open files of a thread, if the thread still exists.
    fn walk_files(&self, tid: i32, room: &mut PathRoom) -> Result {
        let mut next = Some(0);
        while let Some(from) = next.take() {
            threads::visit(tid, |thread| {
                let now = thread.state();
                // `visit` may have found another thread.
                if now.tid == tid {
                    next = thread.visit_files(from, FILES_AT_ONCE, room, |file| {
                        self.record(&FILE_DESCRIPTOR, &Opened { pid: now.pid, file });
                    });
                }
            });
            signal::go_on()?;
        }
        Ok(())
    }
}

/// A thread's state at the time the record is written: later changes have later records.
struct Now<'a>(&'a Thread<'a>);

impl Tail for Now<'_> {
    fn len(&self) -> usize {
        size_of::<ProcessState>()
    }

    fn write(&self, mut space: Space<'_>) {
        let now = self.0.state();
        space.put(ProcessState {
            tid: now.tid,
            pid: now.pid,
            ppid: now.ppid,
            name: now.comm,
            kind: now.is_kernel.into(),
            mode: MODE_UNKNOWN,
            submode: SUBMODE_NONE,
            status: now.status as i32,
            cpu: now.cpu,
            file_table_address: Hex::new(now.table),
        });
    }
}

/// An open file.
struct Opened<'a> {
    /// The process to which the file belongs.
    pid: i32,
    file: &'a OpenFile<'a>,
}

impl Opened<'_> {
    fn name(&self) -> NulTerminated<'_> {
        let name = self.file.name;
        NulTerminated(name.get(..PATH_MAX).unwrap_or(name))
    }
}

impl Tail for Opened<'_> {
    fn len(&self) -> usize {
        size_of::<FileDescriptor>().wrapping_add(self.name().len())
    }

    fn write(&self, mut space: Space<'_>) {
        let Self { pid, file } = *self;
        space.put(FileDescriptor {
            pid,
            file_table_address: Hex::new(file.table),
            fd: file.descriptor,
            flags: Hex32::new(file.flags),
            fmode: Hex32::new(file.mode),
        });
        self.name().write(space);
    }
}
