// SPDX-License-Identifier: GPL-2.0

//! Reserved memory for a channel's buffers, so that they outlive the kernel.
//! [`abi::region`](crate::abi::region) has the layout.
//!
//! A [`Region`] is the memory, found by its name. A [`Recorded`] is one trace's use of it. The memory is marked
//! as a trace as soon as it has all that a reader needs, until the buffers are freed. A kernel that crashes
//! does not free them. The next kernel finds the trace, and leaves it alone until a user clears it.

use super::Setup;
use crate::abi::region::{
    checksum, BufferPlace, MetadataWords, NoHeader, RegionHeader, METADATA_AT, NAME_MAX,
};
use crate::ring::image::Image;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::pages::PAGE_SIZE;
use crate::sys::reserved::{Claim, Piece, ReservedMemory};
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Reserved memory that has a name.
pub(crate) struct Region {
    name: CString,
    memory: Arc<ReservedMemory>,
}

impl Region {
    /// Finds the memory that the kernel's command line reserves under this name. There must be one object for a
    /// name. `ENOENT`: nothing is reserved under the name. May sleep.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{name}"))?;
        let memory = ReservedMemory::find(&name)?;
        Ok(Self { name, memory })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or("")
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether the memory has a trace from before the module was loaded. A trace of another version counts too.
    /// `EBUSY`: a trace is being recorded in it, or was recorded and is not freed. May sleep.
    pub(crate) fn has_earlier(&self) -> Result<bool> {
        let mut bytes = [0; RegionHeader::SIZE];
        self.memory.read(0, &mut bytes)?;
        // A damaged trace cannot be read.
        Ok(!matches!(
            RegionHeader::parse(&bytes),
            Err(NoHeader::Empty | NoHeader::Damaged)
        ))
    }

    /// Copies the bytes from `at` on, to recover a trace. Errors as for [`has_earlier`](Self::has_earlier). May
    /// sleep.
    pub(crate) fn read(&self, at: usize, to: &mut [u8]) -> Result {
        self.memory.read(at, to)
    }

    /// Clears the trace that was found. Errors as for [`has_earlier`](Self::has_earlier). May sleep.
    pub(crate) fn clear(&self) -> Result {
        self.memory.write(0, &[0; RegionHeader::SIZE])
    }
}

/// A trace's use of a region, until it and all its buffers are dropped.
#[pin_data(PinnedDrop)]
pub(crate) struct Recorded {
    region: Arc<Region>,
    claim: Arc<Claim>,
    header: RegionHeader,
    #[pin]
    pieces: Mutex<Pieces>,
}

/// The parts of the memory that are not buffers.
struct Pieces {
    header: Piece,
    table: Piece,
    buffers: usize,
    metadata: Piece,
    words: MetadataWords,
}

/// The memory of one CPU's buffer.
pub(super) struct ReservedArea {
    pub(super) slots: Option<Piece>,
    pub(super) subbufs: Option<Piece>,
}

/// Reason why a region cannot be used for a trace.
pub(crate) enum RegionRefusal {
    /// It has a trace of an earlier boot.
    Earlier,
    /// Another trace uses it.
    Busy,
    /// It is smaller than this many bytes.
    Small(u64),
    /// Any other error.
    Error(Error),
}

impl From<Error> for RegionRefusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Factor by which the metadata may grow.
const METADATA_GROWTH: usize = 2;
/// Number of bytes by which it may grow in addition.
const METADATA_MORE: usize = 64 << 10;

impl Recorded {
    /// Starts to use `region` for a channel with this setup, whose trace has this metadata now. May sleep.
    pub(crate) fn new(
        region: &Arc<Region>,
        setup: &Setup,
        boot_id: [u8; 36],
        metadata: &str,
    ) -> Result<Arc<Self>, RegionRefusal> {
        match region.has_earlier() {
            Err(EBUSY) => return Err(RegionRefusal::Busy),
            Err(error) => return Err(RegionRefusal::Error(error)),
            Ok(true) => return Err(RegionRefusal::Earlier),
            Ok(false) => {}
        }
        let config = setup.config;
        let pages = |bytes: usize| bytes.next_multiple_of(PAGE_SIZE);
        let table_room = cpu::possible().filter(|&cpu| setup.cpus.has(cpu)).count();
        let table_bytes = pages(table_room * BufferPlace::SIZE);
        let metadata_room = pages(METADATA_GROWTH * metadata.len() + METADATA_MORE);
        let table_at = PAGE_SIZE;
        let metadata_at = table_at + table_bytes;
        let buffers_at = metadata_at + 2 * metadata_room;
        let mut padded = [0; NAME_MAX];
        let name = setup.name.to_bytes();
        let named = padded.get_mut(..name.len()).ok_or(EINVAL)?;
        named.copy_from_slice(name);
        let header = RegionHeader {
            size: region.len() as u64,
            uuid: setup.uuid,
            boot_id,
            stream_id: setup.stream_id,
            subbuf_size: config.subbuf_size as u64,
            subbuf_count: config.subbuf_count as u64,
            table_at: table_at as u64,
            table_room: table_room as u64,
            metadata_at: metadata_at as u64,
            metadata_room: metadata_room as u64,
            name: padded,
        };
        let buffer = header.buffer_bytes(Image::SIZE as u64).ok_or(EINVAL)?;
        let cpus = NoHotplug::new();
        let online = cpu::possible().filter(|&cpu| setup.cpus.has(cpu) && cpus.is_online(cpu));
        let online = online.count() as u64;
        drop(cpus);
        let needed = online
            .saturating_mul(buffer)
            .saturating_add(buffers_at as u64);
        if needed > region.len() as u64 {
            return Err(RegionRefusal::Small(needed));
        }

        let claim = region.memory.claim().map_err(|error| match error {
            EBUSY => RegionRefusal::Busy,
            error => RegionRefusal::Error(error),
        })?;
        let take = |len: usize| claim.take(len).map(|(_, piece)| piece).ok_or(ENOMEM);
        let pieces = Pieces {
            header: take(PAGE_SIZE)?,
            table: take(table_bytes)?,
            buffers: 0,
            metadata: take(2 * metadata_room)?,
            words: MetadataWords::default(),
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                region: region.clone(),
                claim,
                header,
                pieces <- new_mutex!(pieces),
            }),
            GFP_KERNEL,
        )?;
        this.save_metadata(metadata)?;
        this.pieces.lock().header.write(0, &header.to_bytes())?;
        Ok(this)
    }

    /// The region.
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Stores new metadata. `ENOSPC`: it has grown too much; the old metadata stays. May sleep.
    pub(crate) fn save_metadata(&self, metadata: &str) -> Result {
        let room = self.header.metadata_room as usize;
        if metadata.len() > room {
            return Err(ENOSPC);
        }
        let mut pieces = self.pieces.lock();
        let mut words = pieces.words;
        words.writes = words.writes.wrapping_add(1);
        let text = (words.writes % 2) as usize;
        pieces.metadata.write(text * room, metadata.as_bytes())?;
        if let Some(place) = words.texts.get_mut(text) {
            *place = (metadata.len() as u64, checksum(metadata.as_bytes()));
        }
        // The number of writes comes last: it selects the valid text.
        let bytes = words.to_bytes();
        let at = METADATA_AT as usize;
        pieces.header.write(at + 8, &bytes[8..])?;
        pieces.header.write(at, &bytes[..8])?;
        pieces.words = words;
        Ok(())
    }

    /// Takes memory for the buffer of `cpu`. `ENOMEM`: not enough is left. May sleep.
    pub(super) fn area(&self, cpu: u32) -> Result<ReservedArea> {
        let slots = self.header.slots_bytes(Image::SIZE as u64).ok_or(EINVAL)?;
        let bytes = self.header.buffer_bytes(Image::SIZE as u64).ok_or(EINVAL)?;
        let (at, piece) = self.claim.take(bytes as usize).ok_or(ENOMEM)?;
        let (slots, subbufs) = piece.split(slots as usize).ok_or(EINVAL)?;
        let mut pieces = self.pieces.lock();
        let entry = pieces.buffers * BufferPlace::SIZE;
        let place = BufferPlace { at: at as u64, cpu };
        pieces.table.write(entry, &place.to_bytes())?;
        pieces.buffers += 1;
        Ok(ReservedArea {
            slots: Some(slots),
            subbufs: Some(subbufs),
        })
    }
}

#[pinned_drop]
impl PinnedDrop for Recorded {
    fn drop(self: Pin<&mut Self>) {
        // No reader is left, so the memory has no trace any more.
        let _ = self.pieces.lock().header.write(0, &[0; RegionHeader::SIZE]);
    }
}
