// SPDX-License-Identifier: GPL-2.0

//! Settings that the module was given as parameters: to record from the moment that it is loaded.
//!
//! Each is written to a file of the default session, or of its first channel, as somebody would who had
//! the files already. White space ends a parameter, so where a file takes several words they have commas
//! between them, and filters, which need the space, have semicolons (and quotes around all).

use super::channel::{
    ChannelTarget, ContextsFile, CpusFile, MemoryFile, ModeSetting, SetEvent, SetFilter,
    SettingFile, SubbufCount, SubbufSize,
};
use super::control::{ClockFile, Enable};
use crate::session::{ChannelId, Session, Sessions};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::parameter;
use kernel::prelude::*;

/// Makes the settings that were given, and starts the default session if that was. The first that is
/// refused is an error; the kernel log says why. May sleep.
pub(crate) fn apply_parameters(sessions: &Sessions) -> Result {
    let session = sessions.default();
    let first = &ChannelTarget::new(session, ChannelId::FIRST);
    let parameters = Parameters(session);
    parameters.set::<ClockFile>("clock", session, parameter::clock(), None)?;
    parameters.set::<SettingFile<ModeSetting>>(
        "channel_mode",
        first,
        parameter::channel_mode(),
        None,
    )?;
    parameters.set::<SettingFile<SubbufSize>>(
        "subbuf_size",
        first,
        parameter::subbuf_size(),
        None,
    )?;
    parameters.set::<SettingFile<SubbufCount>>(
        "subbuf_count",
        first,
        parameter::subbuf_count(),
        None,
    )?;
    parameters.set::<MemoryFile>("memory", first, parameter::memory(), None)?;
    parameters.set::<CpusFile>("tracing_cpus", first, parameter::tracing_cpus(), None)?;
    parameters.set::<ContextsFile>("contexts", first, parameter::contexts(), Some(','))?;
    parameters.set::<SetEvent>("set_event", first, parameter::set_event(), Some(','))?;
    parameters.set::<SetFilter>("set_filter", first, parameter::set_filter(), Some(';'))?;
    parameters.set::<Enable>("enable", session, parameter::enable(), None)
}

/// Whose settings they are.
struct Parameters<'a>(&'a Session);

impl Parameters<'_> {
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
