// SPDX-License-Identifier: GPL-2.0

//! The probes of an event of programs whose channels take records from rings.

use super::shared::SharedRings;
use super::Rings;
use crate::arch::clock::tsc;
use crate::arch::word::SharedWord;
use crate::channel::Channel;
use crate::context::ThreadContexts;
use crate::probe::given::ROOM;
use crate::probe::Probe;
use crate::record::memory::Capture;
use crate::sys::args::Task;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Bits of the word of an event.
pub(crate) struct Word;

impl Word {
    /// A channel takes the event from rings.
    pub(crate) const RING: u32 = 1 << 0;
    /// Only write(2) gives all that is recorded.
    pub(crate) const WRITE: u32 = 1 << 1;
}

/// The part of an event that concerns rings.
#[pin_data]
pub(crate) struct EventRings {
    rings: Arc<Rings>,
    /// Number of probes.
    count: SharedWord,
    #[pin]
    state: Mutex<State>,
}

struct State {
    probes: KVec<RingProbe>,
    listeners: KVec<Listener>,
}

/// A probe whose channel takes records from rings.
struct RingProbe {
    probe: Arc<Probe>,
    channel: Arc<Channel>,
    /// Earlier records are those of an earlier probe.
    since: u64,
}

impl RingProbe {
    /// Whether only the thread that fires the event can make the record.
    fn needs_thread(&self) -> bool {
        !self.channel.setup().clock.is_readable_by_programs() || self.probe.needs_thread()
    }
}

/// A program that has the event.
struct Listener {
    program: Arc<SharedRings>,
    /// Index of the event there.
    index: usize,
}

impl EventRings {
    /// Makes it without probes and programs.
    pub(crate) fn new(rings: &Arc<Rings>) -> impl PinInit<Self> {
        let rings = rings.clone();
        pin_init!(Self {
            rings,
            count: SharedWord::new(0),
            state <- new_mutex!(State {
                probes: KVec::new(),
                listeners: KVec::new(),
            }),
        })
    }

    /// Whether a channel takes the event from rings.
    pub(crate) fn is_any(&self) -> bool {
        self.count.load() != 0
    }

    /// Adds a probe of a channel that takes records from rings. `others` says whether the event has other probes. May
    /// sleep.
    pub(crate) fn attach(&self, probe: Arc<Probe>, channel: &Arc<Channel>, others: bool) -> Result {
        let probe = RingProbe {
            probe,
            channel: channel.clone(),
            since: tsc(),
        };
        self.rings.listen(channel)?;
        let mut state = self.state.lock();
        if let Err(error) = state.probes.push(probe, GFP_KERNEL) {
            drop(state);
            self.rings.unlisten(channel);
            return Err(error.into());
        }
        self.count.store(state.probes.len() as u64);
        state.announce(others);
        Ok(())
    }

    /// Removes a probe, if it is one of these. No record reaches its channel any more. May sleep.
    pub(crate) fn detach(&self, probe: &Probe, others: bool) {
        let mut state = self.state.lock();
        let mut probes = state.probes.iter();
        let at = probes.position(|known| core::ptr::eq(&*known.probe, probe));
        let removed = at.and_then(|at| state.probes.remove(at).ok());
        self.count.store(state.probes.len() as u64);
        state.announce(others);
        drop(state);
        if let Some(RingProbe { channel, .. }) = removed {
            self.rings.unlisten(&channel);
        }
    }

    /// Announces changes of the probes to a program from now on. May sleep.
    pub(crate) fn add_listener(
        &self,
        program: &Arc<SharedRings>,
        index: usize,
        others: bool,
    ) -> Result {
        let mut state = self.state.lock();
        let listener = Listener {
            program: program.clone(),
            index,
        };
        state.listeners.push(listener, GFP_KERNEL)?;
        state.announce(others);
        Ok(())
    }

    /// Ends the announcements to a program. May sleep.
    pub(crate) fn remove_listener(&self, program: &Arc<SharedRings>) {
        let mut state = self.state.lock();
        state
            .listeners
            .retain(|known| !Arc::ptr_eq(&known.program, program));
    }

    /// Tells a program that is refused that nobody listens. May sleep.
    pub(super) fn refuse(&self, program: &Arc<SharedRings>) {
        let state = self.state.lock();
        let all = state.listeners.iter();
        for listener in all.filter(|known| Arc::ptr_eq(&known.program, program)) {
            program.announce(listener.index, 0);
        }
    }

    /// Announces a change of the other probes. May sleep.
    pub(crate) fn announce(&self, others: bool) {
        self.state.lock().announce(others);
    }

    /// Hands a record of a ring to the channels. `room` is for contexts and fields. The caller is the one that gives all
    /// records, in order of time. May sleep.
    pub(crate) fn give(
        &self,
        time: u64,
        thread: &ThreadContexts,
        fields: &[u8],
        room: &mut [u8; ROOM],
    ) {
        let state = self.state.lock();
        let mut is_announced_wrong = false;
        for known in &state.probes {
            let RingProbe { probe, channel, .. } = known;
            if time < known.since {
                continue;
            }
            if known.needs_thread() {
                // This has begun since the program read the word.
                channel.count_given_lost(thread.cpu, 1);
                is_announced_wrong = true;
                continue;
            }
            let len = probe.record_of(thread, fields, room);
            if let Some(record) = len.and_then(|len| room.get(..len)) {
                channel.give(thread.cpu, time, &probe.label, record);
            }
        }
        if is_announced_wrong {
            // The other probes, if there are any, have announced themselves.
            state.announce(true);
        }
    }

    /// Records the event that the current thread fires now by write(2). May sleep.
    pub(crate) fn record_now(&self, fields: &[u8]) {
        let state = self.state.lock();
        for RingProbe { probe, channel, .. } in &state.probes {
            let cpu = Task::current().cpu() as u32;
            let mut room = Capture::<ROOM>::new();
            if let Some(record) = probe.record_now(fields, &mut room) {
                channel.let_wait(cpu, &probe.label, record.fields());
            }
        }
    }

    /// Calls `each` with the channels.
    pub(crate) fn for_each_channel(&self, mut each: impl FnMut(&Arc<Channel>)) {
        let state = self.state.lock();
        state.probes.iter().for_each(|known| each(&known.channel));
    }
}

impl State {
    /// Stores the word in each program.
    fn announce(&self, others: bool) {
        let mut word = 0;
        if !self.probes.is_empty() {
            word |= Word::RING;
        }
        if others || self.probes.iter().any(RingProbe::needs_thread) {
            word |= Word::WRITE;
        }
        for Listener { program, index } in &self.listeners {
            program.announce(*index, word);
        }
    }
}
