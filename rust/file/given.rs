// SPDX-License-Identifier: GPL-2.0

//! Settings that the module was given as parameters: to record from the moment that it is loaded.
//!
//! Each is written to a file of the default session, or of its first channel, as somebody would who had
//! the files already. White space ends a parameter, so where a file takes several words they have commas
//! between them, and filters, which need the space, have semicolons (and quotes around all).

use super::channel::{
    Contexts, Cpus, Memory, ModeSetting, SetEvent, SetFilter, SettingFile, SubbufCount, SubbufSize,
    Target,
};
use super::control::{Clock, Enable};
use crate::session::{ChannelId, Session, Sessions};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::parameter;
use kernel::prelude::*;

/// Makes the settings that were given, and starts the default session if that was. The first that is
/// refused is an error; the kernel log says why. May sleep.
pub(crate) fn apply_parameters(sessions: &Sessions) -> Result {
    let session = sessions.default();
    let first = &Target::new(session, ChannelId::FIRST);
    let given = Given(session);
    given.set::<Clock>("clock", session, parameter::clock(), None)?;
    given.set::<SettingFile<ModeSetting>>(
        "channel_mode",
        first,
        parameter::channel_mode(),
        None,
    )?;
    given.set::<SettingFile<SubbufSize>>("subbuf_size", first, parameter::subbuf_size(), None)?;
    given.set::<SettingFile<SubbufCount>>(
        "subbuf_count",
        first,
        parameter::subbuf_count(),
        None,
    )?;
    given.set::<Memory>("memory", first, parameter::memory(), None)?;
    given.set::<Cpus>("tracing_cpus", first, parameter::tracing_cpus(), None)?;
    given.set::<Contexts>("contexts", first, parameter::contexts(), Some(','))?;
    given.set::<SetEvent>("set_event", first, parameter::set_event(), Some(','))?;
    given.set::<SetFilter>("set_filter", first, parameter::set_filter(), Some(';'))?;
    given.set::<Enable>("enable", session, parameter::enable(), None)
}

/// Whose settings they are.
struct Given<'a>(&'a Session);

impl Given<'_> {
    /// Writes the parameter called `name` to the file `F` of `data`, if it was given: one by one, if it is
    /// a list with this separator.
    fn set<F: TextFile>(
        &self,
        name: &str,
        data: &F::Data,
        value: Option<&CStr>,
        separator: Option<char>,
    ) -> Result {
        let Some(value) = value else {
            return Ok(());
        };
        let text = value.to_str().map_err(|_| EINVAL);
        let set = text.and_then(|text| match separator {
            Some(separator) => {
                let mut items = text.split(separator);
                items.try_for_each(|item| F::store(data, item))
            }
            None => F::store(data, text),
        });
        set.inspect_err(|error| {
            let mut why = Text::new();
            let _ = self.0.write_error(&mut why);
            pr_err!(
                "the parameter {name}={value:?} is refused ({error:?}): {}\n",
                why.as_str().trim()
            );
        })
    }
}
