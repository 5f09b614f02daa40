// SPDX-License-Identifier: GPL-2.0

//! All sessions.

use super::{EventFiles, Follower, Leaps, Session, SessionsShared};
use crate::abi::names::DEFAULT_SESSION;
use crate::event::Event;
use crate::sys::clock;
use crate::sys::rcu::RcuArc;
use crate::sys::work::Work;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Marks leaps of the clocks and executes requests of triggers, for the sessions that are stored in it.
pub(crate) type Worker = Work<RcuArc<Sessions>>;

/// Executes the requests of triggers, and the deferred work for modules. The drop ends that, and waits for
/// running work.
pub(crate) struct DeferredWork {
    _leaps: Pin<KBox<clock::ClockWatch<Arc<Leaps>>>>,
    worker: Arc<Worker>,
    follower: Arc<Follower>,
}

impl DeferredWork {
    /// Starts the work for these sessions. May sleep.
    pub(crate) fn new(sessions: &Arc<Sessions>) -> Result<Self> {
        let shared = &sessions.shared;
        let leaps = clock::ClockWatch::new(shared.leaps.clone())?;
        let (worker, follower) = (&shared.worker, &shared.follower);
        worker.data().replace(Some(sessions.clone()));
        follower.serve(Some(sessions.clone()));
        Ok(Self {
            _leaps: leaps,
            worker: worker.clone(),
            follower: follower.clone(),
        })
    }
}

impl Drop for DeferredWork {
    fn drop(&mut self) {
        self.worker.data().replace(None);
        self.worker.wait();
        self.follower.serve(None);
    }
}

/// Maximum number of sessions, the default one included.
const MAX_SESSIONS: usize = 256;

/// All sessions. The drop stops the sessions that have no other owner.
#[pin_data]
pub(crate) struct Sessions {
    pub(super) shared: Arc<SessionsShared>,
    /// The session that always exists.
    default: Arc<Session>,
    #[pin]
    others: Mutex<KVec<Arc<Session>>>,
}

impl Sessions {
    /// Creates the default session.
    pub(crate) fn new(shared: SessionsShared) -> Result<Arc<Self>> {
        let shared = Arc::new(shared, GFP_KERNEL)?;
        let default = Session::new(DEFAULT_SESSION, shared.clone())?;
        Arc::pin_init(
            pin_init!(Self {
                shared,
                default,
                others <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes the worker that acts for all sessions once they are [served](DeferredWork). May sleep.
    pub(crate) fn worker() -> Result<Arc<Worker>> {
        Work::new(RcuArc::new(), |place: &RcuArc<Self>| {
            if let Some(sessions) = place.get_arc() {
                sessions.act();
            }
        })
    }

    /// Marks leaps of the clocks, and executes the requests of all sessions' triggers. May sleep.
    fn act(&self) {
        self.mark_leaps();
        self.for_each(|session| session.act(self));
    }

    /// Calls `each` with each session, while the list is not locked. A session that is created or destroyed meanwhile
    /// may be missed. May sleep.
    pub(super) fn for_each(&self, mut each: impl FnMut(&Session)) {
        each(&self.default);
        // From the last session to the first: a session that is removed in between does not move those before it.
        let mut place = self.others.lock().len();
        while place > 0 {
            place -= 1;
            let session = self.others.lock().get(place).cloned();
            if let Some(session) = session {
                each(&session);
            }
        }
    }

    /// The session with this name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<Session>> {
        if name == DEFAULT_SESSION {
            return Some(self.default.clone());
        }
        let others = self.others.lock();
        let mut others = others.iter();
        others.find(|session| session.name() == name).cloned()
    }

    /// The default session.
    pub(crate) fn default(&self) -> &Arc<Session> {
        &self.default
    }

    /// Creates a session. Errors: `EEXIST` if the name is in use, `EINVAL` if it is not a valid name, `ENOSPC` if there
    /// are too many sessions. May sleep.
    pub(crate) fn create(&self, name: &str) -> Result<Arc<Session>> {
        if let Some(why) = crate::input::name::refusal(name) {
            return Err(self.default.refuse(fmt!("create_session: {why}")));
        }
        // Made, and after a failure dropped, while the list is not locked: both wait for the kernel's list of module
        // notifiers, whose lock a module's load holds while it waits for code that walks this list.
        let session = Session::new(name, self.shared.clone())?;
        let mut others = self.others.lock();
        if name == DEFAULT_SESSION || others.iter().any(|known| known.name() == name) {
            self.default
                .refuse(fmt!("create_session: session '{name}' exists already"));
            return Err(EEXIST);
        }
        if others.len() + 1 >= MAX_SESSIONS {
            self.default.refuse(fmt!(
                "create_session: there are {MAX_SESSIONS} sessions, which is the limit"
            ));
            return Err(ENOSPC);
        }
        others.push(session.clone(), GFP_KERNEL)?;
        Ok(session)
    }

    /// Stops a session, and removes it from the list. Errors: `ENOENT` if there is no session of this name,
    /// `EBUSY` if it is the default one. May sleep.
    pub(crate) fn destroy(&self, name: &str) -> Result<Arc<Session>> {
        if name == DEFAULT_SESSION {
            self.default.refuse(fmt!(
                "destroy_session: session '{name}' cannot be destroyed"
            ));
            return Err(EBUSY);
        }
        let mut others = self.others.lock();
        let at = others.iter().position(|session| session.name() == name);
        let session = at.and_then(|at| others.remove(at).ok());
        drop(others);
        let Some(session) = session else {
            self.default
                .refuse(fmt!("destroy_session: there is no session '{name}'"));
            return Err(ENOENT);
        };
        session.destroy();
        Ok(session)
    }

    /// Sets the creator of new events' files. With [`None`], no files are created from then on.
    pub(crate) fn set_files(&self, files: Option<Arc<dyn EventFiles>>) {
        self.shared.files.set(files);
    }

    /// Handles the deletion of an event. See [`Session::forget`]. May sleep.
    pub(super) fn forget(&self, event: &Event) {
        self.for_each(|session| session.forget(event));
    }

    /// Handles new events. See [`Session::events_came`]. May sleep.
    pub(crate) fn events_came(&self) {
        self.for_each(Session::events_came);
    }
}
