// SPDX-License-Identifier: GPL-2.0

//! Stop of a recording, from any context.
//!
//! The stop of a session sleeps. So its effect comes first: the context that decides closes all gates at once,
//! and no record begins after that. Then it queues the session's part of the stop.

use super::Channel;
use crate::arch::preempt::NoPreempt;
use crate::arch::word::SharedWord;
use crate::sys::rcu::RcuArc;
use crate::sys::work::Ask;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Stops the channels of a session's recording.
pub(crate) struct Stopper {
    /// The channels that any context can stop; empty while no trace is recorded.
    channels: RcuArc<KVec<Arc<Channel>>>,
    /// Non-zero from a stop until the recording ends.
    stopped: SharedWord,
    /// Number of packets to finish before the stop; 0: packets are not counted.
    packets: SharedWord,
    /// Executes the rest of the stop.
    session: Arc<dyn Ask>,
}

impl Stopper {
    /// Of a session that does not record. `asked` must end a recording that [is stopped](Self::is_stopped).
    pub(crate) fn new(asked: Arc<dyn Ask>) -> Self {
        Self {
            channels: RcuArc::new(),
            stopped: SharedWord::new(0),
            packets: SharedWord::new(0),
            session: asked,
        }
    }

    /// Lets any context stop the recording of these channels from now on. May sleep.
    pub(crate) fn arm(&self, channels: &[Arc<Channel>]) -> Result {
        let mut armed = KVec::with_capacity(channels.len(), GFP_KERNEL)?;
        for channel in channels {
            armed.push(channel.clone(), GFP_KERNEL)?;
        }
        self.channels.replace(Some(Arc::new(armed, GFP_KERNEL)?));
        Ok(())
    }

    /// Handles the end of the recording. May sleep.
    pub(crate) fn end(&self) {
        // Contexts that are deciding on a stop have finished when this returns.
        self.channels.replace(None);
        self.packets.store(0);
        self.stopped.store(0);
    }

    /// Whether the recording was stopped from here, and the session's part is not done yet.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load() != 0
    }

    /// Whether there is a recording that can be stopped. Any context, NMI included.
    pub(crate) fn is_recording(&self, guard: &NoPreempt) -> bool {
        !self.is_stopped() && self.channels.get(guard).is_some()
    }

    /// Whether a stop waits for a number of packets. Any context, NMI included.
    pub(crate) fn is_counting(&self) -> bool {
        self.packets.load() != 0
    }

    /// Stops the recording: gates refuse each writer from now on. Any context, NMI included.
    pub(crate) fn stop(&self, guard: &NoPreempt) {
        if self.stopped.compare_exchange(0, 1) {
            self.close(guard);
            self.session.ask();
        }
    }

    /// Closes all gates, and notes the time of the stop.
    fn close(&self, guard: &NoPreempt) {
        let channels = || self.channels.get(guard).into_iter().flatten();
        for channel in channels() {
            channel.close();
        }
        for channel in channels() {
            channel.setup().time.stop();
        }
    }

    /// Closes the gates that a start opened after the [stop](Self::stop).
    pub(crate) fn close_if_stopped(&self) {
        if self.is_stopped() {
            self.close(&NoPreempt::new());
        }
    }

    /// Stops the recording as soon as `packets` more packets are finished, on any CPU and in any channel. Does
    /// nothing if a count is active already. Any context, NMI included.
    pub(crate) fn stop_after(&self, packets: u64) {
        self.packets.compare_exchange(0, packets);
    }

    /// Counts a finished packet. Any context, NMI included.
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
