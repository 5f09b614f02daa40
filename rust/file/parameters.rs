// SPDX-License-Identifier: GPL-2.0

//! Settings that the module was given as parameters: to record from the moment that it is loaded.
//!
//! Each is written to a file of the default session, or of its first channel. White space ends a parameter. So a
//! parameter has commas between the items of a list. Filters need the space, and have semicolons (and quotes around all).

use super::control::Enable;
use crate::session::{Session, Sessions, Setting};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::parameter;
use kernel::prelude::*;

/// Applies the parameters, and starts the default session if they say so. Stops at the first one that is
/// refused; the kernel log has the reason. May sleep.
pub(crate) fn apply_parameters(sessions: &Sessions) -> Result {
    let session = sessions.default();
    for setting in Setting::all() {
        let store = |value: &str| setting.store_parameter(session, value);
        apply(session, setting.parameter(), store)?;
    }
    apply(session, "enable", |value| Enable::store(session, value))
}

/// Has `store` take the value of a parameter, if it was given.
fn apply(session: &Session, name: &str, store: impl FnOnce(&str) -> Result) -> Result {
    let Some(value) = parameter::given(name) else {
        return Ok(());
    };
    let stored = value.to_str().map_err(|_| EINVAL).and_then(store);
    stored.inspect_err(|error| {
        let mut why = Text::new();
        let _ = session.write_error(&mut why);
        pr_err!(
            "the parameter {name}={value:?} is refused ({error:?}): {}\n",
            why.as_str().trim()
        );
    })
}
