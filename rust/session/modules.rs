// SPDX-License-Identifier: GPL-2.0

//! Deferred work for modules that define tracepoints.
//!
//! Probes start and stop firing together with the module; nothing here is needed for that. Two things remain,
//! and both take locks that the kernel's module notifier must not take, so a kernel thread does them:
//! - create or remove the files of the module's events;
//! - move sessions that record such an event through perf to its own probe.
//!
//! Lock order, outermost first:
//! - notifier: `tracepoint_module_list_mutex`, then wait for the thread, at most one second;
//! - thread: `control`, one session at a time; this released, the locks of files and registry.
//!
//! With `control` held, the thread may block on `event_mutex`, whose holder may be waiting for the notifier. With the
//! files' locks held, it may wait for a reader of a directory, who can take for ever. The one-second limit breaks this
//! cycle.

use super::choice::perf::show;
use super::{Sessions, SessionsShared};
use crate::arch::word::SharedWord;
use crate::event::awaited::{FollowModules, ModuleProbes};
use crate::sys::foreign::ForeignModule;
use crate::sys::rcu::RcuArc;
use crate::sys::wait::WaitQueue;
use crate::sys::work::{Ask, Work};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Time in milliseconds that the notifier waits for the thread.
const PATIENCE: u32 = 1000;

/// Executes the deferred work.
pub(crate) struct Follower {
    work: Arc<Work<Runs>>,
    runs: Runs,
}

/// The work, for some sessions.
#[derive(Clone)]
struct Runs(Arc<State>);

#[pin_data]
struct State {
    sessions: RcuArc<Sessions>,
    /// Number of requests.
    asked: SharedWord,
    /// Value of `asked` when the last finished run began.
    done: SharedWord,
    #[pin]
    waiters: WaitQueue,
}

impl Follower {
    /// Without sessions. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let state = pin_init!(State {
            sessions: RcuArc::new(),
            asked: SharedWord::new(0),
            done: SharedWord::new(0),
            waiters <- WaitQueue::new(),
        });
        let runs = Runs(Arc::pin_init(state, GFP_KERNEL)?);
        let work = Work::new(runs.clone(), Runs::run)?;
        Ok(Arc::new(Self { work, runs }, GFP_KERNEL)?)
    }

    /// Works for these sessions from now on. With [`None`], no work runs when this returns. May sleep.
    pub(super) fn serve(&self, sessions: Option<Arc<Sessions>>) {
        let ends = sessions.is_none();
        self.runs.0.sessions.replace(sessions);
        if ends {
            self.work.wait();
        }
    }
}

impl Runs {
    fn run(&self) {
        let State {
            sessions,
            asked,
            done,
            waiters,
        } = &*self.0;
        let asked = asked.load_acquire();
        if let Some(sessions) = sessions.get_arc() {
            sessions.follow_modules();
        }
        done.store_release(asked);
        waiters.wake_all();
    }
}

impl FollowModules for Follower {
    fn follow(&self) {
        let State {
            asked,
            done,
            waiters,
            ..
        } = &*self.runs.0;
        asked.increment();
        let wanted = asked.load();
        self.work.ask();
        waiters.wait_at_most(PATIENCE, || done.load_acquire() >= wanted);
    }
}

impl Sessions {
    /// Adds the probes of a module for tracepoints of modules. Returns their number. May sleep.
    pub(crate) fn add_probes(
        &self,
        owner: ForeignModule,
        probes: KBox<dyn ModuleProbes>,
    ) -> Result<usize> {
        let follower = self.shared.follower.clone();
        self.shared.awaited.add(owner, probes, follower)
    }

    /// Removes the probes of a module, none of whose events is recorded. May sleep.
    pub(crate) fn remove_probes(&self, owner: ForeignModule) {
        let shared = &self.shared;
        shared.awaited.remove(owner, |event| shared.withdraw(event));
    }

    /// Handles the loading and unloading of modules, and other changes of the events that are present.
    fn follow_modules(&self) {
        if self.shared.awaited.take_new() {
            self.events_came();
        }
        self.shared.show();
    }
}

impl SessionsShared {
    /// Creates the files of new events, and removes those of events that are gone.
    fn show(&self) {
        let Some(files) = self.files.get_arc() else {
            return;
        };
        while let Some(event) = self.awaited.next_change() {
            show(&*files, &event);
        }
        self.follow_perf_events(&*files);
    }
}
