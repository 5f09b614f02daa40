// SPDX-License-Identifier: GPL-2.0

//! The events that can be recorded, by all their names, and the events that patterns pick.

use crate::Tracer;
use rtrace_input::pattern::Pattern;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::slice;
use system::{Error, Result};

/// The maximum number of suggested names for an unknown one.
const SUGGESTIONS: usize = 3;
/// The minimum similarity of a suggestion, from 0 to 1.
const ALIKE: f64 = 0.6;
/// The minimum similarity of a system call. It is higher, because calls come first and many have short names.
const CALL_ALIKE: f64 = 0.7;

/// Subsystems of ftrace whose events rtrace records in its own way, with one tracepoint for all.
const SYSCALLS: [&str; 2] = ["syscalls", "raw_syscalls"];

/// An event.
#[derive(Default)]
pub struct Event {
    /// `subsystem:event`.
    pub name: String,
    /// The name in ftrace and perf, if it differs.
    pub aliases: Vec<String>,
    /// Its fields, as declared in C.
    pub fields: Vec<String>,
    /// Whether only ftrace has the event so far.
    pub is_of_ftrace: bool,
}

impl Event {
    fn parse(name: String, format: &str) -> Self {
        let mut event = Self {
            name,
            ..Self::default()
        };
        for line in format.lines().map(str::trim) {
            if let Some(field) = line.strip_prefix("field:") {
                let declaration = field.split(';').next().unwrap_or(field);
                event.fields.push(declaration.to_owned());
            } else if let Some(aliases) = line.strip_prefix("alias:") {
                event.aliases = aliases.split_whitespace().map(str::to_owned).collect();
            }
        }
        event
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name)
            .chain(&self.aliases)
            .map(String::as_str)
    }

    /// Whether the pattern matches one of its names.
    fn matches(&self, pattern: &Pattern<'_>) -> bool {
        self.names().any(|name| {
            let (subsystem, event) = split(name);
            pattern.matches(subsystem, event)
        })
    }
}

/// All existing events.
pub fn available(tracer: &Tracer) -> Result<Vec<Event>> {
    let names = tracer.available_events()?.into_iter();
    let event = |name: String| match tracer.format(&name) {
        Ok(format) => Some(Ok(Event::parse(name, &format))),
        // The module was unloaded meanwhile.
        Err(Error::Read { cause, .. }) if cause.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Err(error)),
    };
    names.filter_map(event).collect()
}

/// The events of modules that are not loaded, without their fields.
pub fn awaited(tracer: &Tracer) -> Result<Vec<Event>> {
    let names = tracer.awaited_events()?.into_iter();
    let events = names.map(|name| Event {
        name,
        ..Event::default()
    });
    Ok(events.collect())
}

/// The events of ftrace that are not among these, without their fields. rtrace records them through perf if they are
/// named.
pub fn of_ftrace(tracer: &Tracer, own: &[Event]) -> Vec<Event> {
    let own: HashSet<&str> = own.iter().flat_map(Event::names).collect();
    let is_other =
        |name: &String| !own.contains(name.as_str()) && !SYSCALLS.contains(&split(name).0);
    let others = tracer.ftrace_events().into_iter().filter(is_other);
    let others = others.map(|name| Event {
        name,
        is_of_ftrace: true,
        ..Event::default()
    });
    others.collect()
}

/// The fields of an event, as declared in C, except the fields that all events of ftrace have.
pub fn fields<'a>(tracer: &Tracer, event: &'a Event) -> Cow<'a, [String]> {
    if !event.is_of_ftrace {
        return (&event.fields).into();
    }
    let format = tracer.ftrace_format(&event.name).unwrap_or_default();
    let mut fields = Event::parse(String::new(), &format).fields;
    fields.retain(|field| !field.contains(" common_"));
    fields.into()
}

/// Whether a pattern picks events of ftrace, too: it names the subsystem. A pattern without one would pick thousands.
pub fn asks_ftrace(pattern: &str) -> bool {
    let pattern = Pattern::parse(pattern);
    pattern.enables && pattern.names_subsystem()
}

/// Each pattern, followed by the names of the ftrace events that it picks, for `set_event`.
pub fn with_names_of_ftrace(tracer: &Tracer, patterns: &[String]) -> Vec<String> {
    let mut ftrace = None;
    let mut words = Vec::new();
    for word in patterns {
        words.push(word.clone());
        let pattern = Pattern::parse(word);
        // A single name is passed on unchanged.
        if !asks_ftrace(word) || pattern.full_name().is_some() {
            continue;
        }
        let ftrace = ftrace.get_or_insert_with(|| tracer.ftrace_events());
        let picked = ftrace.iter().filter(|name| {
            let (subsystem, event) = split(name);
            !SYSCALLS.contains(&subsystem) && pattern.matches(subsystem, event)
        });
        words.extend(picked.cloned());
    }
    words
}

/// The events that patterns pick. As in `set_event`, the patterns apply in order, beginning with no event.
pub fn picked<'a>(events: &'a [Event], patterns: &[String]) -> Vec<&'a Event> {
    let patterns: Vec<_> = patterns.iter().map(|word| Pattern::parse(word)).collect();
    let is_picked = |event: &&Event| {
        let last = patterns.iter().rfind(|pattern| event.matches(pattern));
        last.is_some_and(|pattern| pattern.enables)
    };
    events.iter().filter(is_picked).collect()
}

/// The error of the first pattern that matches no event, if there is one.
pub fn unmatched(events: &[Event], patterns: &[String]) -> Option<String> {
    let pattern = patterns
        .iter()
        .map(|word| Pattern::parse(word))
        .find(|pattern| !events.iter().any(|event| event.matches(pattern)))?;
    let word = Pattern {
        enables: true,
        ..pattern
    };
    let of = |is_of_ftrace| {
        let events = events.iter();
        let events = events.filter(move |event| event.is_of_ftrace == is_of_ftrace);
        near(&word.to_string(), events)
    };
    let near = Some(of(false)).filter(|near| !near.is_empty());
    let near = near.unwrap_or_else(|| of(true));
    let question = match near.split_last() {
        None => String::new(),
        Some((only, [])) => format!(": did you mean {only}?"),
        Some((last, others)) => format!(": did you mean {} or {last}?", others.join(", ")),
    };
    Some(format!("no event matches `{word}`{question}"))
}

/// The error for a pattern that `set_event` refuses, if it picks neither an existing event nor an awaited one.
pub fn picks_nothing(events: &[Event], awaited: &[Event], word: &String) -> Option<String> {
    let pattern = Pattern::parse(word);
    if awaited.iter().any(|event| event.matches(&pattern)) {
        return (!pattern.names_subsystem()).then(|| {
            format!(
                "no event of a loaded module matches `{word}`: write SUBSYSTEM:EVENT to choose one of another module"
            )
        });
    }
    if let Some(complaint) = unmatched(events, slice::from_ref(word)) {
        return Some(complaint);
    }
    let mut own = events.iter().filter(|event| !event.is_of_ftrace);
    if asks_ftrace(word) || own.any(|event| event.matches(&pattern)) {
        return None;
    }
    Some(format!(
        "no event of rtrace matches `{word}`: write SUBSYSTEM:EVENT to choose one of ftrace"
    ))
}

/// Names of events and of subsystems that resemble the word, the most similar first.
fn near<'a>(word: &str, events: impl Iterator<Item = &'a Event>) -> Vec<String> {
    let typed = word.replace(['*', '?'], "");
    // A word without a colon is an event or a subsystem.
    let whole = word.contains(':');
    let mut near: Vec<(f64, String)> = Vec::new();
    for event in events {
        // A system call, by its own name, comes first.
        let call = split(&event.name).1.strip_prefix("syscall_entry_");
        if let Some(call) = call.filter(|_| !whole) {
            let likeness = likeness(&typed, call);
            if likeness >= CALL_ALIKE {
                near.push((1.0 + likeness, call.to_owned()));
            }
        }
        let nearest = event
            .names()
            .map(|name| {
                let compared = if whole { name } else { split(name).1 };
                (likeness(&typed, compared), name.to_owned())
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        near.extend(nearest);
        for name in event.names() {
            let subsystem = split(name).0;
            near.push(if whole {
                let compared = format!("{subsystem}:");
                (likeness(&typed, &compared), format!("{subsystem}:*"))
            } else {
                (likeness(&typed, subsystem), subsystem.to_owned())
            });
        }
    }
    near.retain(|(likeness, _)| *likeness >= ALIKE);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup();
    let names = near.into_iter().map(|(_, name)| name);
    names.take(SUGGESTIONS).collect()
}

/// The similarity of two names, from 0 to 1, by the share of equal letters. A name that contains the whole word is
/// similar in any case.
fn likeness(typed: &str, name: &str) -> f64 {
    let likeness = strsim::normalized_damerau_levenshtein(typed, name);
    if name.contains(typed) {
        ALIKE + (1.0 - ALIKE) * likeness
    } else {
        likeness
    }
}

fn split(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<Event> {
        [
            ("sched:sched_switch", ""),
            ("sched:sched_waking", ""),
            ("irq:irq_softirq_entry", "alias: irq:softirq_entry"),
            ("irq:irq_softirq_exit", "alias: irq:softirq_exit"),
            (
                "syscalls:syscall_entry_openat",
                "alias: syscalls:sys_enter_openat raw_syscalls:sys_enter",
            ),
            (
                "syscalls:syscall_exit_openat",
                "alias: syscalls:sys_exit_openat raw_syscalls:sys_exit",
            ),
        ]
        .map(|(name, format)| Event::parse(name.to_owned(), format))
        .into()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn formats() {
        let text = "name: e\nformat:\n\tfield:u32 tid;\toffset:0;\tsize:4;\tsigned:0;\n\
                    \tfield:char comm[16];\toffset:4;\tsize:16;\tsigned:0;\n\nalias: a:b c:d\n";
        let event = Event::parse("s:e".to_owned(), text);
        assert_eq!(event.fields, ["u32 tid", "char comm[16]"]);
        assert_eq!(event.names().collect::<Vec<_>>(), ["s:e", "a:b", "c:d"]);
    }

    #[test]
    fn events_are_picked_by_all_their_names() {
        let events = events();
        for (patterns, expected) in [
            ("sched", "sched_switch sched_waking"),
            ("irq:softirq_entry", "irq_softirq_entry"),
            ("softirq_*", "irq_softirq_entry irq_softirq_exit"),
            ("raw_syscalls:*", "syscall_entry_openat syscall_exit_openat"),
            (
                "*:* !raw_syscalls !softirq_e[!n]* !sched",
                "irq_softirq_entry",
            ),
            ("!sched sched_switch", "sched_switch"),
        ] {
            let picked = picked(&events, &words(patterns));
            let names: Vec<_> = picked.iter().map(|event| split(&event.name).1).collect();
            assert_eq!(names.join(" "), expected, "{patterns}");
        }
    }

    #[test]
    fn ftrace_is_asked_where_the_subsystem_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("rtrace/enable", "0\n"),
            (
                "tracing/available_events",
                "xfs:xfs_buf_read\nxfs:xfs_buf_free\nsyscalls:sys_enter_read\nsched:sched_switch\n",
            ),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tracer = Tracer::find(dir.path()).unwrap();
        for (patterns, expected) in [
            ("xfs:*free !xfs:a", "xfs:*free xfs:xfs_buf_free !xfs:a"),
            ("xfs", "xfs xfs:xfs_buf_read xfs:xfs_buf_free"),
            // Unchanged; of every subsystem; of rtrace itself; excluded; of none.
            ("xfs:xfs_buf_read", "xfs:xfs_buf_read"),
            ("x*:*read *read", "x*:*read *read"),
            ("syscalls:*", "syscalls:*"),
            ("!xfs:*", "!xfs:*"),
            ("ext4:*", "ext4:*"),
        ] {
            let words = with_names_of_ftrace(&tracer, &words(patterns));
            assert_eq!(words.join(" "), expected, "{patterns}");
        }
        let own = events();
        let others = of_ftrace(&tracer, &own);
        let names: Vec<_> = others.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["xfs:xfs_buf_read", "xfs:xfs_buf_free"]);
        let all: Vec<_> = own.into_iter().chain(others).collect();
        assert_eq!(picks_nothing(&all, &[], &"xfs:*".to_owned()), None);
        let said = picks_nothing(&all, &[], &"x*:*".to_owned()).unwrap();
        assert!(said.contains("SUBSYSTEM:EVENT"), "{said}");
        let said = picks_nothing(&all, &[], &"xsf:*".to_owned()).unwrap();
        assert!(said.ends_with("did you mean xfs:*?"), "{said}");
        let awaited = [Event::parse("kvm:kvm_exit".to_owned(), "")];
        let said = picks_nothing(&all, &awaited, &"kvm_e*".to_owned()).unwrap();
        assert!(said.contains("a loaded module"), "{said}");
        assert_eq!(picks_nothing(&all, &awaited, &"kvm".to_owned()), None);
    }

    #[test]
    fn near_misses() {
        let events = events();
        let fine = words("sched irq:softirq_* !sys_exit_openat");
        assert_eq!(unmatched(&events, &fine), None);
        for (pattern, expected) in [
            ("irq:softirg_entry", ": did you mean irq:softirq_entry"),
            ("!irq:softirg_entry", ": did you mean irq:softirq_entry"),
            ("shed_switch", ": did you mean sched:sched_switch"),
            ("sched:sched_swich*", ": did you mean sched:sched_switch"),
            ("shed", ": did you mean sched?"),
            ("shed:*", ": did you mean sched:*?"),
            (
                "openat",
                ": did you mean openat, syscalls:sys_exit_openat or syscalls:sys_enter_openat?",
            ),
            ("opnat", ": did you mean openat"),
            ("xyz", ""),
        ] {
            let said = unmatched(&events, &words(pattern)).unwrap();
            let word = pattern.trim_start_matches('!');
            let expected = format!("no event matches `{word}`{expected}");
            assert!(said.starts_with(&expected), "{said}");
        }
    }
}
