// SPDX-License-Identifier: GPL-2.0

//! AUX sources: other modules that write large chunks of raw bytes beside a trace's events.
//!
//! The end of each chunk is an event, which gives the place of the chunk in the CPU's AUX area. Only one channel
//! at a time can record such a source, because the bytes are in one place.

use super::attached::AttachedProbes;
use super::description::{DescribedType, Description, FullName};
use super::event_source::EventSource;
use super::probe_list::{NewProbe, ProbeList};
use crate::abi::aux::{flags, FIELDS};
use crate::abi::schema::Field;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::channel::aux::AuxArea;
use crate::channel::Channel;
use crate::probe::listed::{ListedProbes, Removed};
use crate::probe::Probe;
use crate::record::memory::{Space, Tail};
use crate::ring::aux::{Chunk, Told};
use crate::sys::bindings;
use crate::sys::cpu;
use crate::sys::errno::eusers;
use crate::sys::foreign::ForeignRoom;
use crate::sys::percpu::PerCpu;
use crate::sys::rcu::{RcuArc, Retired};
use core::mem::size_of;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A source whose bytes another module writes.
#[pin_data]
pub(crate) struct AuxSource {
    description: Description,
    /// The probe of the owner, and the probes of triggers.
    #[pin]
    probes: ListedProbes,
    /// The channel that has the areas. Empty while no channel records the source.
    owner: RcuArc<Channel>,
    cpus: PerCpu<PerCpuState>,
    /// Held to change the owner.
    #[pin]
    changing: Mutex<()>,
}

/// The state of a source on one CPU.
struct PerCpuState {
    /// The address of the area that has an open chunk; 0 if there is none.
    open: SharedWord,
    /// The area of the open chunk, if its trace is over. Kept because the producer may write the chunk until its
    /// end.
    kept: RcuArc<AuxArea>,
}

/// A chunk, between its begin and its end.
// `struct rtrace_aux_handle`.
#[repr(C)]
pub(crate) struct OpenChunk {
    /// The number of bytes in the chunk.
    size: usize,
    /// The address of the chunk's area; 0 once the chunk has ended.
    area: u64,
    chunk: Chunk,
    /// The CPU that the area belongs to.
    cpu: u32,
}

/// The caller's room for an open chunk.
pub(crate) type Handle<'r> = ForeignRoom<'r, OpenChunk, bindings::rtrace_aux_handle>;

/// The reason why a channel cannot record a source, as text for users; [`None`] if `error` is not from this file.
pub(crate) fn refusal(error: Error) -> Option<&'static str> {
    if error == ENXIO {
        return Some("the event is of an AUX area, which the channel has not (see aux_size)");
    }
    (error == eusers()).then_some("another channel records the AUX area that the event is of")
}

impl AuxSource {
    /// Makes a source that nobody records. `EINVAL`: a name is not a C identifier, or is too long. May sleep.
    pub(crate) fn new(subsystem: &[u8], name: &[u8]) -> Result<Arc<Self>> {
        let mut description = Description::new(subsystem, name)?;
        for field in FIELDS {
            description.add_field(field.name.as_bytes(), DescribedType::Fixed(field.ty))?;
        }
        let cpus = PerCpu::new(|| PerCpuState {
            open: SharedWord::new(0),
            kept: RcuArc::new(),
        })?;
        Arc::pin_init(
            pin_init!(Self {
                description,
                probes <- ListedProbes::new(),
                owner: RcuArc::new(),
                cpus,
                changing <- new_mutex!(()),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins a chunk of up to `wanted` bytes (0: as many as are free) in this CPU's area, and returns its
    /// address. [`None`]: the source is not recorded; or there is no room, or a chunk is open already: these
    /// two cases are counted. Any context, NMI included.
    pub(crate) fn begin(&self, handle: Handle<'_>, wanted: u64) -> Option<NonNull<u8>> {
        let guard = NoPreempt::new();
        let channel = self.owner.get(&guard)?;
        if !channel.is_active() || !channel.records_this_cpu(&guard) {
            return None;
        }
        // While the guard lives, the channel keeps the area.
        let area = channel.area_here(&guard)?;
        let open = &self.cpus.this_cpu(&guard).open;
        if !open.compare_exchange(0, address(area)) {
            area.count_collision();
            return None;
        }
        let Some((chunk, at)) = area.begin(wanted) else {
            open.store_release(0);
            return None;
        };
        // From here on `detach` finds the chunk open, and keeps the area.
        handle.fill(OpenChunk {
            size: chunk.len as usize,
            area: address(area),
            chunk,
            cpu: area.cpu(),
        });
        Some(at)
    }

    /// Ends a chunk whose first `written` bytes were written. `EINVAL`: the chunk has ended already, or it is not
    /// recorded because it has fewer bytes or the producer may not set these `flags`.
    /// Any CPU, any context, NMI included.
    pub(crate) fn end(&self, handle: Handle<'_>, written: u64, flags: u64) -> Result {
        let handle = handle.filled();
        let OpenChunk { chunk, cpu, .. } = *handle;
        let area = core::mem::take(&mut handle.area);
        let this = self.cpus.of(cpu).filter(|_| area != 0).ok_or(EINVAL)?;
        let is_right = written <= chunk.len && flags & !flags::PRODUCER == 0;
        // While this guard lives, `detach` waits.
        let guard = NoPreempt::new();
        let is_it = |its: &&AuxArea| address(its) == area;
        let owner = self.owner.get(&guard);
        match owner.and_then(|channel| channel.area(cpu)).filter(is_it) {
            Some(area) if is_right && owner.is_some_and(Channel::is_active) => {
                self.record(area, chunk, written, flags, &guard);
            }
            recorded => {
                // The chunk's trace is over, or the chunk must not be recorded.
                let kept = || this.kept.get(&guard).filter(is_it);
                if let Some(area) = recorded.or_else(kept) {
                    area.abandon(if is_right { written } else { chunk.len });
                }
            }
        }
        // This comes last, because `release` frees areas without an open chunk. Pairs with the acquire there.
        this.open.store_release(0);
        is_right.then_some(()).ok_or(EINVAL)
    }

    /// Ends the chunk in its area, and records the event.
    #[inline(always)]
    fn record(&self, area: &AuxArea, chunk: Chunk, written: u64, flags: u64, guard: &NoPreempt) {
        let told = area.end(chunk, written);
        let record = Record {
            cpu: area.cpu(),
            position: chunk.position,
            size: written,
            lost: told.lost,
            flags: flags | flags_of(told, area),
        };
        self.probes.handle(&record, guard);
    }

    /// Keeps the areas of `channel` on the CPUs where no chunk of an earlier trace is open. `changing` is held.
    /// May sleep.
    fn keep(&self, channel: &Channel) {
        let mut retired = Retired::new();
        for cpu in cpu::possible() {
            let (Some(this), Some(area)) = (self.cpus.of(cpu), channel.area_to_keep(cpu)) else {
                continue;
            };
            let open = this.open.load_acquire();
            if open == 0 || open == address(&area) {
                this.kept.replace_later(Some(area), &mut retired);
            }
        }
    }

    /// Releases the kept areas in which no chunk is open. No new chunk can begin in a kept area. `changing` is
    /// held, or nobody else uses the source. May sleep.
    fn release(&self) {
        let mut retired = Retired::new();
        for this in cpu::possible().filter_map(|cpu| self.cpus.of(cpu)) {
            if this.open.load_acquire() == 0 {
                this.kept.replace_later(None, &mut retired);
            }
        }
    }

    /// Releases all areas: the source's module is unloaded, so no chunk is open. May sleep.
    pub(crate) fn end_all(&self) {
        let _changing = self.changing.lock();
        self.release();
    }
}

impl EventSource for Arc<AuxSource> {
    fn full_name(&self) -> FullName<'_> {
        self.description.full_name()
    }

    fn field(&self, place: usize) -> Option<Field<'_>> {
        self.description.field(place)
    }

    fn attach(&self, new: NewProbe<'_>, to: &mut AttachedProbes) -> Result {
        to.in_list(self.clone(), new)
    }

    /// The source needs an AUX area, and only one channel at a time can record it.
    fn is_explicit(&self) -> bool {
        true
    }

    fn is_again(&self, _old: &Self) -> bool {
        true
    }
}

impl ProbeList for AuxSource {
    /// `ENXIO`: the channel has no AUX areas; `EUSERS`: another channel records the source.
    fn attach(&self, new: NewProbe<'_>) -> Result {
        let Some(channel) = new.channel else {
            return self.probes.attach(new.probe);
        };
        if !channel.has_areas() {
            return Err(ENXIO);
        }
        let _changing = self.changing.lock();
        if self.owner.get_arc().is_some() {
            return Err(eusers());
        }
        self.release();
        self.probes.attach(new.probe)?;
        self.owner.replace(Some(channel.clone()));
        Ok(())
    }

    fn detach(&self, probe: &Probe, removed: &mut Removed) {
        let _changing = self.changing.lock();
        let owner = self.owner.get_arc();
        if let Some(owner) = owner.filter(|owner| probe.event_of(owner).is_some()) {
            // This comes first: a chunk that ends between the two steps then finds its area in the owner or in
            // `kept`.
            self.keep(&owner);
            // This waits until nobody begins or ends a chunk with the owner; later calls find no owner.
            self.owner.replace(None);
            // Chunks may have begun since the first call, on CPUs where a chunk of an earlier trace was open
            // then. Their areas are kept now.
            self.keep(&owner);
            self.release();
        }
        self.probes.detach(probe, removed);
    }
}

/// The number that identifies an area.
fn address(area: &AuxArea) -> u64 {
    core::ptr::from_ref(area).addr() as u64
}

fn flags_of(told: Told, area: &AuxArea) -> u64 {
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    flag(told.truncated, flags::TRUNCATED)
        | flag(told.collision, flags::COLLISION)
        | flag(area.overwrites(), flags::OVERWRITE)
}

/// The fields of the event, see [`FIELDS`].
struct Record {
    cpu: u32,
    position: u64,
    size: u64,
    lost: u64,
    flags: u64,
}

impl Tail for Record {
    fn len(&self) -> usize {
        size_of::<u32>() + 4 * size_of::<u64>()
    }

    fn write(&self, mut space: Space<'_>) {
        space.put(self.cpu);
        space.put(self.position);
        space.put(self.size);
        space.put(self.lost);
        space.put(self.flags);
    }
}
