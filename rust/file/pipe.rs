// SPDX-License-Identifier: GPL-2.0

//! `pipe`: a session's trace as text, for users who have only a shell.

use crate::session::{Lines, Session};
use crate::sys::debugfs::stream::StreamFile;
use crate::sys::debugfs::{Data, Dir};
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::uaccess::{UserPtr, UserSliceWriter};

/// Creates the file. A reader without `CAP_SYSLOG` sees 0 for each address of the kernel.
pub(super) fn make(dir: &mut Dir, session: Data<Arc<Session>>) -> Result {
    dir.stream::<LinesFile>("pipe", session)
}

struct LinesFile;

impl StreamFile for LinesFile {
    type Data = Arc<Session>;
    type Open = Pin<KBox<Lines>>;

    fn open(session: &Arc<Session>, rights: Rights) -> Result<Pin<KBox<Lines>>> {
        Lines::open(session, !rights.sees_addresses)
    }

    fn read(lines: &Pin<KBox<Lines>>, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        lines.read(out, nonblock)
    }

    fn poll(lines: &Pin<KBox<Lines>>, file: &File, table: &PollTable<'_>) -> u32 {
        lines.poll(file, table)
    }

    fn ioctl(_: &Pin<KBox<Lines>>, _: u32, _: UserPtr) -> Result<isize> {
        Err(ENOTTY)
    }

    fn splice(_: &Pin<KBox<Lines>>, _: &mut Pipe, _: usize) -> Result<usize> {
        Err(EINVAL)
    }
}
