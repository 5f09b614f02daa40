// SPDX-License-Identifier: GPL-2.0

//! The settings of a session, and of each of its channels. A new setting is an entry here. Module parameters
//! are also declared in `parameter.c`. `Documentation/abi-session.md` and `abi-channel.md` describe all settings.

use super::setting::Changes::{Always, Stopped};
use super::setting::SettingValue::{Config, List, Name, Number};
use super::setting::{Changes, ListDifference, Setting};
use super::standing::StandingPatterns;
use crate::abi::names::FIRST_CHANNEL;
use crate::channel::clock::ClockKind;
use crate::channel::config::{self, ConfigRefusal, RecordSource};
use crate::channel::platform::BarrierPolicy;
use crate::channel::watermark::Watermark;
use crate::input::number;
use crate::ring::Mode;
use crate::session::{Filters, FunctionChoice, Selection, Session, TaskChoice};
use crate::source::latency::timer::TimerLatency;
use crate::source::sampled::Frequency;
use core::fmt::Write;
use kernel::prelude::*;

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1000;

/// The setting for the set of tasks `$choice`.
macro_rules! tasks {
    ($file:literal, $choice:expr) => {
        Setting {
            file: $file,
            changes: Always,
            value: List {
                ends_item: WORD,
                separator: ',',
                show: |session, _, out| session.write_tasks($choice, out),
                change: |session, _, ids, _, replace| {
                    session.choose_tasks($choice, $file, ids, replace)
                },
                clear: |session, _| session.clear_tasks($choice),
                difference: |session, _| none_by_default(session.task_count($choice)),
            },
        }
    };
}

/// The setting for the set of functions `$choice`.
macro_rules! functions {
    ($file:literal, $choice:expr) => {
        Setting {
            file: $file,
            changes: Always,
            value: List {
                ends_item: WORD,
                separator: ',',
                show: |session, _, out| session.write_functions($choice, out),
                change: |session, _, words, _, replace| {
                    session.choose_functions($choice, $file, words, replace)
                },
                clear: |session, _| session.clear_functions($choice),
                difference: |session, _| none_by_default(session.function_count($choice)),
            },
        }
    };
}

/// The threshold of a latency in microseconds. `$latency` is the field of the session's sources.
macro_rules! threshold {
    ($file:literal, $latency:ident) => {
        number(
            $file,
            |session| session.sources.$latency.results().threshold() / MICROSECOND,
            |session, us| {
                let results = session.sources.$latency.results();
                results.set_threshold(us * MICROSECOND);
                Ok(())
            },
            u64::MAX / MICROSECOND,
            "not a number of microseconds",
        )
    };
}

/// A field of the channel's configuration whose value is shown without conversion.
macro_rules! part {
    ($file:literal, $field:ident, $set:expr) => {
        Setting {
            file: $file,
            changes: Stopped,
            value: Config {
                get: |config, out| write!(out, "{}", config.$field),
                set: $set,
            },
        }
    };
}

/// A field of the channel's configuration whose values have names.
macro_rules! choice {
    ($file:literal, $field:ident, [$($name:literal => $($value:ident)::+),* $(,)?], $refusal:literal) => {
        Setting {
            file: $file,
            changes: Stopped,
            value: Config {
                get: |config, out| {
                    out.write_str(match config.$field {
                        $($($value)::+ => $name,)*
                    })
                },
                set: |config, text| {
                    let $field = match text {
                        $($name => $($value)::+,)*
                        _ => return Err(ConfigRefusal($refusal)),
                    };
                    Ok(config::Config { $field, ..config })
                },
            },
        }
    };
}

/// Settings of a session.
pub(in crate::session) static SESSION: &[Setting] = &[
    Setting {
        file: "clock",
        changes: Stopped,
        value: Name {
            among: &ClockKind::NAMES,
            get: |session, _, out| Ok(out.write_str(session.clock().name())?),
            set: |session, _, name| session.set_clock(name),
            default: || ClockKind::best().name(),
        },
    },
    Setting {
        file: "sample_freq",
        changes: Stopped,
        value: Number {
            get: |session| session.sample_frequency().hertz().into(),
            set: |session, hertz| {
                let frequency = Frequency::new(hertz as u32).ok_or(EINVAL)?;
                session.state.lock().settings.sample_frequency = frequency;
                Ok(())
            },
            default: Frequency::DEFAULT.hertz() as u64,
            range: 1..=Frequency::MAX as u64,
            otherwise: "",
        },
    },
    tasks!("set_event_pid", TaskChoice::Only),
    tasks!("set_event_notrace_pid", TaskChoice::Not),
    Setting {
        file: "set_event_cgroup",
        changes: Always,
        value: List {
            ends_item: LINE,
            separator: ';',
            show: |session, _, out| session.write_cgroups(out),
            change: |session, _, paths, _, replace| session.choose_cgroups(paths, replace),
            clear: |session, _| session.clear_cgroups(),
            difference: |session, _| none_by_default(session.cgroup_count()),
        },
    },
    number(
        "event_fork",
        |session| session.follows_tasks().into(),
        |session, follow| session.follow_tasks(follow != 0),
        1,
        "neither 0 nor 1",
    ),
    functions!("set_ftrace_filter", FunctionChoice::Only),
    functions!("set_ftrace_notrace", FunctionChoice::Not),
    number(
        "max_graph_depth",
        |session| session.sources.functions.max_depth(),
        |session, depth| {
            session.sources.functions.set_max_depth(depth as u32);
            Ok(())
        },
        u32::MAX as u64,
        "not a number of calls",
    ),
    threshold!("latency/wakeup/thresh", wakeups),
    threshold!("latency/preempt/thresh", preemptions),
    threshold!("latency/timer/thresh", timers),
    number(
        "latency/preempt/lazy",
        |session| session.sources.preemptions.choice().counts_lazy().into(),
        |session, count| {
            let choice = session.sources.preemptions.choice();
            choice.count_lazy(count != 0);
            Ok(())
        },
        1,
        "neither 0 nor 1",
    ),
    Setting {
        file: "latency/timer/period",
        changes: Always,
        value: Number {
            get: |session| session.sources.timers.period().into(),
            set: |session, us| {
                session.sources.timers.set_period(us as u32);
                Ok(())
            },
            default: TimerLatency::PERIOD as u64,
            range: TimerLatency::PERIODS.0 as u64..=TimerLatency::PERIODS.1 as u64,
            otherwise: "",
        },
    },
    Setting {
        file: "marker_channel",
        changes: Stopped,
        value: Name {
            among: &[],
            get: |session, _, out| {
                match session.marker_channel() {
                    Some(channel) => out.write_str(session.channel_name(channel)?.to_str()?)?,
                    None => out.write_str("none")?,
                }
                Ok(())
            },
            set: |session, _, name| session.set_marker_channel(name),
            default: || FIRST_CHANNEL,
        },
    },
    Setting {
        file: "set_trigger",
        changes: Always,
        value: List {
            ends_item: None,
            separator: ';',
            show: |session, _, out| session.write_triggers(out),
            // As with ftrace's files, a write with `>` removes the triggers only if the text is empty.
            change: |session, _, text, rights, replace| {
                if replace && text.is_empty() {
                    return session.remove_triggers();
                }
                let (pattern, trigger) = two_words(text).ok_or_else(|| {
                    session.refuse(fmt!("set_trigger: 'PATTERN TRIGGER' is expected"))
                })?;
                session.set_trigger("set_trigger", pattern, trigger, rights)
            },
            clear: |session, _| session.clear_triggers(),
            difference: |session, _| none_by_default(session.trigger_count()),
        },
    },
    Setting {
        file: "set_map",
        changes: Always,
        value: List {
            ends_item: LINE,
            separator: ';',
            show: |session, _, out| session.write_map_lines(out),
            change: |session, _, lines, rights, replace| {
                if replace {
                    session.remove_maps()?;
                }
                session.set_maps(lines, rights)
            },
            clear: |session, _| session.clear_maps(),
            difference: |session, _| none_by_default(session.map_count()),
        },
    },
];

/// Settings of a channel.
pub(in crate::session) static CHANNEL: &[Setting] = &[
    Setting {
        file: "set_event",
        changes: Always,
        value: List {
            ends_item: WORD,
            separator: ',',
            show: |session, channel, out| {
                session.for_each_enabled(channel, |word| Ok(writeln!(out, "{word}")?))
            },
            change: |session, channel, patterns, rights, replace| {
                session.set_by_patterns(channel, patterns, rights, replace)
            },
            clear: |session, channel| {
                let mut state = session.state.lock();
                let channel = state.settings.channel_mut(channel)?;
                (channel.selection, channel.standing) = (Selection::NONE, StandingPatterns::NONE);
                Ok(())
            },
            difference: |session, channel| session.differing_events(channel),
        },
    },
    Setting {
        file: "set_filter",
        changes: Always,
        value: List {
            ends_item: None,
            separator: ';',
            show: |session, channel, out| session.write_filters(channel, out),
            // As with `set_trigger`.
            change: |session, channel, text, rights, replace| {
                if replace && text.is_empty() {
                    return session.clear_filters(channel);
                }
                let (pattern, filter) = two_words(text).ok_or_else(|| {
                    session.refuse(fmt!("set_filter: 'PATTERN EXPRESSION' is expected"))
                })?;
                session.set_filter(channel, "set_filter", pattern, filter, rights)
            },
            clear: |session, channel| {
                let mut state = session.state.lock();
                state.settings.channel_mut(channel)?.filters = Filters::NONE;
                Ok(())
            },
            difference: |session, channel| none_by_default(session.filter_count(channel)?),
        },
    },
    Setting {
        file: "contexts",
        changes: Stopped,
        value: List {
            ends_item: None,
            separator: ',',
            show: |session, channel, out| {
                for context in session.contexts(channel)?.iter() {
                    writeln!(out, "{}", context.name())?;
                }
                Ok(())
            },
            change: |session, channel, names, _, replace| {
                session.set_contexts(channel, names, replace)
            },
            clear: |session, channel| session.set_contexts(channel, "", true),
            difference: |session, channel| {
                none_by_default(session.contexts(channel)?.iter().count())
            },
        },
    },
    Setting {
        file: "tracing_cpus",
        changes: Stopped,
        value: Name {
            among: &[],
            get: |session, channel, out| Ok(session.cpus(channel)?.write(out)?),
            set: Session::set_cpus,
            default: || "all",
        },
    },
    Setting {
        file: "memory",
        changes: Stopped,
        value: Name {
            among: &[],
            get: |session, channel, out| {
                let region = session.region(channel)?;
                let name = region.as_ref().map_or("none", |region| region.name());
                Ok(out.write_str(name)?)
            },
            set: Session::set_region,
            default: || "none",
        },
    },
    choice!(
        "mode",
        mode,
        ["discard" => Mode::Discard, "overwrite" => Mode::Overwrite],
        "must be discard or overwrite"
    ),
    part!("subbuf_size", subbuf_size, |config, text| {
        config.with_subbuf_size(bytes(text)?)
    }),
    part!("subbuf_count", subbuf_count, |config, text| {
        let count = text
            .parse()
            .map_err(|_| ConfigRefusal("must be a number"))?;
        config.with_subbuf_count(count)
    }),
    part!("switch_period", switch_period_us, |config, text| {
        config.with_switch_period(microseconds(text)?)
    }),
    part!("read_period", read_period_us, |config, text| {
        config.with_read_period(microseconds(text)?)
    }),
    part!("watermark", watermark, |config, text| {
        let watermark = Watermark::parse(text)?;
        Ok(config::Config {
            watermark,
            ..config
        })
    }),
    choice!(
        "snapshot_memory",
        keeps_snapshot_memory,
        ["keep" => true, "free" => false],
        "must be keep or free"
    ),
    choice!(
        "barrier",
        barriers,
        [
            "auto" => BarrierPolicy::Auto,
            "reader" => BarrierPolicy::Reader,
            "writer" => BarrierPolicy::Writer,
        ],
        "must be auto, reader or writer"
    ),
    choice!(
        "source",
        source,
        ["probes" => RecordSource::Probes, "rings" => RecordSource::Rings],
        "must be probes or rings"
    ),
    part!("aux_size", aux_size, |config, text| {
        config.with_aux_size(bytes(text)?)
    }),
];

/// The items of a list end with white space.
const WORD: Option<fn(u8) -> bool> = Some(|byte| byte.is_ascii_whitespace());

/// The items of a list end with a newline.
const LINE: Option<fn(u8) -> bool> = Some(|byte| byte == b'\n');

/// A number that is 0 by default.
const fn number(
    file: &'static str,
    get: fn(&Session) -> u64,
    set: fn(&Session, u64) -> Result,
    max: u64,
    otherwise: &'static str,
) -> Setting {
    Setting {
        file,
        changes: Changes::Always,
        value: Number {
            get,
            set,
            default: 0,
            range: 0..=max,
            otherwise,
        },
    }
}

/// Difference from the default, of a list that is empty by default.
fn none_by_default(count: usize) -> Result<ListDifference> {
    Ok((count != 0).then_some((count, 0)))
}

/// Splits a text after its first word.
fn two_words(text: &str) -> Option<(&str, &str)> {
    text.trim().split_once(|c: char| c.is_ascii_whitespace())
}

fn bytes(text: &str) -> Result<usize, ConfigRefusal> {
    let size = number::size(text).and_then(|size| size.try_into().ok());
    size.ok_or(ConfigRefusal(
        "must be a number of bytes, also with K, M or G",
    ))
}

fn microseconds(text: &str) -> Result<u32, ConfigRefusal> {
    let us = text.parse();
    us.map_err(|_| ConfigRefusal("must be a number of microseconds below 2^32"))
}
