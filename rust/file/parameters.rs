// SPDX-License-Identifier: GPL-2.0

//! Settings that are given as parameters of the module, to record from the moment when it is loaded.
//!
//! Each parameter is written to a file of the default session or of its first channel. White space ends a
//! parameter. So a list has commas between its items. Filters, which need the space, are separated by
//! semicolons, with quotes around all of them.

use super::control::Enable;
use crate::session::{Session, Sessions, Setting};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::parameter;
use crate::sys::privilege::Rights;
use kernel::prelude::*;

/// Applies the parameters, and starts the default session if they say so. Stops at the first one that is
/// refused; the kernel log has the reason. May sleep.
pub(crate) fn apply_parameters(sessions: &Sessions) -> Result {
    let session = sessions.default();
    for setting in Setting::all() {
        let store = |value: &str| setting.store_parameter(session, value);
        apply(session, setting.parameter(), store)?;
    }
    apply(session, "enable", |value| {
        Enable::store(session, value, Rights::ALL)
    })
}

/// If the parameter was given, calls `store` with its value.
fn apply(session: &Session, name: &str, store: impl FnOnce(&str) -> Result) -> Result {
    let Some(value) = parameter::given(name) else {
        return Ok(());
    };
    let stored = value.to_str().map_err(|_| EINVAL).and_then(store);
    stored.inspect_err(|error| {
        let why = Text::new(|why| Ok(session.write_error(why)?));
        let why = why.as_ref().map_or("", Text::as_str).trim();
        pr_err!("the parameter {name}={value:?} is refused ({error:?}): {why}\n");
    })
}
