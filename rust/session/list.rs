// SPDX-License-Identifier: GPL-2.0

//! The sessions that there are.

use super::{EventFiles, Follower, Leaps, Session, SessionsShared};
use crate::abi::names::DEFAULT_SESSION;
use crate::event::Event;
use crate::sys::clock;
use crate::sys::rcu::RcuArc;
use crate::sys::work::Work;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Marks leaps of the clocks, and does what triggers ask for, of the sessions that are put there.
pub(crate) type Worker = Work<RcuArc<Sessions>>;

/// Has done what triggers ask for, and what follows when modules come and go. Dropping it ends that, and waits
/// for what is being done.
pub(crate) struct DeferredWork {
    _leaps: Pin<KBox<clock::ClockWatch<Arc<Leaps>>>>,
    worker: Arc<Worker>,
    follower: Arc<Follower>,
}

impl DeferredWork {
    /// Begins, for these sessions. May sleep.
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

/// All sessions. Dropping it stops those that nobody else holds.
#[pin_data]
pub(crate) struct Sessions {
    pub(super) shared: Arc<SessionsShared>,
    /// The one that is there from the beginning to the end.
    default: Arc<Session>,
    #[pin]
    others: Mutex<KVec<Arc<Session>>>,
}

impl Sessions {
    /// With the default session.
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

    /// Marks leaps of the clocks, and does what triggers of any session ask for. May sleep.
    fn act(&self) {
        self.mark_leaps();
        self.default.act(self);
        // From the last one, without the lock: those that go meanwhile change no place before them.
        let mut place = self.others.lock().len();
        while place > 0 {
            place -= 1;
            let session = self.others.lock().get(place).cloned();
            if let Some(session) = session {
                session.act(self);
            }
        }
    }

    /// The session called so.
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

    /// Makes a session. `EEXIST`: there is one called so; `EINVAL`: that is no name. May sleep.
    pub(crate) fn create(&self, name: &str) -> Result<Arc<Session>> {
        if let Some(why) = crate::input::name::refusal(name) {
            return Err(self.default.refuse(fmt!("create_session: {why}")));
        }
        let mut others = self.others.lock();
        if name == DEFAULT_SESSION || others.iter().any(|session| session.name() == name) {
            self.default
                .refuse(fmt!("create_session: there is a session '{name}'"));
            return Err(EEXIST);
        }
        let session = Session::new(name, self.shared.clone())?;
        others.push(session.clone(), GFP_KERNEL)?;
        Ok(session)
    }

    /// Stops a session and takes it out. `ENOENT`: there is none called so; `EBUSY`: it is the
    /// default one. May sleep.
    pub(crate) fn destroy(&self, name: &str) -> Result<Arc<Session>> {
        if name == DEFAULT_SESSION {
            self.default
                .refuse(fmt!("destroy_session: '{name}' is always there"));
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

    /// Has the files of events that come made there; nowhere, from then on, if that is none.
    pub(crate) fn set_files(&self, files: Option<Arc<dyn EventFiles>>) {
        self.shared.files.set(files);
    }

    /// All but the default one.
    pub(super) fn others(&self) -> Result<KVec<Arc<Session>>> {
        let others = self.others.lock();
        let mut sessions = KVec::with_capacity(others.len(), GFP_KERNEL)?;
        for session in others.iter() {
            sessions.push(session.clone(), GFP_KERNEL)?;
        }
        Ok(sessions)
    }

    /// An event was deleted. See [`Session::forget`]. May sleep.
    pub(super) fn forget(&self, event: &Event) {
        self.default.forget(event);
        for session in self.others.lock().iter() {
            session.forget(event);
        }
    }

    /// Events have come. See [`Session::events_came`]. May sleep.
    pub(crate) fn events_came(&self) {
        self.default.events_came();
        for session in self.others.lock().iter() {
            session.events_came();
        }
    }
}
