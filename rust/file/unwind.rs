// SPDX-License-Identifier: GPL-2.0

//! `unwind`: the files whose code programs execute and that have no unwind table; and their tables, which tools load.
//!
//! An open file keeps the tables in memory, even if no session records stacks of programs.

use crate::abi::ioctl::{LoadTable, LOAD_TABLE};
use crate::context::user_stack::{TableRefusal, UserStacksUse, MAX_TABLE};
use crate::session::{Session, Sessions};
use crate::sys::debugfs::stream::StreamFile;
use crate::sys::debugfs::text::Text;
use crate::sys::debugfs::{Data, Dir};
use crate::sys::page_vec::PageVec;
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::user_stack::FileIdentity;
use crate::sys::wait::PollTable;
use core::fmt::Write;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::uaccess::{UserPtr, UserSlice, UserSliceWriter};

/// Creates the file.
pub(super) fn make(dir: &mut Dir, sessions: Data<Arc<Sessions>>) -> Result {
    dir.stream::<Unwind>("unwind", sessions)
}

/// Maximum length of a line in bytes.
const LINE_MAX: usize = 64;

/// Number of bytes of a table that are copied at a time.
const CHUNK: usize = 64 << 10;

struct Unwind;

/// An open file.
struct OpenUnwind {
    stacks: UserStacksUse,
    /// Has the `error_log` of the root.
    session: Arc<Session>,
}

impl StreamFile for Unwind {
    type Data = Arc<Sessions>;
    type Open = OpenUnwind;

    fn open(sessions: &Arc<Sessions>, _: Rights) -> Result<OpenUnwind> {
        let session = sessions.default().clone();
        let stacks = session.user_stacks().begin_use()?;
        Ok(OpenUnwind { stacks, session })
    }

    /// Lines of the wanted files, as many as there are and as fit.
    fn read(open: &OpenUnwind, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        let stacks = open.stacks.stacks();
        if out.len() < LINE_MAX {
            return Err(EINVAL);
        }
        stacks.want_again();
        let text = Text::new(|text| {
            let mut next = stacks.next_wanted(nonblock);
            loop {
                let wanted = next?;
                let (start, end) = wanted.mapping;
                writeln!(text, "{} {start:x}-{end:x}", wanted.pid)?;
                if text.as_str().len() + LINE_MAX > out.len() {
                    return Ok(());
                }
                next = stacks.next_wanted(true);
                if let Err(EAGAIN) = next {
                    return Ok(());
                }
            }
        })?;
        let bytes = text.as_str().as_bytes();
        out.write_slice(bytes)?;
        Ok(bytes.len())
    }

    fn poll(open: &OpenUnwind, file: &File, table: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLIN, POLLRDNORM};
        let stacks = open.stacks.stacks();
        if stacks.waiters().register(file, table).is_err() {
            return POLLERR;
        }
        match stacks.is_any_wanted() {
            true => POLLIN | POLLRDNORM,
            false => 0,
        }
    }

    fn ioctl(open: &OpenUnwind, request: u32, argument: UserPtr) -> Result<isize> {
        if request != LOAD_TABLE {
            return Err(ENOTTY);
        }
        let mut bytes = [0; size_of::<LoadTable>()];
        let argument = UserSlice::new(argument, bytes.len());
        argument.reader().read_slice(&mut bytes)?;
        let wanted = LoadTable::from_bytes(bytes);
        let file = FileIdentity::of_open(wanted.fd)?;
        let loaded = match wanted.size as usize {
            size if size > MAX_TABLE => Err(TableRefusal::TooLarge),
            size => {
                let table = copy(UserPtr::from_addr(wanted.table as usize), size)?;
                open.stacks.stacks().load(file, table)
            }
        };
        match loaded {
            Ok(()) => Ok(0),
            Err(TableRefusal::Memory) => Err(ENOMEM),
            Err(TableRefusal::Wrong(wrong)) => Err(open
                .session
                .refuse(fmt!("unwind: {}", format_args!("{wrong}")))),
            Err(TableRefusal::Processor) => Err(open
                .session
                .refuse(fmt!("unwind: the table is for another processor"))),
            Err(TableRefusal::TooLarge) => {
                let reason = "the table is larger than";
                open.session
                    .refuse(fmt!("unwind: {reason} {MAX_TABLE} bytes"));
                Err(EFBIG)
            }
        }
    }

    fn splice(_: &OpenUnwind, _: &mut Pipe, _: usize) -> Result<usize> {
        Err(EINVAL)
    }
}

/// Copies a table from a program's memory.
fn copy(from: UserPtr, size: usize) -> Result<PageVec<u8>> {
    let mut table = PageVec::new();
    table.reserve(size)?;
    let mut chunk = KVVec::from_elem(0, size.min(CHUNK), GFP_KERNEL)?;
    let mut reader = UserSlice::new(from, size).reader();
    while !reader.is_empty() {
        crate::sys::signal::go_on()?;
        let len = chunk.len().min(reader.len());
        let part = chunk.get_mut(..len).unwrap_or_default();
        reader.read_slice(part)?;
        table.extend(part)?;
    }
    Ok(table)
}
