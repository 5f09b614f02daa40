// SPDX-License-Identifier: GPL-2.0

//! List of the buffers, for programs that read a dump of the kernel's memory. [`abi::dump`](crate::abi::dump)
//! has the layout.
//!
//! No program reads the list while the kernel runs. But the kernel may crash at any moment, so the list is
//! always valid: a buffer is in it from before its first record until it is freed. The list has pages of its
//! own, for the reason that [`PageArray`](crate::sys::page_array::PageArray) gives.

use super::Setup;
use crate::abi::dump::{DumpEntry, DumpText, DumpTrace, Root, MAGIC, VERSION};
use crate::abi::packet::Uuid;
use crate::abi::region::{checksum, NAME_MAX};
use crate::arch::word::{release_barrier, SharedWord};
use crate::ring::exchange::Bank;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

static ROOT: Root<SharedWord> = Root {
    magic: MAGIC,
    address: SharedWord::new(0),
    version: VERSION,
    first: SharedWord::new(0),
};

/// All buffers. There must be one object.
#[pin_data]
pub(crate) struct Listing {
    /// From the last entry of the list to the first.
    #[pin]
    entries: Mutex<KVec<VBox<DumpEntry<SharedWord>>>>,
}

impl Listing {
    /// Creates an empty list.
    pub(crate) fn new() -> Result<Arc<Self>> {
        // This also makes the compiler assume that other code reads `ROOT`.
        ROOT.address.store(address(&ROOT));
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Puts a buffer at the front. Returns the address of its entry.
    fn add(&self, entry: VBox<DumpEntry<SharedWord>>) -> Result<u64> {
        let mut entries = self.entries.lock();
        entry.next.store(ROOT.first.load());
        let at = address(&*entry);
        entries.push(entry, GFP_KERNEL)?;
        release_barrier();
        ROOT.first.store(at);
        Ok(at)
    }

    fn change(&self, at: u64, change: impl FnOnce(&DumpEntry<SharedWord>)) {
        let entries = self.entries.lock();
        let mut entries = entries.iter();
        if let Some(entry) = entries.find(|entry| address(&***entry) == at) {
            change(entry);
        }
    }

    fn remove(&self, at: u64) {
        let mut entries = self.entries.lock();
        let Some(place) = entries.iter().position(|entry| address(&**entry) == at) else {
            return;
        };
        let next = entries.get(place).map_or(0, |entry| entry.next.load());
        match entries.get(place + 1) {
            Some(before) => before.next.store(next),
            None => ROOT.first.store(next),
        }
        release_barrier();
        let removed = entries.remove(place);
        drop(entries);
        drop(removed);
    }
}

/// A trace whose buffers are listed.
#[pin_data]
pub(crate) struct ListedTrace {
    listing: Arc<Listing>,
    trace: VBox<DumpTrace<SharedWord>>,
    #[pin]
    text: Mutex<VBox<OwnedText>>,
}

struct OwnedText {
    text: DumpText,
    _bytes: VVec<u8>,
}

impl OwnedText {
    fn new(metadata: &str) -> Result<VBox<Self>> {
        let mut bytes = VVec::new();
        bytes.extend_from_slice(metadata.as_bytes(), GFP_KERNEL)?;
        let text = DumpText {
            bytes: bytes.as_ptr().expose_provenance() as u64,
            len: bytes.len() as u64,
            sum: checksum(&bytes),
        };
        Ok(VBox::new(
            Self {
                text,
                _bytes: bytes,
            },
            GFP_KERNEL,
        )?)
    }
}

impl ListedTrace {
    /// A trace with this metadata. May sleep.
    pub(crate) fn new(listing: &Arc<Listing>, uuid: Uuid, metadata: &str) -> Result<Arc<Self>> {
        let text = OwnedText::new(metadata)?;
        let trace = DumpTrace {
            uuid,
            text: SharedWord::new(address(&text.text)),
        };
        let trace = VBox::new(trace, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                listing: listing.clone(),
                trace,
                text <- new_mutex!(text),
            }),
            GFP_KERNEL,
        )
    }

    /// Replaces the metadata. On failure the old metadata stays. May sleep.
    pub(crate) fn set_metadata(&self, metadata: &str) -> Result {
        let next = OwnedText::new(metadata)?;
        let mut text = self.text.lock();
        release_barrier();
        self.trace.text.store(address(&next.text));
        release_barrier();
        *text = next;
        Ok(())
    }
}

/// A buffer in the list. The drop removes it.
pub(super) struct ListedBuffer {
    trace: Arc<ListedTrace>,
    /// Address of its entry.
    at: u64,
}

impl ListedBuffer {
    /// Lists the buffer of `cpu` in a channel with this setup. `EINVAL`: the channel's name is too long. May
    /// sleep.
    pub(super) fn new(setup: &Setup, cpu: u32) -> Result<Self> {
        let name = setup.name.to_bytes();
        let mut padded = [0; NAME_MAX];
        let named = padded.get_mut(..name.len()).ok_or(EINVAL)?;
        named.copy_from_slice(name);
        let entry = DumpEntry {
            next: SharedWord::new(0),
            trace: address(&*setup.listed.trace),
            slots: SharedWord::new(0),
            subbufs: [SharedWord::new(0), SharedWord::new(0)],
            subbuf_size: setup.config.subbuf_size as u64,
            subbuf_count: setup.config.subbuf_count as u64,
            cpu,
            stream_id: setup.stream_id,
            name: padded,
        };
        let entry = VBox::new(entry, GFP_KERNEL)?;
        Ok(Self {
            trace: setup.listed.clone(),
            at: setup.listed.listing.add(entry)?,
        })
    }

    /// Stores the address of the buffer's slots.
    pub(super) fn slots<T>(&self, slots: &[T]) {
        let at = slots.as_ptr().expose_provenance();
        let listing = &self.trace.listing;
        listing.change(self.at, |entry| entry.slots.store(at as u64));
    }

    /// Stores the address of a bank's sub-buffers; [`None`]: the bank has none any more.
    pub(super) fn subbufs(&self, bank: Bank, first: Option<NonNull<u8>>) {
        let at = first.map_or(0, |first| first.as_ptr().expose_provenance());
        let listing = &self.trace.listing;
        listing.change(self.at, |entry| {
            let [first, second] = &entry.subbufs;
            match bank {
                Bank::First => first.store(at as u64),
                Bank::Second => second.store(at as u64),
            }
        });
    }
}

impl Drop for ListedBuffer {
    fn drop(&mut self) {
        self.trace.listing.remove(self.at);
    }
}

/// Address of an object, for programs that read a dump.
fn address<T>(of: &T) -> u64 {
    core::ptr::from_ref(of).expose_provenance() as u64
}
