// SPDX-License-Identifier: GPL-2.0

//! The reader of a stream: one at a time, who has its file open.
//!
//! Its operations exclude each other, by the lock of [`Stream::held`]. Threads that share the file may
//! wait there for one whose user memory is slow; nothing else waits for that lock.

use super::cursor::{HeldPacket, Seen};
use super::stream::Stream;
use super::writer::Writer;
use super::Channel;
use crate::abi::ioctl::MappedPacket;
use crate::sys::errno::enodata;
use crate::sys::mapping::Mapping;
use crate::sys::pages::KernelPages;
use crate::sys::pipe::Pipe;
use crate::sys::wait::PollTable;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::uaccess::UserSliceWriter;

/// Takes out of a packet what its reader may not see.
pub(crate) trait Censor {
    /// Changes the packet's content; the padding behind it is zeros already. `EIO`: it cannot be
    /// understood, so it is not shown. May sleep.
    fn censor(&self, content: &mut [u8]) -> Result;
}

/// The one reader of a stream.
///
/// Dropping it, in whatever way the reader went, leaves an untaken packet for the next one.
pub(crate) struct StreamReader<C> {
    channel: Arc<Channel>,
    cpu: u32,
    censor: Option<C>,
}

impl<C> StreamReader<C> {
    fn stream(&self) -> Result<&Stream> {
        self.channel.stream(self.cpu).ok_or_else(enodata)
    }

    fn writer(&self) -> Writer<'_> {
        Writer::new(self.channel.buffers.ways())
    }

    fn end_snapshot(&self, stream: &Stream) {
        let writer = self.writer();
        let mut cursor = stream.cursor.lock();
        cursor.end_snapshot(stream.buffer(), &writer);
    }

    /// Puts the held packet back as if it had not been taken.
    pub(crate) fn unget(&self) {
        if let Ok(stream) = self.stream() {
            let mut held = stream.held.lock();
            *held = None;
            stream.cursor.lock().unget(stream.buffer());
        }
    }
}

impl<C: Censor> StreamReader<C> {
    /// Becomes the reader of `cpu`'s stream, who sees what the censor leaves.
    ///
    /// Fails with `ENODATA` if it has none, `EBUSY` if there is a reader. May sleep.
    pub(crate) fn new(channel: Arc<Channel>, cpu: u32, censor: Option<C>) -> Result<Self> {
        let stream = channel.stream(cpu).ok_or_else(enodata)?;
        if !stream.wakeup.open(cpu) {
            return Err(EBUSY);
        }
        // What the reader before has left is not yet this one's.
        stream.found_nothing();
        Ok(Self {
            channel,
            cpu,
            censor,
        })
    }

    /// Takes the oldest packet. `EAGAIN`: there is none now; `ENODATA`: there will be none;
    /// `EBUSY`: one is held; `EIO`: it may not be seen; `ENOMEM`. On an error the packet stays. May
    /// sleep.
    pub(crate) fn get(&self) -> Result<MappedPacket> {
        let stream = self.stream()?;
        let mut held = stream.held.lock();
        if held.is_some() {
            return Err(EBUSY);
        }
        let taken = self.take(stream, false)?;
        Ok(held.insert(taken).describe())
    }

    /// Takes the oldest packet. The caller has locked [`Stream::held`], which is empty.
    fn take(&self, stream: &Stream, by_read: bool) -> Result<HeldPacket> {
        self.finish_exchange(stream);
        let mut cursor = stream.cursor.lock();
        let finished = stream.is_finished();
        let taken = cursor.take(stream.buffer(), finished, by_read);
        if let Err(EAGAIN) = taken {
            stream.found_nothing();
        }
        drop(cursor);
        let mut taken = taken?;
        if let Some(censor) = &self.censor {
            let censored = taken.censor(self.cpu, censor);
            censored.inspect_err(|_| stream.cursor.lock().unget(stream.buffer()))?;
        }
        Ok(taken)
    }

    /// Gives the held packet back. `EINVAL`: none is held.
    pub(crate) fn put(&self) -> Result {
        let stream = self.stream()?;
        let mut held = stream.held.lock();
        let packet = held.take().ok_or(EINVAL)?;
        stream.cursor.lock().put(stream.buffer(), packet);
        Ok(())
    }

    /// What is known of the packets that this reader, or those before it, gave back.
    pub(crate) fn seen(&self) -> Result<Seen> {
        Ok(self.stream()?.cursor.lock().seen)
    }

    /// Looks at the content of the held packet. `EINVAL`: none is held. May sleep.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let held = self.stream()?.held.lock();
        Ok(look(held.as_ref().ok_or(EINVAL)?.content()))
    }

    /// Has the packet being written closed. May sleep.
    pub(crate) fn flush(&self) -> Result {
        self.channel.flush(self.cpu)
    }

    /// Moves pages of the held packet into a pipe. 0 at its end; `EINVAL`: none is held. May sleep.
    pub(crate) fn splice(&self, pipe: &mut Pipe, len: usize) -> Result<usize> {
        let stream = self.stream()?;
        let mut held = stream.held.lock();
        let Some(packet) = &mut *held else {
            return Err(EINVAL);
        };
        packet.splice(pipe, len)
    }

    /// Bytes that can be mapped: all that packets are in.
    pub(crate) fn map_size(&self) -> Result<u64> {
        let stream = self.stream()?;
        let pages = stream.buffer().pages(&stream.cursor.lock().reader);
        Ok(pages.map_or(0, |(_, pages)| pages.len() as u64))
    }

    /// Shows a program the buffer's memory, with what is being written and what was read. It stays as long
    /// as the reader. `EPERM`: this reader may not see all of it; `EBUSY`: a snapshot is being read. May
    /// sleep.
    pub(crate) fn map(&self, mapping: &Mapping<'_>) -> Result {
        if self.censor.is_some() {
            return Err(EPERM);
        }
        let stream = self.stream()?;
        let mut cursor = stream.cursor.lock();
        if cursor.snapshot.is_taken() {
            return Err(EBUSY);
        }
        let (_, pages) = stream.buffer().pages(&cursor.reader).ok_or(EBUSY)?;
        cursor.is_mapped = true;
        drop(cursor);
        mapping.fill(&pages)
    }

    /// Has memory ready for [`take_all`](Self::take_all). `EOPNOTSUPP`: in discard mode; `EBUSY`: packets of
    /// a snapshot are to be read, or the memory is mapped; `ENOMEM`. May sleep.
    pub(crate) fn prepare(&self) -> Result {
        let stream = self.stream()?;
        let _held = stream.held.lock();
        self.prepare_stream(stream)
    }

    /// The same, for who holds the lock of `held`.
    fn prepare_stream(&self, stream: &Stream) -> Result {
        self.finish_exchange(stream);
        let needed = stream.cursor.lock().needed(stream.buffer())?;
        if let Some(len) = needed {
            // Without the cursor's lock: that much memory takes a while.
            let pages = KernelPages::new(len, self.cpu).ok_or(ENOMEM)?;
            let pages = Arc::new(pages, GFP_KERNEL)?;
            stream.cursor.lock().prepare(stream.buffer(), pages)?;
        }
        Ok(())
    }

    /// Closes the packet being written and takes all packets, in one go, as the [`Writer`]. They come from
    /// [`get`](Self::get), and the writer has other memory. Returns how many there are. As
    /// [`prepare`](Self::prepare); `EAGAIN`: the writer was in the way. May sleep.
    pub(crate) fn take_all(&self) -> Result<usize> {
        let stream = self.stream()?;
        let held = stream.held.lock();
        if held.is_some() {
            return Err(EBUSY);
        }
        self.prepare_stream(stream)?;
        let writer = self.writer();
        let mut cursor = stream.cursor.lock();
        cursor.take_all(stream.buffer(), &writer)
    }

    /// Tries again what a snapshot left undone.
    fn finish_exchange(&self, stream: &Stream) {
        if stream.cursor.lock().snapshot.is_exchanging() {
            self.end_snapshot(stream);
        }
    }

    /// Copies what comes next: of the held packet, or of packets that it takes and gives back
    /// itself. 0 at the end of a packet that was taken by [`get`](Self::get), and at the end of
    /// the trace. May sleep.
    pub(crate) fn read(&self, out: &mut UserSliceWriter, nonblock: bool) -> Result<usize> {
        let stream = self.stream()?;
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let mut held = stream.held.lock();
            let packet = match &mut *held {
                Some(packet) => packet,
                none => match self.take(stream, true) {
                    Ok(taken) => none.insert(taken),
                    Err(error) if error == enodata() => return Ok(0),
                    Err(EAGAIN) if !nonblock => {
                        drop(held);
                        // The wait below does not look if the ring keeps saying that it is
                        // readable, and the writer keeps being faster.
                        if kernel::current!().signal_pending() {
                            return Err(ERESTARTSYS);
                        }
                        let ready = || (stream.is_finished() || stream.is_due()).then_some(());
                        stream.wakeup.waiters().wait_for(ready)?;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            // Without the cursor's lock: the copy may wait for user memory for ever.
            let bytes = packet.copy_out(out)?;
            if let Some(packet) = held.take_if(|packet| packet.is_read()) {
                stream.cursor.lock().put(stream.buffer(), packet);
            }
            return Ok(bytes);
        }
    }

    /// What poll(2) answers (Algorithm 5).
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLHUP, POLLIN, POLLPRI, POLLRDNORM};
        let Ok(stream) = self.stream() else {
            return POLLERR;
        };
        if stream.wakeup.waiters().register(file, table).is_err() {
            return POLLERR;
        }
        // Before the ring, as in `get`.
        let finished = stream.is_finished();
        let mut cursor = stream.cursor.lock();
        // Both ask equation (2), the one that get goes by: what poll calls readable can be got.
        let readable = if finished {
            stream.ring().is_readable()
        } else {
            stream.is_due()
        };
        if readable || cursor.is_holding() || cursor.snapshot.has_packets() {
            let urgent = if stream.ring().is_almost_full() {
                POLLPRI
            } else {
                0
            };
            POLLIN | POLLRDNORM | urgent
        } else if finished {
            cursor.ended = true;
            POLLHUP
        } else {
            0
        }
    }
}

impl<C> Drop for StreamReader<C> {
    fn drop(&mut self) {
        self.unget();
        if let Ok(stream) = self.stream() {
            if stream.cursor.lock().snapshot.is_taken() {
                self.end_snapshot(stream);
            }
            stream.cursor.lock().leave();
            stream.wakeup.close();
        }
    }
}
