// SPDX-License-Identifier: GPL-2.0

//! A channel: its settings, the events that it records, its `stats` and its streams.

use super::{aux, recovered, stream};
use crate::channel::config::{Config, ConfigRefusal};
use crate::channel::cpus::CpuSet;
use crate::channel::watermark::Watermark;
use crate::input::number;
use crate::ring::Mode;
use crate::session::{ChannelId, Session};
use crate::sys::debugfs::text::{Text, TextFile};
use crate::sys::debugfs::{Data, Dir, READ, READ_WRITE};
use core::fmt::Write;
use core::marker::PhantomData;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A channel of a session: what most files are of.
#[derive(Clone)]
pub(super) struct ChannelTarget {
    pub(super) session: Arc<Session>,
    pub(super) channel: ChannelId,
}

impl ChannelTarget {
    /// That channel of `session`.
    pub(super) fn new(session: &Arc<Session>, channel: ChannelId) -> Self {
        Self {
            session: session.clone(),
            channel,
        }
    }
}

/// Makes the files of a channel's directory.
pub(super) fn make(dir: &mut Dir, target: ChannelTarget) -> Result {
    stream::make(dir, &target)?;
    let data = dir.data(target.clone())?;
    setting::<ModeSetting>(dir, data)?;
    setting::<SubbufSize>(dir, data)?;
    setting::<SubbufCount>(dir, data)?;
    setting::<SwitchPeriod>(dir, data)?;
    setting::<ReadPeriod>(dir, data)?;
    setting::<WatermarkSetting>(dir, data)?;
    setting::<AuxSize>(dir, data)?;
    aux::make(dir, &target, data)?;
    dir.text::<Stats>("stats", READ, data)?;
    dir.text::<SetFilter>("set_filter", READ_WRITE, data)?;
    dir.text::<ContextsFile>("contexts", READ_WRITE, data)?;
    dir.text::<CpusFile>("tracing_cpus", READ_WRITE, data)?;
    dir.text::<MemoryFile>("memory", READ_WRITE, data)?;
    recovered::make(dir, data)?;
    make_choice(dir, target)
}

/// Makes the file that chooses events.
pub(super) fn make_choice(dir: &mut Dir, target: ChannelTarget) -> Result {
    let data = dir.data(target)?;
    dir.text::<SetEvent>("set_event", READ_WRITE, data)
}

/// Writes a line for each setting that is not the default one: file (with `prefix` in front), value,
/// default.
pub(super) fn write_differences(prefix: &str, target: &ChannelTarget, out: &mut Text) -> Result {
    let ChannelTarget { session, channel } = target;
    if let Some((enabled, usual)) = session.differing_events(*channel)? {
        writeln!(out, "{prefix}set_event {enabled} {usual}")?;
    }
    let filters = session.filter_count(*channel)?;
    if filters != 0 {
        writeln!(out, "{prefix}set_filter {filters} 0")?;
    }
    let contexts = session.contexts(*channel)?.iter().count();
    if contexts != 0 {
        writeln!(out, "{prefix}contexts {contexts} 0")?;
    }
    let cpus = session.cpus(*channel)?;
    if !matches!(*cpus, CpuSet::All) {
        write!(out, "{prefix}tracing_cpus ")?;
        cpus.write(out)?;
        writeln!(out, " all")?;
    }
    if let Some(region) = session.region(*channel)? {
        writeln!(out, "{prefix}memory {} none", region.name())?;
    }
    let (config, default) = (session.config(*channel)?, session.default_config());
    difference::<ModeSetting>(prefix, &config, &default, out)?;
    difference::<SubbufSize>(prefix, &config, &default, out)?;
    difference::<SubbufCount>(prefix, &config, &default, out)?;
    difference::<SwitchPeriod>(prefix, &config, &default, out)?;
    difference::<ReadPeriod>(prefix, &config, &default, out)?;
    difference::<WatermarkSetting>(prefix, &config, &default, out)?;
    difference::<AuxSize>(prefix, &config, &default, out)?;
    Ok(())
}

fn difference<S: Setting>(
    prefix: &str,
    config: &Config,
    default: &Config,
    out: &mut Text,
) -> core::fmt::Result {
    let (mut value, mut usual) = (Text::new(), Text::new());
    S::show(config, &mut value)?;
    S::show(default, &mut usual)?;
    if value.as_str() == usual.as_str() {
        return Ok(());
    }
    write!(
        out,
        "{prefix}{} {} {}",
        S::FILE,
        value.as_str().trim(),
        usual.as_str()
    )
}

fn setting<S: Setting>(dir: &mut Dir, target: Data<ChannelTarget>) -> Result {
    dir.text::<SettingFile<S>>(S::FILE, READ_WRITE, target)
}

/// A setting that has a file.
pub(super) trait Setting: 'static {
    const FILE: &'static str;
    fn show(config: &Config, out: &mut Text) -> core::fmt::Result;
    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal>;
}

pub(super) struct SettingFile<S>(PhantomData<S>);

impl<S: Setting> TextFile for SettingFile<S> {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        S::show(&target.session.config(target.channel)?, out)?;
        Ok(())
    }

    fn store(target: &ChannelTarget, input: &str) -> Result {
        let change = |config| S::change(config, input.trim());
        target.session.configure(target.channel, S::FILE, change)
    }
}

pub(super) struct ModeSetting;

impl Setting for ModeSetting {
    const FILE: &'static str = "mode";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        out.write_str(match config.mode {
            Mode::Discard => "discard\n",
            Mode::Overwrite => "overwrite\n",
        })
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        let mode = match input {
            "discard" => Mode::Discard,
            "overwrite" => Mode::Overwrite,
            _ => return Err(ConfigRefusal("must be discard or overwrite")),
        };
        Ok(Config { mode, ..config })
    }
}

pub(super) struct SubbufSize;

impl Setting for SubbufSize {
    const FILE: &'static str = "subbuf_size";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.subbuf_size)
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        let size = number::size(input)
            .and_then(|size| size.try_into().ok())
            .ok_or(ConfigRefusal(
                "must be a number of bytes, or one with K, M or G",
            ))?;
        config.with_subbuf_size(size)
    }
}

pub(super) struct SubbufCount;

impl Setting for SubbufCount {
    const FILE: &'static str = "subbuf_count";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.subbuf_count)
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        let count = input
            .parse()
            .map_err(|_| ConfigRefusal("must be a number"))?;
        config.with_subbuf_count(count)
    }
}

struct SwitchPeriod;

impl Setting for SwitchPeriod {
    const FILE: &'static str = "switch_period";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.switch_period_us)
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        config.with_switch_period(microseconds(input)?)
    }
}

struct ReadPeriod;

impl Setting for ReadPeriod {
    const FILE: &'static str = "read_period";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.read_period_us)
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        config.with_read_period(microseconds(input)?)
    }
}

struct WatermarkSetting;

impl Setting for WatermarkSetting {
    const FILE: &'static str = "watermark";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.watermark)
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        let watermark = Watermark::parse(input)?;
        Ok(Config {
            watermark,
            ..config
        })
    }
}

struct AuxSize;

impl Setting for AuxSize {
    const FILE: &'static str = "aux_size";

    fn show(config: &Config, out: &mut Text) -> core::fmt::Result {
        writeln!(out, "{}", config.aux_size)
    }

    fn change(config: Config, input: &str) -> Result<Config, ConfigRefusal> {
        let size = number::size(input)
            .and_then(|size| size.try_into().ok())
            .ok_or(ConfigRefusal(
                "must be a number of bytes, or one with K, M or G",
            ))?;
        config.with_aux_size(size)
    }
}

fn microseconds(input: &str) -> Result<u32, ConfigRefusal> {
    input
        .parse()
        .map_err(|_| ConfigRefusal("must be a number of microseconds below 2^32"))
}

/// What the current trace, or the last one, has counted.
struct Stats;

impl TextFile for Stats {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        let trace = target.session.trace()?;
        trace.channel(target.channel)?.write_stats(out)
    }
}

/// The enabled events; patterns written to it enable and disable.
pub(super) struct SetEvent;

impl TextFile for SetEvent {
    type Data = ChannelTarget;
    const ENDS_ITEM: Option<fn(u8) -> bool> = Some(|byte| byte.is_ascii_whitespace());

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        target.session.for_each_enabled(target.channel, |event| {
            writeln!(out, "{}:{}", event.subsystem(), event.name())?;
            Ok(())
        })
    }

    fn store(target: &ChannelTarget, input: &str) -> Result {
        let ChannelTarget { session, channel } = target;
        session.set_by_patterns(*channel, input, false)
    }

    fn replace(target: &ChannelTarget, input: &str) -> Result {
        let ChannelTarget { session, channel } = target;
        session.set_by_patterns(*channel, input, true)
    }
}

/// The filters of events: `PATTERN EXPRESSION` sets one, `PATTERN 0` takes it away.
pub(super) struct SetFilter;

impl TextFile for SetFilter {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        target.session.write_filters(target.channel, out)
    }

    fn store(target: &ChannelTarget, input: &str) -> Result {
        let ChannelTarget { session, channel } = target;
        let (pattern, filter) = input
            .trim()
            .split_once(|c: char| c.is_ascii_whitespace())
            .ok_or_else(|| session.refuse(fmt!("set_filter: 'PATTERN EXPRESSION' is expected")))?;
        session.set_filter(*channel, "set_filter", pattern, filter)
    }

    /// As for ftrace's `filter` files, `>` takes nothing away but what is written over.
    fn replace(target: &ChannelTarget, input: &str) -> Result {
        if input.is_empty() {
            return target.session.clear_filters(target.channel);
        }
        Self::store(target, input)
    }
}

/// The contexts that are recorded beside each event.
pub(super) struct ContextsFile;

impl TextFile for ContextsFile {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        for context in target.session.contexts(target.channel)?.iter() {
            writeln!(out, "{}", context.name())?;
        }
        Ok(())
    }

    fn store(target: &ChannelTarget, input: &str) -> Result {
        let ChannelTarget { session, channel } = target;
        session.set_contexts(*channel, input, false)
    }

    fn replace(target: &ChannelTarget, input: &str) -> Result {
        let ChannelTarget { session, channel } = target;
        session.set_contexts(*channel, input, true)
    }
}

/// The CPUs that are recorded.
pub(super) struct CpusFile;

impl TextFile for CpusFile {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        target.session.cpus(target.channel)?.write(out)?;
        out.write_str("\n")?;
        Ok(())
    }

    fn store(target: &ChannelTarget, input: &str) -> Result {
        target.session.set_cpus(target.channel, input.trim())
    }
}

/// The reserved memory that the buffers are in.
pub(super) struct MemoryFile;

impl TextFile for MemoryFile {
    type Data = ChannelTarget;

    fn show(target: &ChannelTarget, out: &mut Text) -> Result {
        match target.session.region(target.channel)? {
            Some(region) => writeln!(out, "{}", region.name())?,
            None => out.write_str("none\n")?,
        }
        Ok(())
    }

    fn store(target: &ChannelTarget, input: &str) -> Result {
        target.session.set_region(target.channel, input.trim())
    }
}
