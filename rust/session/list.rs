// SPDX-License-Identifier: GPL-2.0

//! The sessions that there are.

use super::{Session, Shared};
use crate::abi::names::DEFAULT_SESSION;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// All sessions. Dropping it stops those that nobody else holds.
#[pin_data]
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    /// The one that is there from the beginning to the end.
    default: Arc<Session>,
    #[pin]
    others: Mutex<KVec<Arc<Session>>>,
}

impl Sessions {
    /// With the default session.
    pub(crate) fn new(shared: Shared) -> Result<Arc<Self>> {
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

    /// All but the default one.
    pub(super) fn others(&self) -> Result<KVec<Arc<Session>>> {
        let others = self.others.lock();
        let mut sessions = KVec::with_capacity(others.len(), GFP_KERNEL)?;
        for session in others.iter() {
            sessions.push(session.clone(), GFP_KERNEL)?;
        }
        Ok(sessions)
    }

    /// Events have come. See [`Session::events_came`]. May sleep.
    pub(crate) fn events_came(&self) {
        self.default.events_came();
        for session in self.others.lock().iter() {
            session.events_came();
        }
    }
}
