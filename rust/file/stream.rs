// SPDX-License-Identifier: GPL-2.0

//! `cpuN`: the packets of one CPU, by ioctl and splice or mmap, or by plain read.

use super::channel::ChannelTarget;
use crate::abi::ioctl::{self, MappedPacket};
use crate::channel::reader::StreamReader;
use crate::session::{HiddenAddresses, TraceChannel};
use crate::sys::cpu;
use crate::sys::debugfs::stream::StreamFile;
use crate::sys::debugfs::Dir;
use crate::sys::mapping::Mapping;
use crate::sys::pipe::Pipe;
use crate::sys::privilege::Rights;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use kernel::uaccess::{UserPtr, UserSlice, UserSliceWriter};

/// The stream of one CPU in a session's channel.
struct Source {
    target: ChannelTarget,
    cpu: u32,
}

/// Creates a file for each possible CPU. A reader without `CAP_SYSLOG` sees 0 for each address of the kernel.
/// If a CPU was never online, opening its file fails with `ENODATA`.
pub(super) fn make(dir: &mut Dir, target: &ChannelTarget) -> Result {
    for cpu in cpu::possible() {
        let name = CString::try_from_fmt(fmt!("cpu{cpu}"))?;
        let target = target.clone();
        let data = dir.data(Source { target, cpu })?;
        dir.stream::<Stream>(name.to_str()?, data)?;
    }
    Ok(())
}

/// An open stream.
// In the order of the drop: the check whether all was read then finds that this reader is gone.
struct OpenStream {
    reader: StreamReader<HiddenAddresses>,
    _trace: ReadTrace,
}

/// A trace's channel that is being read. The drop frees the buffers if all of the trace was read.
pub(super) struct ReadTrace(Arc<TraceChannel>);

impl ReadTrace {
    /// Begins to read.
    pub(super) fn new(trace: &Arc<TraceChannel>) -> Self {
        Self(trace.clone())
    }
}

impl Drop for ReadTrace {
    fn drop(&mut self) {
        self.0.free_if_read();
    }
}

struct Stream;

impl StreamFile for Stream {
    type Data = Source;
    type Open = OpenStream;

    fn open(source: &Source, rights: Rights) -> Result<OpenStream> {
        let ChannelTarget { session, channel } = &source.target;
        let trace = session.trace()?;
        let trace = trace.channel(*channel)?;
        let censor = (!rights.sees_addresses).then(|| HiddenAddresses(trace.clone()));
        Ok(OpenStream {
            reader: StreamReader::new(trace.buffers()?, source.cpu, censor)?,
            _trace: ReadTrace::new(trace),
        })
    }

    fn read(stream: &OpenStream, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        stream.reader.read(out, nonblock)
    }

    fn poll(stream: &OpenStream, file: &File, table: &PollTable<'_>) -> u32 {
        stream.reader.poll(file, table)
    }

    fn ioctl(stream: &OpenStream, request: u32, argument: UserPtr) -> Result<isize> {
        let reader = &stream.reader;
        match request {
            ioctl::GET_PACKET => get(reader, argument, |taken| taken.packet.to_bytes())?,
            ioctl::GET_MAPPED => get(reader, argument, MappedPacket::to_bytes)?,
            ioctl::MAP_SIZE => write(argument, &reader.map_size()?.to_ne_bytes())?,
            ioctl::PUT_PACKET => reader.put()?,
            ioctl::FLUSH => reader.flush()?,
            ioctl::PREPARE => reader.prepare()?,
            ioctl::TAKE_ALL => write(argument, &(reader.take_all()? as u64).to_ne_bytes())?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }

    fn splice(stream: &OpenStream, pipe: &mut Pipe, len: usize) -> Result<usize> {
        stream.reader.splice(pipe, len)
    }

    fn mmap(stream: &OpenStream, mapping: &Mapping<'_>) -> Result {
        stream.reader.map(mapping)
    }
}

/// Takes the oldest packet, and writes its description.
fn get<const LEN: usize>(
    reader: &StreamReader<HiddenAddresses>,
    to: UserPtr,
    say: impl FnOnce(MappedPacket) -> [u8; LEN],
) -> Result {
    let taken = reader.get()?;
    // If this fails, the caller does not know that it holds a packet.
    write(to, &say(taken)).inspect_err(|_| reader.unget())
}

/// Writes to a program's memory.
fn write(to: UserPtr, bytes: &[u8]) -> Result {
    UserSlice::new(to, bytes.len()).writer().write_slice(bytes)
}
