// SPDX-License-Identifier: GPL-2.0

//! The reader of a stream. It exists while the stream's file is open; a stream has one reader at a time.
//!
//! The lock of [`Stream::held`] serialises its operations. Threads that share the file may wait there for a
//! thread with slow user memory. No other code waits for that lock.

use super::cursor::{HeldPacket, Seen};
use super::stream::Stream;
use super::wakeup::PollTimer;
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

/// Removes from a packet what its reader may not see.
pub(crate) trait Censor {
    /// Changes the packet's content; the padding after it is zero already. `EIO`: the content cannot be parsed,
    /// so it is not shown. May sleep.
    fn censor(&self, content: &mut [u8]) -> Result;
}

/// The only reader of a stream.
///
/// The drop leaves a held packet for the next reader, also if the program was killed.
pub(crate) struct StreamReader<C> {
    channel: Arc<Channel>,
    cpu: u32,
    censor: Option<C>,
    /// Wakes this reader if the CPU is isolated.
    _poller: Option<PollTimer<(Arc<Channel>, u32)>>,
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
    /// Creates the reader of `cpu`'s stream. The reader sees packets as the censor leaves them.
    ///
    /// Fails with `ENODATA` if there is no stream, `EBUSY` if it has a reader, or `ENOMEM`. May sleep.
    pub(crate) fn new(channel: Arc<Channel>, cpu: u32, censor: Option<C>) -> Result<Self> {
        let stream = channel.stream(cpu).ok_or_else(enodata)?;
        if !stream.wakeup.open(cpu) {
            return Err(EBUSY);
        }
        let poller = stream
            .wakeup
            .poller((channel.clone(), cpu), |(channel, cpu)| {
                channel.stream(*cpu).into_iter().for_each(Stream::poll_tick);
            });
        let poller = poller.inspect_err(|_| stream.wakeup.close())?;
        // The new reader does not inherit the previous reader's reached watermark.
        stream.found_nothing();
        Ok(Self {
            channel,
            cpu,
            censor,
            _poller: poller,
        })
    }

    /// Takes the oldest packet. Errors: `EAGAIN` if there is none now, `ENODATA` if there will be none, `EBUSY`
    /// if one is held, `EIO` if it may not be shown, `ENOMEM`. On an error the packet stays. May sleep.
    pub(crate) fn get(&self) -> Result<MappedPacket> {
        let stream = self.stream()?;
        let mut held = stream.held.lock();
        if held.is_some() {
            return Err(EBUSY);
        }
        let taken = self.take(stream, false)?;
        Ok(held.insert(taken).describe())
    }

    /// Takes the oldest packet. The caller holds the lock of [`Stream::held`], which is empty.
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

    /// Returns the held packet. `EINVAL`: no packet is held.
    pub(crate) fn put(&self) -> Result {
        let stream = self.stream()?;
        let mut held = stream.held.lock();
        let packet = held.take().ok_or(EINVAL)?;
        stream.cursor.lock().put(stream.buffer(), packet);
        Ok(())
    }

    /// State after the packets that this reader or previous readers returned.
    pub(crate) fn seen(&self) -> Result<Seen> {
        Ok(self.stream()?.cursor.lock().seen)
    }

    /// Calls `look` with the content of the held packet. `EINVAL`: no packet is held. May sleep.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let held = self.stream()?.held.lock();
        Ok(look(held.as_ref().ok_or(EINVAL)?.content()))
    }

    /// Closes the packet that is being written. May sleep.
    pub(crate) fn flush(&self) -> Result {
        self.channel.give_all();
        self.channel.flush(self.cpu)
    }

    /// Moves pages of the held packet into a pipe. Returns 0 at the packet's end. `EINVAL`: no packet is held. May
    /// sleep.
    pub(crate) fn splice(&self, pipe: &mut Pipe, len: usize) -> Result<usize> {
        let stream = self.stream()?;
        let mut held = stream.held.lock();
        let Some(packet) = &mut *held else {
            return Err(EINVAL);
        };
        packet.splice(pipe, len)
    }

    /// Number of bytes that can be mapped: the memory of all packets.
    pub(crate) fn map_size(&self) -> Result<u64> {
        let stream = self.stream()?;
        let pages = stream.buffer().pages(&stream.cursor.lock().reader);
        Ok(pages.map_or(0, |(_, pages)| pages.len() as u64))
    }

    /// Maps the buffer's memory into a program, including packets that are being written or were read. The
    /// memory stays as long as the reader. Errors: `EPERM` if this reader may not see all of it, `EBUSY` if a
    /// snapshot is being read. May sleep.
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

    /// Prepares memory for [`take_all`](Self::take_all). Errors: `EOPNOTSUPP` in discard mode; `EBUSY` if a
    /// snapshot's packets are unread, or the memory is mapped; `ENOMEM`. May sleep.
    pub(crate) fn prepare(&self) -> Result {
        let stream = self.stream()?;
        let _held = stream.held.lock();
        self.prepare_stream(stream)
    }

    /// As [`prepare`](Self::prepare). The caller holds the lock of `held`.
    fn prepare_stream(&self, stream: &Stream) -> Result {
        self.finish_exchange(stream);
        let needed = stream.cursor.lock().needed(stream.buffer())?;
        if let Some(len) = needed {
            // The cursor's lock is released: the allocation of that much memory takes a while.
            let pages = KernelPages::new(len, self.cpu).ok_or(ENOMEM)?;
            let pages = Arc::new(pages, GFP_KERNEL)?;
            stream.cursor.lock().prepare(stream.buffer(), pages)?;
        }
        Ok(())
    }

    /// Closes the packet being written, and takes all packets, in one step on the writer's CPU.
    /// [`get`](Self::get) then returns them, and the writer has other memory. Returns their number. Errors as
    /// for [`prepare`](Self::prepare), and `EBUSY` if a packet is held;
    /// `EAGAIN` if a slot was being written, so that the exchange is not complete. May sleep.
    pub(crate) fn take_all(&self) -> Result<usize> {
        self.channel.give_all();
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

    /// Retries the remaining work of a snapshot.
    fn finish_exchange(&self, stream: &Stream) {
        if stream.cursor.lock().snapshot.is_exchanging() {
            self.end_snapshot(stream);
        }
    }

    /// Copies the next bytes of the held packet. If none is held, takes one and puts it once it is read. Returns 0 at
    /// the end of a packet that [`get`](Self::get) has taken, and at the end of the trace. May sleep.
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
                        // The wait below does not check for signals if the ring is readable. This may repeat,
                        // because a faster writer overwrites each packet before this takes it.
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
            // The cursor's lock is released: the copy may wait for user memory for ever.
            let bytes = packet.copy_out(out)?;
            if let Some(packet) = held.take_if(|packet| packet.is_read()) {
                stream.cursor.lock().put(stream.buffer(), packet);
            }
            return Ok(bytes);
        }
    }

    /// Events for poll(2) (Algorithm 5).
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> u32 {
        use crate::sys::bindings::{POLLERR, POLLHUP, POLLIN, POLLPRI, POLLRDNORM};
        let Ok(stream) = self.stream() else {
            return POLLERR;
        };
        if stream.wakeup.waiters().register(file, table).is_err() {
            return POLLERR;
        }
        // Read before the ring, as in `get`.
        let finished = stream.is_finished();
        let mut cursor = stream.cursor.lock();
        // Both branches test equation (2), as `get` does: if poll reports a packet, `get` can take it.
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
