// SPDX-License-Identifier: GPL-2.0

//! A source of packets without a kernel.

use crate::{PacketBuilder, UUID};
use consumer::{Consumer, Source, Stream};
use ctf::StreamName;
use rtrace_abi::header::Layout;
use rtrace_abi::ioctl::Packet;
use rtrace_abi::names::FIRST_CHANNEL;
use rustix::event::{eventfd, EventfdFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use store::OutputOptions;
use uuid::Uuid;

/// A packet and its bytes.
pub type Full = (Packet, Vec<u8>);

/// The buffer of one CPU, which a test and a consumer share.
#[derive(Debug)]
pub struct Buffer {
    /// Packets to take, the oldest first.
    pub ready: VecDeque<Full>,
    /// The packet that a flush makes ready.
    pub open: Option<Full>,
    /// Whether the trace is over.
    pub over: bool,
    /// The packet that the reader holds, and the number of bytes of it that were spliced.
    pub held: Option<(Full, usize)>,
    /// Sequence numbers of the returned packets, in the order of their return.
    pub put: Vec<u64>,
    /// Maximum number of bytes of one splice.
    pub most: usize,
    /// Splices that work before one fails.
    pub fail_after: Option<usize>,
    /// The error of a request to take all packets at once; [`None`]: the request succeeds.
    pub refuses: Option<Errno>,
    /// A packet that is written when a packet was read.
    pub late: Option<Full>,
    event: OwnedFd,
}

impl Buffer {
    /// Adds a packet, and wakes the reader.
    pub fn push(&mut self, packet: Full) {
        self.ready.push_back(packet);
        self.wake();
    }

    /// Ends the trace, and wakes the reader.
    pub fn end(&mut self) {
        self.over = true;
        self.wake();
    }

    fn wake(&self) {
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).unwrap();
    }
}

/// A channel, or several named channels.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The buffers of all streams.
    pub buffers: Arc<Mutex<BTreeMap<StreamName, Arc<Mutex<Buffer>>>>>,
    /// The description, if it has changed since the last read.
    pub metadata: Arc<Mutex<Option<String>>>,
    /// The text of the kernel's counters.
    pub counters: Arc<Mutex<String>>,
    /// The number that the next packet of each stream will have.
    pub next_packets: Arc<Mutex<BTreeMap<StreamName, u64>>>,
    /// The identity of the trace.
    pub uuid: [u8; 16],
}

impl Channel {
    /// A channel with a buffer for each CPU.
    pub fn new(cpus: u32) -> Self {
        let channel = Self {
            buffers: Arc::default(),
            metadata: Arc::new(Mutex::new(Some(crate::metadata(UUID, Layout::Compact)))),
            counters: Arc::default(),
            next_packets: Arc::default(),
            uuid: UUID,
        };
        for cpu in 0..cpus {
            channel.add(cpu);
        }
        channel
    }

    /// Adds the buffer of a CPU.
    pub fn add(&self, cpu: u32) {
        self.add_to(FIRST_CHANNEL, cpu);
    }

    /// Adds the buffer of a CPU to the channel of this name.
    pub fn add_to(&self, channel: &str, cpu: u32) {
        let buffer = Buffer {
            ready: VecDeque::new(),
            open: None,
            over: false,
            held: None,
            put: Vec::new(),
            most: usize::MAX,
            fail_after: None,
            refuses: Some(Errno::OPNOTSUPP),
            late: None,
            event: eventfd(0, EventfdFlags::NONBLOCK).unwrap(),
        };
        self.buffers
            .lock()
            .unwrap()
            .insert(name(channel, cpu), Arc::new(Mutex::new(buffer)));
    }

    /// Acts on the buffer of a CPU.
    pub fn with<T>(&self, cpu: u32, act: impl FnOnce(MutexGuard<'_, Buffer>) -> T) -> T {
        self.with_of(FIRST_CHANNEL, cpu, act)
    }

    /// Acts on the buffer of a CPU in the channel of this name.
    pub fn with_of<T>(
        &self,
        channel: &str,
        cpu: u32,
        act: impl FnOnce(MutexGuard<'_, Buffer>) -> T,
    ) -> T {
        let buffer = Arc::clone(&self.buffers.lock().unwrap()[&name(channel, cpu)]);
        let guard = buffer.lock().unwrap();
        act(guard)
    }

    /// Ends the trace.
    pub fn end(&self) {
        for name in self.streams().unwrap() {
            self.with_of(&name.channel, name.cpu, |mut buffer| buffer.end());
        }
    }
}

/// The name of a stream.
pub fn name(channel: &str, cpu: u32) -> StreamName {
    StreamName {
        channel: channel.to_owned(),
        cpu,
    }
}

impl Source for Channel {
    type Stream = FakeStream;

    fn streams(&self) -> system::Result<Vec<StreamName>> {
        Ok(self.buffers.lock().unwrap().keys().cloned().collect())
    }

    fn open(&self, stream: &StreamName) -> system::Result<Option<FakeStream>> {
        let buffer = Arc::clone(&self.buffers.lock().unwrap()[stream]);
        let event = buffer.lock().unwrap().event.try_clone().unwrap();
        Ok(Some(FakeStream { buffer, event }))
    }

    fn uuid(&self) -> Uuid {
        Uuid::from_bytes(self.uuid)
    }

    fn metadata(&mut self) -> system::Result<Option<String>> {
        Ok(self.metadata.lock().unwrap().take())
    }

    fn counters(&self) -> system::Result<String> {
        Ok(self.counters.lock().unwrap().clone())
    }

    fn next_packets(&self) -> system::Result<BTreeMap<StreamName, u64>> {
        Ok(self.next_packets.lock().unwrap().clone())
    }

    fn subbuf_count(&self, _: &StreamName) -> u64 {
        4
    }
}

/// A stream of a [`Channel`].
#[derive(Debug)]
pub struct FakeStream {
    buffer: Arc<Mutex<Buffer>>,
    event: OwnedFd,
}

impl AsFd for FakeStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for FakeStream {
    /// As in the kernel, the held packet can be taken again.
    fn drop(&mut self) {
        if let Ok(mut buffer) = self.buffer.lock() {
            if let Some((packet, _)) = buffer.held.take() {
                buffer.ready.push_front(packet);
            }
        }
    }
}

impl Stream for FakeStream {
    fn get(&mut self) -> io::Result<Packet> {
        let mut buffer = self.buffer.lock().unwrap();
        if buffer.held.is_some() {
            return Err(Errno::BUSY.into());
        }
        if let Some(full) = buffer.ready.pop_front() {
            let packet = full.0;
            buffer.held = Some((full, 0));
            return Ok(packet);
        }
        if buffer.over {
            return Err(Errno::NODATA.into());
        }
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        Err(Errno::AGAIN.into())
    }

    fn splice(&mut self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        let mut buffer = self.buffer.lock().unwrap();
        match &mut buffer.fail_after {
            Some(0) => return Err(Errno::IO.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        let most = buffer.most;
        let Some((full, at)) = &mut buffer.held else {
            return Err(Errno::INVAL.into());
        };
        let rest = &full.1[*at..];
        let moved = rustix::io::write(pipe, &rest[..rest.len().min(len).min(most)])?;
        *at += moved;
        Ok(moved)
    }

    fn put(&mut self) -> io::Result<()> {
        let mut buffer = self.buffer.lock().unwrap();
        let (full, at) = buffer.held.take().ok_or(Errno::INVAL)?;
        assert!(at == 0 || at == full.1.len(), "given back half-read");
        buffer.put.push(full.0.sequence);
        if let Some(late) = buffer.late.take() {
            buffer.push(late);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = self.buffer.lock().unwrap();
        if let Some(packet) = buffer.open.take() {
            buffer.ready.push_back(packet);
        }
        Ok(())
    }

    fn prepare(&mut self) -> io::Result<()> {
        match self.buffer.lock().unwrap().refuses {
            Some(errno) => Err(errno.into()),
            None => Ok(()),
        }
    }

    fn take_all(&mut self) -> io::Result<u64> {
        self.prepare()?;
        self.flush()?;
        Ok(self.buffer.lock().unwrap().ready.len() as u64)
    }
}

/// A consumer of the channel that writes to a directory.
pub fn open(channel: &Channel, dir: &Path) -> system::Result<Consumer<Channel>> {
    open_as(channel, dir, OutputOptions::default())
}

/// As [`open`], with these options.
pub fn open_as(
    channel: &Channel,
    dir: &Path,
    options: OutputOptions,
) -> system::Result<Consumer<Channel>> {
    Consumer::open(channel.clone(), |source| {
        options.begin(dir, source.uuid(), &source.streams()?)
    })
}

/// A packet of about `bytes` bytes, with one event for each 8 bytes.
pub fn packet(cpu: u32, sequence: u64, bytes: usize) -> Full {
    let begin = sequence * 1000;
    let mut builder = PacketBuilder::new(Layout::Compact, cpu, sequence, begin);
    for i in 0..(bytes - 96) / 8 {
        builder = builder.softirq(begin + 1, i as u32);
    }
    let records = builder.records;
    let bytes = builder.close(begin + 1, 4096);
    let size = bytes.len() as u64;
    (
        Packet {
            sequence,
            size,
            content: size,
            records,
        },
        bytes,
    )
}
