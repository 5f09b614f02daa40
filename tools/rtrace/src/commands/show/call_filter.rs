// SPDX-License-Identifier: GPL-2.0

//! Choice of the system calls to print. A filter is checked on the completed call, its arguments and its result
//! together.
//!
//! The kernel checks each end of a call by itself, so [`divide`] gives it a weaker condition for each
//! end. [`CallCondition`] then checks the expression on what both ends recorded.

use super::expression::Expression;
use crate::condition::{compared, in_trace, is_alias, is_picked, wrong, Condition, Held, SYSCALLS};
use analysis::syscalls::{edge, Edge};
use ctf::{Event, EventLayout, Metadata};
use record::session::channels::Filter;
use rtrace_input::pattern::Pattern;
use system::Result;

pub use crate::condition::Values;

/// The filter of `--failed`. Results below -4095 are addresses.
pub const FAILED: &str = "ret < 0 && ret >= -4095";

/// Contexts that are the same at both ends of a call.
const CONSTANT: [&str; 3] = ["pid", "tid", "common_pid"];

/// The call that starts a command. Its begin is always recorded, because earlier calls of the process are rtrace's.
const STARTS: &str = "execve";

/// A filter of system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFilter {
    /// The events of the calls, as `set_event` takes them; all calls, if there is none.
    pub pattern: Option<String>,
    /// The filter.
    pub expression: String,
}

impl CallFilter {
    /// Whether the filter is for this event, or for the call that has this event.
    fn is_for(&self, event: &str, is_call: bool) -> bool {
        match &self.pattern {
            None => is_call,
            Some(pattern) => is_picked(&Pattern::parse(pattern), event, is_call),
        }
    }
}

/// The names of both ends of a call, in a trace and in the kernel.
fn ends(call: &str) -> [String; 2] {
    ["entry", "exit"].map(|end| format!("syscall_{end}_{call}"))
}

/// Checks the syntax of an expression. The error is a text for the user.
pub fn check(expression: &str) -> std::result::Result<(), String> {
    let parsed = Expression::parse(expression);
    parsed
        .map(drop)
        .map_err(|error| error.shown(expression).to_string())
}

/// Whether a pattern picks system calls.
pub fn picks_calls(pattern: &str) -> bool {
    let pattern = Pattern::parse(pattern);
    let mut names = decode::calls().flat_map(ends);
    names.any(|name| pattern.matches(SYSCALLS, &name))
}

/// The events and contexts of a kernel.
pub struct Known<F> {
    /// All events, as `subsystem:event`.
    pub events: Vec<String>,
    /// All contexts.
    pub contexts: Vec<String>,
    /// Returns the names of an event's fields. `None` if the event does not exist.
    pub fields: F,
}

impl<F: Fn(&str) -> Option<Vec<String>>> Known<F> {
    /// Divides filters of calls into filters of their begins and ends for the kernel. The error is a text for the user.
    pub fn divide(&self, filters: &[CallFilter]) -> std::result::Result<Vec<Filter>, String> {
        let mut divided = Vec::new();
        for filter in filters {
            let expression = &filter.expression;
            let parsed = Expression::parse(expression)
                .map_err(|error| format!("--filter:\n{}", error.shown(expression)))?;
            match &filter.pattern {
                None => {
                    let part = parsed.of_known(&|name| name == "ret");
                    divided.extend(part.map(|part| kernel_filter(&format!("{SYSCALLS}:*"), &part)));
                }
                Some(pattern) => {
                    let before = divided.len();
                    self.of_events(pattern, &parsed, &mut divided);
                    let unknown = self.of_calls(pattern, &parsed, &mut divided);
                    if let (Some(name), true) = (unknown, divided.len() == before) {
                        return Err(format!(
                            "--filter `{expression}`: no system call that `{pattern}` picks has a field `{name}`, and \
                             there is no such context (`rtrace list -v 'syscall_*'` shows the fields)"
                        ));
                    }
                }
            }
        }
        Ok(divided)
    }

    fn is_context(&self, name: &str) -> bool {
        self.contexts.iter().any(|context| context == name) || is_alias(name)
    }

    /// Divides a filter of events other than calls: for the events that a pattern picks and that have the fields.
    fn of_events(&self, pattern: &str, expression: &Expression, divided: &mut Vec<Filter>) {
        let names = expression.names();
        let parsed = Pattern::parse(pattern);
        let mut events = self.events.iter().filter(|event| {
            let names = event.split_once(':');
            names.is_some_and(|(subsystem, name)| {
                subsystem != SYSCALLS && parsed.matches(subsystem, name)
            })
        });
        if names.iter().all(|name| self.is_context(name)) {
            if events.next().is_some() {
                divided.push(kernel_filter(pattern, expression));
                let [begin, _] = ends(STARTS);
                if parsed.matches(SYSCALLS, &begin) {
                    divided.push(Filter {
                        patterns: vec![format!("{SYSCALLS}:{begin}")],
                        // Removes the filter.
                        expression: "0".to_owned().into(),
                    });
                }
            }
            return;
        }
        for event in events {
            let fields = (self.fields)(event).unwrap_or_default();
            let has =
                |name: &&str| fields.iter().any(|field| field == name) || self.is_context(name);
            if names.iter().all(has) {
                divided.push(kernel_filter(event, expression));
            }
        }
    }

    /// Divides a filter of calls: for both ends of the calls that a pattern picks. Returns a name that no call has.
    fn of_calls<'e>(
        &self,
        pattern: &str,
        expression: &'e Expression,
        divided: &mut Vec<Filter>,
    ) -> Option<&'e str> {
        let parsed = Pattern::parse(pattern);
        let names = expression.names();
        let (mut missing, mut is_known) = (None, false);
        for call in decode::calls() {
            let ends = ends(call);
            if !ends.iter().any(|event| parsed.matches(SYSCALLS, event)) {
                continue;
            }
            let [begin, end] = ends.map(|event| format!("{SYSCALLS}:{event}"));
            let (Some(entry), Some(exit)) = ((self.fields)(&begin), (self.fields)(&end)) else {
                continue;
            };
            let is_of = |fields: &[String], name: &str| fields.iter().any(|field| field == name);
            let unknown = names
                .iter()
                .find(|name| !is_of(&entry, name) && !is_of(&exit, name) && !self.is_context(name));
            if unknown.is_some() {
                missing = unknown.copied();
                continue;
            }
            is_known = true;
            let at_begin = expression.of_known(&|name| {
                let is_constant = !is_of(&exit, name) && CONSTANT.contains(&name);
                call != STARTS && (is_of(&entry, name) || is_constant)
            });
            let at_end = expression.of_known(&|name| !is_of(&entry, name));
            divided.extend(at_begin.map(|part| kernel_filter(&begin, &part)));
            divided.extend(at_end.map(|part| kernel_filter(&end, &part)));
        }
        missing.filter(|_| !is_known)
    }
}

fn kernel_filter(pattern: &str, expression: &Expression) -> Filter {
    Filter {
        patterns: vec![pattern.to_owned()],
        expression: expression.to_string().into(),
    }
}

/// Contexts in these filters that a line does not show. They must be recorded for the check of the filters.
pub fn contexts_of(filters: &[CallFilter], available: &[String]) -> Vec<String> {
    let expressions = filters
        .iter()
        .filter_map(|filter| Expression::parse(&filter.expression).ok());
    let mut found = Vec::new();
    for expression in expressions {
        for name in expression.names() {
            let in_trace = in_trace(name);
            let name = if in_trace == "cpu_id" { "cpu" } else { name };
            let is_context = available.iter().any(|context| context == name);
            if is_context && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// The filter of a call, for a trace.
#[derive(Debug)]
pub struct CallCondition {
    condition: Condition,
    values: Vec<Source>,
}

/// Source of a value.
#[derive(Debug)]
enum Source {
    /// In this field of the event that begins a call.
    Begin(usize),
    /// In this field of the event that ends it.
    End(usize),
    /// In the context of this name.
    Context(String),
}

impl CallCondition {
    /// The filter of the call that has events of this layout. `None` if the call has no filter. The last filter that is
    /// for the call counts.
    pub fn new(
        layout: &EventLayout,
        metadata: &Metadata,
        filters: &[CallFilter],
    ) -> Result<Option<Self>> {
        let end = edge(layout).map(|(_, end)| end);
        let other = match end {
            None => String::new(),
            Some(Edge::Entry) => layout.name.replacen("entry", "exit", 1),
            Some(Edge::Exit { .. }) => layout.name.replacen("exit", "entry", 1),
        };
        let class = metadata.stream(layout.stream_id);
        let mut events = class.iter().flat_map(|class| class.events.values());
        let other_layout = events.find(|event| event.name == other);
        let is_call = end.is_some();
        let (begin, end) = match end {
            Some(Edge::Exit { .. }) => (other_layout, Some(layout)),
            Some(Edge::Entry) | None => (Some(layout), other_layout),
        };
        for filter in filters.iter().rev() {
            let mut names = [&layout.name, &other].into_iter();
            if !names.any(|name| filter.is_for(name, is_call)) {
                continue;
            }
            let parsed = Expression::parse(&filter.expression)
                .map_err(|error| wrong(&filter.expression, error))?;
            let contexts = class.map_or(&[][..], |class| &class.contexts);
            let mut values = Vec::new();
            let mut named = Vec::new();
            for name in parsed.names() {
                let field = |layout: Option<&EventLayout>| {
                    let number = layout?.field(name)?;
                    Some((number, layout?.fields[number].ty.clone()))
                };
                let context = contexts.iter().find(|field| field.name == in_trace(name));
                let found = field(begin)
                    .map(|(number, ty)| (Source::Begin(number), ty))
                    .or_else(|| field(end).map(|(number, ty)| (Source::End(number), ty)))
                    .or_else(|| {
                        let context = context?;
                        Some((Source::Context(context.name.clone()), context.ty.clone()))
                    });
                if let Some((source, ty)) = found {
                    named.push((name, compared(&ty)));
                    values.push(source);
                }
            }
            // As in the kernel, a filter is for the events that have all its fields.
            if values.len() < parsed.names().len() {
                continue;
            }
            let condition = Condition::new(&filter.expression, &named)?;
            return Ok(Some(Self { condition, values }));
        }
        Ok(None)
    }

    /// Takes the values of the event that begins or ends a call.
    pub fn note(&self, values: &mut Values, event: &Event<'_>, is_end: bool) {
        values.0.resize(self.values.len(), None);
        for (held, source) in values.0.iter_mut().zip(&self.values) {
            let value = match source {
                Source::Begin(field) if !is_end => event.value(*field),
                Source::End(field) if is_end => event.value(*field),
                Source::Context(name) => {
                    let context = event.class.context(name);
                    context.and_then(|context| event.context(context))
                }
                Source::Begin(_) | Source::End(_) => continue,
            };
            *held = value.and_then(Held::of);
        }
    }

    /// Whether a call with these values is printed. A comparison with a value that is not known excludes the call.
    pub fn wants(&self, values: &Values) -> bool {
        self.condition.wants(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(pattern: Option<&str>, expression: &str) -> std::result::Result<Vec<String>, String> {
        let known = Known {
            events: vec![
                "fs:openat_lookup".to_owned(),
                "sched:sched_switch".to_owned(),
            ],
            contexts: vec!["tid".to_owned(), "uid".to_owned()],
            fields: |event: &str| {
                let names: &[&str] = match event {
                    "syscalls:syscall_entry_execve" => &["filename"],
                    "syscalls:syscall_entry_openat" => &["dfd", "filename"],
                    "syscalls:syscall_entry_openat2" => &["dfd", "how"],
                    "syscalls:syscall_exit_execve"
                    | "syscalls:syscall_exit_openat"
                    | "syscalls:syscall_exit_openat2" => &["ret"],
                    "fs:openat_lookup" => &["filename"],
                    _ => return None,
                };
                Some(names.iter().map(|name| (*name).to_owned()).collect())
            },
        };
        let filter = CallFilter {
            pattern: pattern.map(str::to_owned),
            expression: expression.to_owned(),
        };
        let divided = known.divide(&[filter])?.into_iter();
        let text =
            divided.map(|filter| format!("{} {}", filter.patterns[0], filter.expression.value));
        Ok(text
            .map(|text| text.replace("syscalls:syscall_", ""))
            .collect())
    }

    #[test]
    fn each_end_of_a_call_has_its_part_of_a_filter() {
        let divided = divide(
            Some("syscall_exit_openat"),
            "ret < 0 && dfd == 3 && tid == 7 && uid == 0",
        );
        let expected = [
            "entry_openat dfd == 3 && tid == 7",
            "exit_openat ret < 0 && tid == 7 && uid == 0",
        ];
        assert_eq!(divided.unwrap(), expected);
        // A call without the field has no filter, like an event without it.
        let divided = divide(Some("syscalls"), "ret < 0 && filename ~ \"/etc/*\"").unwrap();
        assert_eq!(
            divided,
            [
                "exit_execve ret < 0",
                "entry_openat filename ~ \"/etc/*\"",
                "exit_openat ret < 0"
            ]
        );
        // The begin of the call that starts a command is recorded in any case.
        let all = divide(Some("*:*"), "uid == 0").unwrap();
        let expected = [
            "*:* uid == 0",
            "entry_execve 0",
            "exit_openat uid == 0",
            "exit_execve uid == 0",
            "exit_openat2 uid == 0",
        ];
        assert_eq!(all.len(), expected.len(), "{all:?}");
        assert!(
            expected
                .iter()
                .all(|filter| all.iter().any(|one| one == filter)),
            "{all:?}"
        );
        let either = divide(Some("syscalls"), "ret < 0 || filename == 'x'");
        assert_eq!(either.unwrap(), [""; 0]);
        let others = divide(Some("openat*"), "filename == 'x'");
        assert_eq!(others.unwrap(), ["fs:openat_lookup filename == \"x\""]);
        assert_eq!(
            divide(None, FAILED).unwrap(),
            ["syscalls:* ret < 0 && ret >= -4095"]
        );
        let error = divide(Some("syscall_entry_openat"), "file == 'x'").unwrap_err();
        assert!(error.contains("has a field `file`"), "{error}");
        assert!(divide(Some("syscalls"), "ret <")
            .unwrap_err()
            .contains("ret <\n"));
    }
}
