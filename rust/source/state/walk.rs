// SPDX-License-Identifier: GPL-2.0

//! The kernel's part of the state: all threads, their namespaces and their open files.
//!
//! They are visited one by one, in the order of their ids, without a lock that lasts: a thread that begins
//! or ends meanwhile is known by its events.

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

/// `mode` and `submode` of a thread, in LTTng's numbers: not known, and none.
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_NONE: i32 = 0;

/// So many files are visited under the lock of their table.
const FILES_AT_ONCE: u32 = 64;

/// More bytes of a path would make a record longer than a filter can look at.
const PATH_MAX: usize = LONGEST - size_of::<FileDescriptor>() - 1;

/// The kinds of namespaces that a thread is in one of.
const NAMESPACES: [&StateDeclaration; 6] =
    [&CGROUP_NS, &IPC_NS, &MNT_NS, &NET_NS, &TIME_NS, &UTS_NS];

/// What of the kernel's part is recorded.
struct Wanted {
    state: bool,
    namespaces: bool,
    pid_namespaces: bool,
    user_namespaces: bool,
    files: bool,
}

impl<P: Fn(&Probe) -> bool> Dump<P> {
    /// Records all threads that there are. `EINTR`: the task is killed meanwhile. May sleep.
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
            // Threads of a process often follow one another.
            if table.is_some() && table != shown {
                self.walk_files(visited, &mut room)?;
                shown = table;
            }
            if signal::is_killed() {
                return Err(EINTR);
            }
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
                // One that ends has none any more.
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

    /// Records the open files of a thread, if it is still there.
    fn walk_files(&self, tid: i32, room: &mut PathRoom) -> Result {
        let mut next = Some(0);
        while let Some(from) = next.take() {
            threads::visit(tid, |thread| {
                let now = thread.state();
                // It may be another one.
                if now.tid == tid {
                    next = thread.visit_files(from, FILES_AT_ONCE, room, |file| {
                        self.record(&FILE_DESCRIPTOR, &Opened { pid: now.pid, file });
                    });
                }
            });
            if signal::is_killed() {
                return Err(EINTR);
            }
        }
        Ok(())
    }
}

/// A thread as it is when its record is written: what changes it later has a later record.
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
    /// The process that has it.
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
