// SPDX-License-Identifier: GPL-2.0

//! The end of a recording that any context can decide on.
//!
//! A stop of a session sleeps. Here its effect comes first: all gates are closed at once, where the
//! decision is made, so that no record comes after; then the session is asked to do the rest.

use super::Channel;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::rcu::RcuArc;
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Stops the channels of a session's recording.
pub(crate) struct Stopper {
    /// What can be stopped from any context; nothing while nothing is recorded.
    channels: RcuArc<KVec<Arc<Channel>>>,
    /// Not 0 from a stop until the recording ends.
    stopped: SharedWord,
    /// So many packets more are to be finished before the stop; 0: nobody counts.
    packets: SharedWord,
    /// Does the rest.
    session: Arc<dyn Ask>,
}

impl Stopper {
    /// Of a session that does not record. What is `asked` shall end what
    /// [is stopped](Self::is_stopped).
    pub(crate) fn new(asked: Arc<dyn Ask>) -> Self {
        Self {
            channels: RcuArc::new(),
            stopped: SharedWord::new(0),
            packets: SharedWord::new(0),
            session: asked,
        }
    }

    /// From now on the recording of these channels can be stopped from any context. May sleep.
    pub(crate) fn arm(&self, channels: &[Arc<Channel>]) -> Result {
        let mut armed = KVec::with_capacity(channels.len(), GFP_KERNEL)?;
        for channel in channels {
            armed.push(channel.clone(), GFP_KERNEL)?;
        }
        self.channels.replace(Some(Arc::new(armed, GFP_KERNEL)?));
        Ok(())
    }

    /// The recording ends. May sleep.
    pub(crate) fn end(&self) {
        // Who decides on a stop has left before this returns.
        self.channels.replace(None);
        self.packets.store(0);
        self.stopped.store(0);
    }

    /// Whether the recording was stopped from here, and the rest is still to be done.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load() != 0
    }

    /// Whether there is a recording that can be stopped. Any context, NMI included.
    pub(crate) fn is_recording(&self, guard: &NoPreempt) -> bool {
        !self.is_stopped() && self.channels.get(guard).is_some()
    }

    /// Whether a stop comes after some packets. Any context, NMI included.
    pub(crate) fn is_counting(&self) -> bool {
        self.packets.load() != 0
    }

    /// Stops the recording: who comes to a gate after this is not let in. Any context, NMI included.
    pub(crate) fn stop(&self, guard: &NoPreempt) {
        if self.stopped.compare_exchange(0, 1) {
            self.close(guard);
            self.session.ask();
        }
    }

    /// Closes all gates.
    fn close(&self, guard: &NoPreempt) {
        for channel in self.channels.get(guard).into_iter().flatten() {
            channel.close();
        }
    }

    /// Closes the gates that a start opened after it [was stopped](Self::stop).
    pub(crate) fn close_if_stopped(&self) {
        if self.is_stopped() {
            self.close(&NoPreempt::new());
        }
    }

    /// Stops the recording when so many packets more are finished, on any CPU and in any channel;
    /// nothing to do if that is so already. Any context, NMI included.
    pub(crate) fn stop_after(&self, packets: u64) {
        self.packets.compare_exchange(0, packets);
    }

    /// A packet is finished. Any context, NMI included.
    pub(super) fn packet_ready(&self) {
        let mut left = self.packets.load();
        while left != 0 {
            if self.packets.compare_exchange(left, left.wrapping_sub(1)) {
                if left == 1 {
                    self.stop(&NoPreempt::new());
                }
                return;
            }
            left = self.packets.load();
        }
    }
}
