// SPDX-License-Identifier: GPL-2.0

//! What follows when modules with tracepoints come and go.
//!
//! Who is attached to a tracepoint is called from when its module comes to when it goes, without anything being done
//! here. The rest takes locks that must not be taken where the kernel tells of modules; so it is done in a
//! thread: events have files while they are there; and who had chosen one when perf would have handed it over, and
//! records, records it by its probe.
//!
//! Locks, from the outside: `tracepoint_module_list_mutex` > what is waited for here, a second at most. In the
//! thread: that of the files' place, and in it those of files and the registry; then `control` of one session after
//! the other. Nobody waits for the kernel's lock with one of these held but for `event_mutex` in between, which
//! is what the second is for.

use super::{EventFiles, Sessions, SessionsShared};
use crate::arch::word::SharedWord;
use crate::event::awaited::{Change, FollowModules, ModuleProbes};
use crate::sys::foreign::ForeignModule;
use crate::sys::rcu::RcuArc;
use crate::sys::wait::WaitQueue;
use crate::sys::work::{Ask, Work};
use kernel::prelude::*;
use kernel::sync::Arc;

/// So many milliseconds a module's coming or going waits for what follows.
const PATIENCE: u32 = 1000;

/// Does what follows.
pub(crate) struct Follower {
    work: Arc<Work<Runs>>,
    runs: Runs,
}

/// What is done, for whom.
#[derive(Clone)]
struct Runs(Arc<State>);

#[pin_data]
struct State {
    sessions: RcuArc<Sessions>,
    /// How often it was asked for.
    asked: SharedWord,
    /// What this was when the last run that has ended began.
    done: SharedWord,
    #[pin]
    waiters: WaitQueue,
}

impl Follower {
    /// For no sessions yet. May sleep.
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

    /// For these sessions from now on; for none: when this returns, nothing is being done. May sleep.
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
    /// Takes probes for tracepoints of modules. Returns how many there are. May sleep.
    pub(crate) fn add_probes(
        &self,
        owner: ForeignModule,
        probes: KBox<dyn ModuleProbes>,
    ) -> Result<usize> {
        let follower = self.shared.follower.clone();
        self.shared.awaited.add(owner, probes, follower)
    }

    /// Gives a module's back; none of their events is recorded. May sleep.
    pub(crate) fn remove_probes(&self, owner: ForeignModule) {
        self.shared.awaited.remove(owner, |event| {
            let files = self.shared.files.lock();
            self.shared.withdraw(event, files.as_deref());
        });
    }

    /// Modules have come or gone.
    fn follow_modules(&self) {
        let files = self.shared.files.lock();
        if let Some(files) = files.as_deref() {
            self.shared.show(files);
        }
        drop(files);
        if self.shared.awaited.take_new() {
            self.events_came();
        }
    }
}

impl SessionsShared {
    /// Makes the files of events that have come, and removes those of events that went.
    fn show(&self, files: &dyn EventFiles) {
        while let Some((event, change)) = self.awaited.next_change() {
            // Also those of one that it has taken the place of.
            files.remove(&event);
            if change == Change::Came && files.add(&event).is_err() {
                let (subsystem, name) = (event.subsystem(), event.name());
                pr_warn!("no memory for the files of {subsystem}:{name}\n");
            }
        }
    }
}
