// SPDX-License-Identifier: GPL-2.0

//! `auxN`: the bytes of one CPU's AUX area, by ioctl and splice. And `aux_stats`.

use super::channel::ChannelTarget;
use super::stream::ReadTrace;
use crate::abi::ioctl;
use crate::channel::aux_reader::AuxReader;
use crate::sys::cpu;
use crate::sys::debugfs::stream::StreamFile;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ};
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::uaccess::{UserPtr, UserSlice, UserSliceWriter};

/// The area of one CPU in a session's channel.
struct Source {
    target: ChannelTarget,
    cpu: u32,
}

/// Creates a file for each possible CPU, and the file of the counters. If a CPU has no area, opening its file
/// fails with `ENODATA`.
pub(super) fn make(dir: &mut Dir, target: &ChannelTarget, data: Data<ChannelTarget>) -> Result {
    for cpu in cpu::possible() {
        let name = CString::try_from_fmt(fmt!("aux{cpu}"))?;
        let target = target.clone();
        let data = dir.data(Source { target, cpu })?;
        dir.stream::<Aux>(name.to_str()?, data)?;
    }
    dir.text::<Stats>("aux_stats", READ, data)
}

/// An open area.
// In the order of the drop: the check whether all was read then finds that this reader is gone.
struct OpenAux {
    reader: AuxReader,
    _trace: ReadTrace,
}

struct Aux;

impl StreamFile for Aux {
    type Data = Source;
    type Open = OpenAux;

    /// `EPERM` without `CAP_SYSLOG`: the bytes may contain addresses, at unknown places.
    fn open(source: &Source, rights: Rights) -> Result<OpenAux> {
        if !rights.sees_addresses {
            return Err(EPERM);
        }
        let ChannelTarget { session, channel } = &source.target;
        let trace = session.trace()?;
        let trace = trace.channel(*channel)?;
        Ok(OpenAux {
            reader: AuxReader::new(&*trace.buffers()?, source.cpu)?,
            _trace: ReadTrace::new(trace),
        })
    }

    /// `EINVAL`: splice is the only way to read.
    fn read(_: &OpenAux, _: &mut UserSliceWriter, _nonblock: bool) -> Result<usize> {
        Err(EINVAL)
    }

    fn poll(aux: &OpenAux, file: &File, table: &PollTable<'_>) -> u32 {
        aux.reader.poll(file, table)
    }

    fn ioctl(aux: &OpenAux, request: u32, argument: UserPtr) -> Result<isize> {
        let reader = &aux.reader;
        match request {
            ioctl::GET_PACKET => {
                let packet = reader.get()?.to_bytes();
                let to = UserSlice::new(argument, packet.len());
                // If this fails, the caller does not know that it holds a packet.
                let written = to.writer().write_slice(&packet);
                written.inspect_err(|_| reader.unget())?;
            }
            ioctl::PUT_PACKET => reader.put()?,
            ioctl::FLUSH => reader.flush(),
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }

    fn splice(aux: &OpenAux, pipe: &mut Pipe, len: usize) -> Result<usize> {
        aux.reader.splice(pipe, len)
    }
}

/// The counters of the current trace's areas, or the last one's.
struct Stats;

impl TextFile for Stats {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        let trace = target.session.trace()?;
        trace.channel(target.channel)?.write_aux_stats(out)
    }
}
