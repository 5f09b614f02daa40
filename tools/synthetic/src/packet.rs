// SPDX-License-Identifier: GPL-2.0

//! Builder of one packet.

use crate::{
    EVERY_TYPE, EXEC, FORK, IRQ, IRQ_EXIT, OPENAT, READ, SAMPLE, SOFTIRQ, SOFTIRQ_EXIT, SWITCH,
    UUID,
};
use rtrace_abi::header::{
    Layout, COMPACT_ESCAPE, COMPACT_ID_BITS, COMPACT_TIME_BITS, LARGE_ESCAPE, LARGE_TIME_BITS,
};
use rtrace_abi::packet::{PacketHeader, MAGIC};

/// Collects events, and returns the packet's bytes.
#[derive(Clone, Debug)]
pub struct PacketBuilder {
    layout: Layout,
    cpu: u32,
    uuid: [u8; 16],
    stream_id: u32,
    sequence: u64,
    discarded: u64,
    begin: u64,
    now: u64,
    events: Vec<u8>,
    /// Number of events so far.
    pub records: u64,
}

impl PacketBuilder {
    /// Creates an empty packet that begins at clock value `begin`.
    pub fn new(layout: Layout, cpu: u32, sequence: u64, begin: u64) -> Self {
        Self {
            layout,
            cpu,
            uuid: UUID,
            stream_id: 0,
            sequence,
            discarded: 0,
            begin,
            now: begin,
            events: Vec::new(),
            records: 0,
        }
    }

    /// Sets the identity of another trace.
    pub fn uuid(mut self, uuid: [u8; 16]) -> Self {
        self.uuid = uuid;
        self
    }

    /// Sets a stream class other than the first.
    pub fn stream(mut self, id: u32) -> Self {
        self.stream_id = id;
        self
    }

    /// Sets the number of events discarded on this CPU before the packet's end.
    pub fn discarded(mut self, events: u64) -> Self {
        self.discarded = events;
        self
    }

    /// Adds any event.
    pub fn event(mut self, id: u32, time: u64, payload: &[u8]) -> Self {
        self.header(id, time);
        self.events.extend_from_slice(payload);
        self.now = time;
        self.records += 1;
        self
    }

    /// Adds a switch of the CPU from a task that can run on to another task.
    pub fn switch(self, time: u64, prev: (i32, &str), next: (i32, &str)) -> Self {
        self.switch_from(time, prev, 0, next)
    }

    /// Adds a switch of the CPU from a task that is left in `state` to another task.
    pub fn switch_from(self, time: u64, prev: (i32, &str), state: i64, next: (i32, &str)) -> Self {
        let mut payload = Vec::new();
        payload.extend(comm(prev.1));
        payload.extend(prev.0.to_le_bytes());
        payload.extend(20_i32.to_le_bytes());
        payload.extend(state.to_le_bytes());
        payload.extend(comm(next.1));
        payload.extend(next.0.to_le_bytes());
        payload.extend(20_i32.to_le_bytes());
        self.event(SWITCH, time, &payload)
    }

    /// Adds a wake-up of a task: before it ([`WAKING`](crate::WAKING)), or after it
    /// ([`WAKEUP`](crate::WAKEUP)).
    pub fn wake(self, id: u32, time: u64, task: (i32, &str)) -> Self {
        let mut payload = comm(task.1).to_vec();
        payload.extend([task.0, 20, 0].map(i32::to_le_bytes).concat());
        self.event(id, time, &payload)
    }

    /// Adds the start of a task. It is a process if its thread id is its process id.
    pub fn fork(self, time: u64, parent: (i32, &str), child: (i32, &str), pid: i32) -> Self {
        let mut payload = comm(parent.1).to_vec();
        payload.extend([parent.0, parent.0].map(i32::to_le_bytes).concat());
        payload.extend(comm(child.1));
        payload.extend([child.0, pid].map(i32::to_le_bytes).concat());
        self.event(FORK, time, &payload)
    }

    /// Adds the beginning of an openat(2).
    pub fn openat(self, time: u64, filename: &str) -> Self {
        self.event(OPENAT, time, &[filename.as_bytes(), b"\0"].concat())
    }

    /// Adds the end of a system call. `id` is that of the event.
    pub fn syscall_exit(self, id: u32, time: u64, ret: i64) -> Self {
        self.event(id, time, &ret.to_le_bytes())
    }

    /// Adds the beginning of an interrupt's handler.
    pub fn irq(self, time: u64, irq: i32, name: &str) -> Self {
        let payload = [&irq.to_le_bytes(), name.as_bytes(), b"\0"].concat();
        self.event(IRQ, time, &payload)
    }

    /// Adds the end of an interrupt's handler.
    pub fn irq_exit(self, time: u64, irq: i32) -> Self {
        self.event(IRQ_EXIT, time, &[irq, 1].map(i32::to_le_bytes).concat())
    }

    /// Adds the end of a softirq.
    pub fn softirq_exit(self, time: u64, vec: u32) -> Self {
        self.event(SOFTIRQ_EXIT, time, &vec.to_le_bytes())
    }

    /// Adds the beginning of a softirq.
    pub fn softirq(self, time: u64, vec: u32) -> Self {
        self.event(SOFTIRQ, time, &vec.to_le_bytes())
    }

    /// Adds an exec of another program.
    pub fn exec(self, time: u64, filename: &str, tid: i32) -> Self {
        let mut payload = filename.as_bytes().to_vec();
        payload.push(0);
        payload.extend(tid.to_le_bytes());
        self.event(EXEC, time, &payload)
    }

    /// Adds the beginning of a read(2).
    pub fn read(self, time: u64, buf: u64) -> Self {
        self.event(READ, time, &buf.to_le_bytes())
    }

    /// Adds a sample of code at this address.
    pub fn sample(self, time: u64, ip: u64) -> Self {
        self.event(SAMPLE, time, &ip.to_le_bytes())
    }

    /// Adds a record of [`EVERY_TYPE`]. Its fields are, in order: 1, -3, 0x1abc, 4 (`HIGH`),
    /// 0x8123456789abcdef, 5 (`a "wait"`), deadbeef, 1 2 3 0 1, offsets and lengths, `ab`, -1 and 7, `/p`.
    pub fn every_type(self, time: u64) -> Self {
        let mut payload = Vec::new();
        let fields = [
            (1, 1),
            (0b1101, 4),
            (0x1abc, 13),
            (4, 3),
            (0x8123_4567_89ab_cdef, 64),
        ];
        payload.extend(packed(&fields));
        payload.extend(5_i64.to_le_bytes());
        payload.extend([0xde, 0xad, 0xbe, 0xef]);
        payload.extend(packed(&[(1, 2), (2, 2), (3, 2), (0, 2), (1, 2)]));
        payload.extend(32_u16.to_le_bytes());
        payload.extend(2_u16.to_le_bytes());
        payload.extend(34_u16.to_le_bytes());
        payload.push(2);
        payload.extend(*b"ab");
        payload.extend((-1_i32).to_le_bytes());
        payload.extend(7_i32.to_le_bytes());
        payload.extend(*b"/p\0");
        self.event(EVERY_TYPE, time, &payload)
    }

    /// Closes the packet at clock value `end` and pads it to a multiple of `page` bytes.
    pub fn close(self, end: u64, page: usize) -> Vec<u8> {
        let content = PacketHeader::SIZE + self.events.len();
        let size = content.next_multiple_of(page);
        let mut out = Vec::with_capacity(size);
        out.extend(MAGIC.to_le_bytes());
        out.extend(self.uuid);
        out.extend(self.stream_id.to_le_bytes());
        out.extend(u64::from(self.cpu).to_le_bytes());
        out.extend(self.begin.to_le_bytes());
        out.extend(end.to_le_bytes());
        out.extend((content as u64 * 8).to_le_bytes());
        out.extend((size as u64 * 8).to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.discarded.to_le_bytes());
        out.extend(self.cpu.to_le_bytes());
        assert_eq!(out.len(), PacketHeader::SIZE);
        out.extend(self.events);
        out.resize(size, 0);
        out
    }

    fn header(&mut self, id: u32, time: u64) {
        let (bits, escape) = match self.layout {
            Layout::Compact => (COMPACT_TIME_BITS, COMPACT_ESCAPE),
            Layout::Large => (LARGE_TIME_BITS, LARGE_ESCAPE),
        };
        let fits = id < escape && time - self.now < 1 << bits;
        let out = &mut self.events;
        match self.layout {
            Layout::Compact if fits => {
                out.extend((id | ((time as u32) << COMPACT_ID_BITS)).to_le_bytes());
            }
            Layout::Large if fits => {
                out.extend((id as u16).to_le_bytes());
                out.extend((time as u32).to_le_bytes());
            }
            Layout::Compact => out.push(escape as u8),
            Layout::Large => out.extend((escape as u16).to_le_bytes()),
        }
        if !fits {
            out.extend(id.to_le_bytes());
            out.extend(time.to_le_bytes());
        }
    }
}

/// Packs bit fields, each a value and its width: at most 128 bits, the first in the lowest bits.
fn packed(fields: &[(u128, usize)]) -> Vec<u8> {
    let (mut bits, mut end) = (0, 0);
    for (value, width) in fields {
        bits |= value << end;
        end += width;
    }
    bits.to_le_bytes()[..end.div_ceil(8)].to_vec()
}

fn comm(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    out[..name.len()].copy_from_slice(name.as_bytes());
    out
}
