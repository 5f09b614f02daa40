// SPDX-License-Identifier: GPL-2.0

//! The module's channel with one buffer: that of the CPU to which the writer is pinned.

#[path = "../../../rust/channel/buffer.rs"]
#[allow(dead_code)]
pub(crate) mod buffer;
#[path = "../../../rust/channel/config.rs"]
#[allow(dead_code)]
pub(crate) mod config;
#[path = "../../../rust/channel/format.rs"]
#[allow(dead_code, unused_imports, unused_macros)]
pub(crate) mod format;
#[path = "../../../rust/channel/header.rs"]
#[allow(dead_code)]
pub(crate) mod header;
#[path = "../../../rust/channel/memory.rs"]
#[allow(dead_code)]
pub(crate) mod memory;
#[path = "../../../rust/channel/packet.rs"]
mod packet;
#[path = "../../../rust/channel/platform.rs"]
#[allow(dead_code)]
pub(crate) mod platform;
#[path = "../../../rust/channel/time.rs"]
#[allow(dead_code)]
pub(crate) mod time;

use crate::abi::header::Layout;
use crate::abi::packet::PacketHeader;
use crate::prelude::{Result, GFP_KERNEL};
use crate::ring::lost::Lost;
use crate::sync::Arc;
use crate::sys::gate::{Gates, Refusal};
use crate::sys::system::Uuid;
use crate::uaccess::UserSliceWriter;
use buffer::{Buffer, Entered, Waiting, MAX_NESTING};
use config::Config;
use core::mem::offset_of;
use time::ClockKind;

/// What a channel is made with.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    pub(crate) clock: ClockKind,
    pub(crate) uuid: Uuid,
}

pub(crate) mod reader {
    //! The reading side: where the buffer's reader is.

    use crate::ring::consume::Reader;

    pub(crate) struct Cursor(pub(super) Reader);

    impl Cursor {
        pub(super) fn new(reader: Reader) -> Self {
            Self(reader)
        }
    }
}

/// One buffer.
pub(crate) struct Channel {
    setup: Setup,
    buffers: Gates<Buffer>,
    buffer: Arc<Buffer>,
}

impl Channel {
    /// Makes it, recording.
    pub(crate) fn new(setup: Setup) -> Result<Self> {
        let buffers = Gates::new(MAX_NESTING)?;
        let buffer = Arc::pin_init(Buffer::new(&setup, 0), GFP_KERNEL)?;
        buffers.fill(0, buffer.clone());
        buffers.open(0);
        Ok(Self {
            setup,
            buffers,
            buffer,
        })
    }

    /// What it was made with.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The way to the buffer.
    pub(crate) fn buffers(&self) -> &Gates<Buffer> {
        &self.buffers
    }

    /// As the module's.
    #[inline(always)]
    pub(crate) fn admit<'a>(&self, waiting: Waiting<'a>, least: u64) -> Option<Entered<'a>> {
        match waiting.pass() {
            Ok(entered) => Buffer::admit(entered, least),
            Err((waiting, refusal)) => {
                Self::refuse(&waiting, refusal);
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(waiting: &Waiting<'_>, refusal: Refusal) {
        if let (Refusal::TooDeep, Some(buffer)) = (refusal, waiting.target()) {
            buffer.ring().lost().count(Lost::Nested);
        }
    }

    /// Moves the oldest packet out: get, copy, put. Returns its records; [`None`] if there is no
    /// packet.
    pub(crate) fn drain(&self, out: &mut UserSliceWriter) -> Result<Option<u64>> {
        let mut cursor = self.buffer.reader.lock();
        let Ok(packet) = self.buffer.ring().get(&mut cursor.0) else {
            return Ok(None);
        };
        let size = packet.memory + offset_of!(PacketHeader, packet_size) as u64;
        let bytes = self.buffer.memory.read_word(size) / 8;
        self.buffer
            .memory
            .copy_out(packet.memory, bytes as usize, out)?;
        self.buffer.ring().put(&mut cursor.0);
        Ok(Some(packet.records))
    }

    /// Records that are in the buffer or were.
    pub(crate) fn recorded(&self) -> u64 {
        self.buffer.ring().recorded()
    }

    /// Records refused because the buffer was full.
    pub(crate) fn full(&self) -> u64 {
        self.buffer.ring().lost().get(Lost::Full)
    }

    /// Records refused, for any reason.
    pub(crate) fn discarded(&self) -> u64 {
        self.buffer.ring().lost().discarded()
    }
}
