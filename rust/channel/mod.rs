// SPDX-License-Identifier: GPL-2.0

//! A channel: one buffer per CPU, and the code that makes packets of their records.
//!
//! A probe writes a record through its [`Route`], in any context. A [`stream`] and its [`reader`], in a thread,
//! give the packets to user space. Between them, the [`ring`](crate::ring) decides which side owns which bytes of
//! the [memory](crate::record::memory).

pub(crate) mod aux;
pub(crate) mod aux_reader;
pub(crate) mod aux_stats;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod cpus;
mod cursor;
pub(crate) mod dump;
pub(crate) mod entrance;
pub(crate) mod given;
pub(crate) mod platform;
pub(crate) mod reader;
pub(crate) mod region;
mod snapshot;
pub(crate) mod stats;
pub(crate) mod stopper;
mod stream;
mod wakeup;
pub(crate) mod watermark;
mod writer;

use crate::abi::header::Layout;
use crate::abi::packet::Uuid;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::{LocalWord, SharedWord};
use crate::record;
use crate::record::buffer::{NotMade, Shape};
use crate::record::clock::TraceClock;
use crate::record::gate::FilledOnce;
use crate::record::packet::Identity;
use crate::sys::cpu::{self, NoHotplug};
use crate::sys::hotplug;
use crate::sys::percpu::{OnceArc, PerCpu};
use crate::sys::timer::Timer;
use aux::AuxArea;
use clock::{ClockKind, TraceTime};
use config::Config;
use cpus::CpuSet;
use dump::{ListedBuffer, ListedTrace};
use entrance::Entrance;
use given::{GivenRecords, Giver};
use kernel::prelude::*;
use kernel::str::CString;
use kernel::sync::Arc;
use platform::{Barriers, Kernel, Location};
use region::Recorded;
use stopper::Stopper;
use stream::Stream;
use wakeup::StreamWakeup;
use watermark::Threshold;
use writer::Switch;

/// One CPU's buffer, as its writers see it.
pub(crate) type Buffer = record::buffer::Buffer<Kernel>;

/// The buffers of all CPUs, each behind its gate.
type Gates = record::gate::Gates<Kernel, Buffer>;

/// A shared reference to the gates of all CPUs, through which contexts enter.
pub(crate) type Ways = record::gate::Ways<Kernel, Buffer>;

/// The route of a probe: to the buffers, or to closed gates, which stop the probe.
pub(crate) type Route = record::gate::Route<Kernel, Buffer>;

/// A context that has entered the gate of its CPU's buffer, which accepts a record.
pub(crate) type Entry<'a> = record::buffer::Entry<'a, Kernel>;

/// A context that the gate of its CPU's buffer has stopped. The buffer may still accept a record.
pub(crate) type Stopped<'a> = record::buffer::Stopped<'a, Kernel>;

/// A record that is being written, in the common case.
pub(crate) type BegunOpen<'a> = record::buffer::BegunOpen<'a, Kernel>;

/// A record that is being written, in any case.
pub(crate) type Begun<'a> = record::buffer::Begun<'a, Kernel>;

/// The properties of a channel in a trace.
#[derive(Clone)]
pub(crate) struct Setup {
    /// Sizes, mode and periods.
    pub(crate) config: Config,
    /// The CPUs that are recorded; the others get no buffer.
    pub(crate) cpus: Arc<CpuSet>,
    /// The channel's name.
    pub(crate) name: Arc<CString>,
    /// The event header of all its records.
    pub(crate) layout: Layout,
    /// The clock of all its times.
    pub(crate) clock: ClockKind,
    /// The trace's time, which all its channels share.
    pub(crate) time: Arc<TraceTime>,
    /// The trace's identity, in each packet's header.
    pub(crate) uuid: Uuid,
    /// The channel's stream class in the trace.
    pub(crate) stream_id: u32,
    /// Counts finished packets, if a stop waits for a number of them.
    pub(crate) stopper: Arc<Stopper>,
    /// Reserved memory for the buffers; [`None`]: they are in allocated memory.
    pub(crate) region: Option<Arc<Recorded>>,
    /// The trace, for programs that read a dump.
    pub(crate) listed: Arc<ListedTrace>,
    /// Gives the records; [`None`]: probes write them.
    pub(crate) giver: Option<Arc<dyn Giver>>,
}

impl Setup {
    /// The side that pays for the order of memory, in the buffer of a CPU.
    fn barriers(&self, is_isolated: bool) -> Barriers {
        match self.giver {
            // A reader cannot know on which CPU the writer runs.
            Some(_) => Barriers::Delivery,
            None => self.config.barriers.on(is_isolated),
        }
    }
}

/// One buffer per CPU.
///
/// Lives from the start of a trace until the last reader has closed its stream.
pub(crate) struct Channel {
    /// The part of the channel that its probes share.
    entrance: Arc<Entrance>,
    /// The buffers. Each is stored before its CPU first comes up. Its gate is open while records are accepted.
    buffers: Gates,
    cpus: PerCpu<PerCpuState>,
    setup: Setup,
    /// Only if the records are given.
    given: Option<Pin<KBox<GivenRecords>>>,
    /// Non-zero once the CPUs that were online at the beginning have their buffers. From then on, a CPU that
    /// comes online may lack a buffer.
    complete: SharedWord,
}

/// A CPU's part of a channel, except its buffer.
struct PerCpuState {
    /// Stored together with the buffer.
    stream: OnceArc<Stream>,
    /// Stored together with the buffer.
    timers: OnceArc<Timers>,
    /// Stored before the buffer, if the channel has AUX areas.
    area: OnceArc<AuxArea>,
    /// Number of chunks for which this CPU had no area.
    no_area: LocalWord,
}

impl PerCpuState {
    fn new() -> Self {
        Self {
            stream: OnceArc::new(),
            timers: OnceArc::new(),
            area: OnceArc::new(),
            no_area: LocalWord::new(0),
        }
    }
}

/// The periodic work on a stream. Runs on the stream's CPU, or on another one if that CPU is isolated.
#[pin_data]
struct Timers {
    is_isolated: bool,
    #[pin]
    switch: Timer<Switch>,
    #[pin]
    read: Timer<Arc<Stream>>,
}

impl Timers {
    /// Starts the timers. Runs on the stream's CPU, which the caller keeps online.
    fn start(&self) {
        let start = |timers: &mut &Self| {
            timers.switch.start();
            timers.read.start();
        };
        if self.is_isolated {
            cpu::run_on_housekeeping(&mut &*self, start);
        } else {
            start(&mut &*self);
        }
    }

    /// Stops the timers. May sleep.
    fn cancel(&self) {
        self.switch.cancel();
        self.read.cancel();
    }
}

impl Channel {
    /// Creates a channel without buffers. A watch of [`sys::hotplug`](crate::sys::hotplug) then gives a buffer
    /// to each CPU that is online or comes up.
    pub(crate) fn new(setup: Setup) -> Result<Self> {
        let buffers = Gates::new().ok_or(ENOMEM)?;
        let entrance = Entrance::new(buffers.ways().clone(), &setup)?;
        let given = setup.giver.clone().map(GivenRecords::new).transpose()?;
        Ok(Self {
            entrance: Arc::new(entrance, GFP_KERNEL)?,
            buffers,
            cpus: PerCpu::new(PerCpuState::new)?,
            setup,
            given,
            complete: SharedWord::new(0),
        })
    }

    /// The setup that it was created with.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Starts to accept records. All CPUs must have their buffers. May sleep.
    pub(crate) fn start(&self) {
        // A CPU that comes online later reads `active`, and opens its own gate.
        let _cpus = NoHotplug::new();
        self.complete.store(1);
        if !self.is_given() {
            cpu::possible().for_each(|cpu| self.buffers.open(cpu));
        }
        // Set last: an event that fires before its CPU's gate opens is no loss, as it precedes the start.
        self.entrance.active.store(1);
    }

    /// Stops to accept new records. Some may still be being written. May sleep.
    pub(crate) fn stop(&self) {
        let _cpus = NoHotplug::new();
        self.close();
    }

    /// As [`stop`](Self::stop), but the gate of a CPU that comes online at this moment may stay open. Any
    /// context, NMI included.
    fn close(&self) {
        self.entrance.active.store(0);
        cpu::possible().for_each(|cpu| self.buffers.close(cpu));
    }

    /// Makes each context that enters a gate take the slow path, which adds the missed ticks. Any context.
    fn watch_gates(&self) {
        cpu::possible().for_each(|cpu| self.buffers.watch(cpu));
    }

    /// Whether records are accepted. While this is true, the gate of each recorded CPU that has a buffer is
    /// open. Any context.
    pub(crate) fn is_active(&self) -> bool {
        self.entrance.is_active()
    }

    /// Whether the current CPU is recorded. Any context.
    pub(crate) fn records_this_cpu(&self, guard: &NoPreempt) -> bool {
        self.entrance.records_this_cpu(guard)
    }

    /// The part of the channel that probes own.
    pub(crate) fn entrance(&self) -> &Arc<Entrance> {
        &self.entrance
    }

    /// The stream of `cpu`, if this CPU was ever online.
    fn stream(&self, cpu: u32) -> Option<&Stream> {
        self.cpus.of(cpu)?.stream.get()
    }

    /// Whether the channel has AUX areas.
    pub(crate) fn has_areas(&self) -> bool {
        self.setup.config.aux_size != 0
    }

    /// The AUX area of `cpu`. Any context, NMI included.
    pub(crate) fn area(&self, cpu: u32) -> Option<&AuxArea> {
        self.cpus.of(cpu)?.area.get()
    }

    /// A reference to the AUX area of `cpu`. The context must allow the freeing of memory.
    pub(crate) fn area_to_keep(&self, cpu: u32) -> Option<Arc<AuxArea>> {
        self.cpus.of(cpu)?.area.get_arc()
    }

    /// The AUX area of this CPU. Counts the call if the CPU is recorded and has no area. Any context, NMI included.
    pub(crate) fn area_here<'a>(&'a self, guard: &'a NoPreempt) -> Option<&'a AuxArea> {
        let this = self.cpus.this_cpu(guard);
        let area = this.area.get();
        if area.is_none() && self.records_this_cpu(guard) {
            this.no_area.increment();
        }
        area
    }

    /// Whether the trace is over, and readers have seen the end of each stream and closed it.
    pub(crate) fn is_read(&self) -> bool {
        let mut areas = cpu::possible().filter_map(|cpu| self.area(cpu));
        cpu::possible()
            .filter_map(|cpu| self.stream(cpu))
            .all(Stream::is_read)
            && areas.all(AuxArea::is_read)
    }

    fn no_buffer(&self, cpu: u32) -> u64 {
        self.entrance.no_buffer(cpu)
    }

    fn no_area(&self, cpu: u32) -> u64 {
        self.cpus.of(cpu).map_or(0, |cpu| cpu.no_area.load())
    }

    /// Closes the packet being written on `cpu`. Runs on that CPU, or on another one if `cpu` is isolated or
    /// offline. Does nothing after a stop, which closes the packet itself. May sleep.
    pub(crate) fn flush(&self, cpu: u32) -> Result {
        match self.stream(cpu) {
            Some(stream) if !stream.is_stopped() => writer::flush(self.buffers.ways(), stream),
            _ => Ok(()),
        }
    }

    /// Ends the trace: closes open packets, reports the last losses, and lets readers see the end. The caller has
    /// detached all probes and stopped all timers. May sleep.
    pub(crate) fn finish(&self) {
        for cpu in cpu::possible() {
            if let Some(stream) = self.stream(cpu) {
                self.flush_last(stream);
                stream.finish();
            }
            if let Some(area) = self.area(cpu) {
                area.finish();
            }
        }
    }

    /// Closes the last packet of a stream. Recording has ended.
    fn flush_last(&self, stream: &Stream) {
        if stream.ring().platform().is_isolated {
            writer::flush_here(stream);
        } else {
            // A reader may be asleep; the flush of an online CPU cannot fail.
            let _ = writer::flush(self.buffers.ways(), stream);
        }
    }

    /// Gives `cpu`, which need not be online, a buffer and its timers, if it is recorded and has none. The buffer
    /// takes records at once if the channel does. May sleep.
    ///
    /// If memory is short, a CPU that comes online while others record gets the smallest buffer, in allocated
    /// memory. Its stream then reports how many records did not fit.
    fn equip(&self, cpu: u32) -> Result {
        let Some(this) = self.cpus.of(cpu) else {
            return Ok(());
        };
        if this.timers.get().is_some() || !self.setup.cpus.has(cpu) {
            return Ok(());
        }
        // Read once, because a cpuset may change the value.
        let is_isolated = cpu::is_isolated(cpu);
        let area = self.make_area(cpu, is_isolated)?;
        let made = self.make(&self.setup, cpu, is_isolated);
        let (buffer, stream, timers) = match made {
            Err(ENOMEM) if self.complete.load() != 0 => {
                let config = self.setup.config.smallest();
                let made = self.make(
                    &Setup {
                        config,
                        region: None,
                        ..self.setup.clone()
                    },
                    cpu,
                    is_isolated,
                )?;
                pr_warn!("no memory for the buffer of CPU {cpu}: it gets the smallest one; a smaller subbuf_size helps\n");
                made
            }
            made => made?,
        };
        if let Some(area) = area {
            this.area.set(area);
        }
        this.stream.set(stream);
        this.timers.set(timers);
        if let Some(cell) = self.buffers.cell(cpu) {
            cell.set(buffer);
        }
        if self.setup.time.missed() != 0 {
            self.buffers.watch(cpu);
        }
        if self.is_active() && !self.is_given() {
            self.buffers.open(cpu);
        }
        Ok(())
    }

    /// Gives `cpu` its AUX area, if the channel has areas. A CPU that comes online later may lack one.
    fn make_area(&self, cpu: u32, is_isolated: bool) -> Result<Option<Arc<AuxArea>>> {
        if !self.has_areas() {
            return Ok(None);
        }
        match AuxArea::new(&self.setup, cpu, is_isolated) {
            Ok(area) => Ok(Some(area)),
            Err(error) if self.complete.load() == 0 => Err(error),
            Err(_) => {
                pr_warn!("no memory for the AUX area of CPU {cpu}: its chunks are lost; a smaller aux_size helps\n");
                Ok(None)
            }
        }
    }

    fn make(
        &self,
        setup: &Setup,
        cpu: u32,
        is_isolated: bool,
    ) -> Result<(Arc<Buffer>, Arc<Stream>, Arc<Timers>)> {
        let config = setup.config;
        // Given records are not written on the buffer's CPU, so it makes no difference that this one is isolated.
        let is_written_isolated = is_isolated && setup.giver.is_none();
        let wakeup = Arc::pin_init(
            StreamWakeup::new(
                Threshold::of(&config),
                setup.stopper.clone(),
                setup.barriers(is_isolated),
                is_written_isolated,
            ),
            GFP_KERNEL,
        )?;
        let made = Self::make_buffer(setup, cpu, is_written_isolated, wakeup.clone())?;
        let buffer = Arc::new(made, GFP_KERNEL)?;
        let stream = Arc::pin_init(Stream::new(buffer.clone(), wakeup, &config), GFP_KERNEL)?;
        let switch = Switch::new(self.buffers.ways(), &stream)?;
        let read = stream.clone();
        let timers = Arc::pin_init(
            pin_init!(Timers {
                is_isolated,
                switch <- Timer::new(switch, |switch, _| switch.tick(), config.switch_period_us),
                read <- Timer::new(read, |stream, _| stream.read_tick(), config.read_period_us),
            }),
            GFP_KERNEL,
        )?;
        Ok((buffer, stream, timers))
    }

    /// Creates the buffer of `cpu`, which need not be online, in memory near it. May sleep.
    fn make_buffer(
        setup: &Setup,
        cpu: u32,
        is_isolated: bool,
        wakeup: Arc<StreamWakeup>,
    ) -> Result<Buffer> {
        let config = setup.config;
        let listed = ListedBuffer::new(setup, cpu)?;
        let area = match &setup.region {
            Some(region) => Some(region.area(cpu)?),
            None => None,
        };
        let made = Buffer::new(
            Shape {
                mode: config.mode,
                subbuf_size: config.subbuf_size,
                subbuf_count: config.subbuf_count,
                origin: config.origin,
            },
            Identity {
                cpu,
                uuid: setup.uuid,
                stream_id: setup.stream_id,
            },
            match setup.giver {
                Some(_) => TraceClock::given(),
                None => setup.clock.reader(),
            },
            Kernel {
                cpu,
                is_isolated,
                is_given: setup.giver.is_some(),
                barriers: setup.barriers(is_isolated),
                location: KBox::new(
                    Location {
                        area,
                        listed,
                        time: setup.time.clone(),
                    },
                    GFP_KERNEL,
                )?,
            },
            wakeup,
        );
        made.map_err(|why| match why {
            NotMade::Shape => EINVAL,
            NotMade::Memory => ENOMEM,
        })
    }
}

impl hotplug::PerCpuState for Channel {
    fn prepare(&self, cpu: u32) {
        // If this fails, `online` tries again.
        let _ = self.equip(cpu);
    }

    fn online(&self, cpu: u32) -> Result {
        match self.equip(cpu) {
            Err(error) if self.complete.load() == 0 => return Err(error),
            // A lack of buffers is no reason to keep a CPU offline. Its records are counted.
            Err(_) => pr_warn!("no memory for the buffer of CPU {cpu}: its records are lost; a smaller subbuf_size helps\n"),
            Ok(()) => {}
        }
        if let Some(timers) = self.cpus.of(cpu).and_then(|this| this.timers.get()) {
            timers.start();
        }
        Ok(())
    }

    fn offline(&self, cpu: u32) {
        let Some(this) = self.cpus.of(cpu) else {
            return;
        };
        if let Some(timers) = this.timers.get() {
            timers.cancel();
        }
        if let Some(stream) = this.stream.get() {
            writer::flush_here(stream);
        }
    }
}
