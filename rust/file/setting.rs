// SPDX-License-Identifier: GPL-2.0

//! Files of settings: one file for each [`Setting`].

use super::channel::ChannelTarget;
use crate::session::Setting;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Group, READ_WRITE};
use crate::sys::privilege::Rights;
use kernel::prelude::*;

/// Creates the files of those `settings` whose path is `below` and a name.
pub(super) fn make(
    dir: &mut Group<'_>,
    below: &str,
    settings: impl Iterator<Item = &'static Setting>,
    target: &ChannelTarget,
) -> Result {
    for setting in settings {
        let name = setting.file.strip_prefix(below);
        if let Some(name) = name.filter(|name| !name.contains('/')) {
            let target = target.clone();
            let data = dir.data(TargetSetting { target, setting })?;
            dir.text::<SettingFile>(name, READ_WRITE, data)?;
        }
    }
    Ok(())
}

/// A setting of a channel, or of its session.
struct TargetSetting {
    target: ChannelTarget,
    setting: &'static Setting,
}

struct SettingFile;

impl TextFile for SettingFile {
    type Data = TargetSetting;

    fn ends_item(of: &TargetSetting) -> Option<fn(u8) -> bool> {
        of.setting.ends_item()
    }

    fn drop_item(of: &TargetSetting, item: &str) {
        of.target.session.refuse_unfinished(of.setting.file, item);
    }

    fn show(of: &TargetSetting, out: &mut Text) -> Result {
        let ChannelTarget { session, channel } = &of.target;
        of.setting.show(session, *channel, out)
    }

    fn store(of: &TargetSetting, input: &str, rights: Rights) -> Result {
        let ChannelTarget { session, channel } = &of.target;
        of.setting.store(session, *channel, input, rights, false)
    }

    fn replace(of: &TargetSetting, input: &str, rights: Rights) -> Result {
        let ChannelTarget { session, channel } = &of.target;
        of.setting.store(session, *channel, input, rights, true)
    }
}
