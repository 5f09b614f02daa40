// SPDX-License-Identifier: GPL-2.0

//! A channel's settings and its `stats`.

use crate::channel::config::{Config, Refusal};
use crate::input::number;
use crate::ring::Mode;
use crate::session::Session;
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, Tree, READ, READ_WRITE};
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

pub(super) fn make(tree: &mut Tree, dir: Dir, session: Data<Arc<Session>>) -> Result {
    setting::<ModeSetting>(tree, dir, session)?;
    setting::<SubbufSize>(tree, dir, session)?;
    setting::<SubbufCount>(tree, dir, session)?;
    setting::<SwitchPeriod>(tree, dir, session)?;
    setting::<ReadPeriod>(tree, dir, session)?;
    tree.text::<Stats>(dir, "stats", READ, session)
}

/// Writes a line for each setting whose values in these two differ: file, value, default.
pub(super) fn write_differences(
    config: &Config,
    default: &Config,
    out: &mut Text,
) -> core::fmt::Result {
    difference::<ModeSetting>(config, default, out)?;
    difference::<SubbufSize>(config, default, out)?;
    difference::<SubbufCount>(config, default, out)?;
    difference::<SwitchPeriod>(config, default, out)?;
    difference::<ReadPeriod>(config, default, out)
}

fn difference<S: Setting>(config: &Config, default: &Config, out: &mut Text) -> core::fmt::Result {
    let (mut value, mut usual) = (Text::new(), Text::new());
    S::show(config, &mut value)?;
    S::show(default, &mut usual)?;
    if value.as_str() == usual.as_str() {
        return Ok(());
    }
    write!(
        out,
        "{} {} {}",
        S::FILE,
        value.as_str().trim(),
        usual.as_str()
    )
}

fn setting<S: Setting>(tree: &mut Tree, dir: Dir, session: Data<Arc<Session>>) -> Result {
    tree.text::<SettingFile<S>>(dir, S::FILE, READ_WRITE, session)
}

/// A setting that has a file.
trait Setting: 'static {
    const FILE: &'static str;
    fn show(config: &Config, out: &mut Text) -> core::fmt::Result;
    fn change(config: Config, input: &str) -> Result<Config, Refusal>;
}

struct SettingFile<S>(PhantomData<S>);

impl<S: Setting> TextFile for SettingFile<S> {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        S::show(&session.settings().config, out)?;
        Ok(())
    }

    fn store(session: &Arc<Session>, input: &str) -> Result {
        session.configure(S::FILE, |config| S::change(config, input.trim()))
    }
}

struct ModeSetting;

impl Setting for ModeSetting {
    const FILE: &'static str = "mode";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        out.write_str(match config.mode {
            Mode::Discard => "discard\n",
            Mode::Overwrite => "overwrite\n",
        })
    }

    fn change(config: Config, input: &str) -> Result<Config, Refusal> {
        let mode = match input {
            "discard" => Mode::Discard,
            "overwrite" => Mode::Overwrite,
            _ => return Err(Refusal("must be discard or overwrite")),
        };
        Ok(Config { mode, ..config })
    }
}

struct SubbufSize;

impl Setting for SubbufSize {
    const FILE: &'static str = "subbuf_size";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.subbuf_size)
    }

    fn change(config: Config, input: &str) -> Result<Config, Refusal> {
        let size = number::size(input)
            .and_then(|size| size.try_into().ok())
            .ok_or(Refusal("must be a number of bytes, or one with K, M or G"))?;
        config.with_subbuf_size(size)
    }
}

struct SubbufCount;

impl Setting for SubbufCount {
    const FILE: &'static str = "subbuf_count";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.subbuf_count)
    }

    fn change(config: Config, input: &str) -> Result<Config, Refusal> {
        let count = input.parse().map_err(|_| Refusal("must be a number"))?;
        config.with_subbuf_count(count)
    }
}

struct SwitchPeriod;

impl Setting for SwitchPeriod {
    const FILE: &'static str = "switch_period";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.switch_period_us)
    }

    fn change(config: Config, input: &str) -> Result<Config, Refusal> {
        config.with_switch_period(microseconds(input)?)
    }
}

struct ReadPeriod;

impl Setting for ReadPeriod {
    const FILE: &'static str = "read_period";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.read_period_us)
    }

    fn change(config: Config, input: &str) -> Result<Config, Refusal> {
        config.with_read_period(microseconds(input)?)
    }
}

fn microseconds(input: &str) -> Result<u32, Refusal> {
    input
        .parse()
        .map_err(|_| Refusal("must be a number of microseconds below 2^32"))
}

/// What the current trace, or the last one, has counted.
struct Stats;

impl TextFile for Stats {
    type Data = Arc<Session>;

    fn show(session: &Arc<Session>, out: &mut Text) -> Result {
        session.trace()?.write_stats(out)
    }
}
