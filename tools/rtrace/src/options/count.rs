// SPDX-License-Identifier: GPL-2.0

//! Options of `rtrace count`, converted from the arguments as typed.

use super::record::Conditions;
use super::{rows, wrong};
use crate::args::CountArgs;
use crate::recipes;
use crate::session::channels::patterns_of;
use crate::session::tasks::Tasks;
use rtrace_input::map::{ColumnKind, MapLine, DEFAULT_SIZE, DURATION, MAX_KEYS};
use std::ffi::OsString;
use std::time::Duration;

/// Fields that the end of a system call has, and the begin has not.
const OF_END: [&str; 2] = ["ret", DURATION];

/// A count of events.
pub struct Count {
    /// The maps, as `set_map` takes them.
    pub lines: Vec<String>,
    /// The tasks whose events count.
    pub tasks: Tasks,
    /// Time from table to table. Without it, there is one table at the end.
    pub interval: Option<Duration>,
    /// Whether each table has the counts since the beginning.
    pub cumulative: bool,
    /// Rows of a table.
    pub rows: usize,
    /// Whether tables are printed as JSON.
    pub json: bool,
    /// The end of the count.
    pub conditions: Conditions,
    /// The command to run, if any.
    pub command: Option<(OsString, Vec<OsString>)>,
}

/// Converts the arguments.
pub(super) fn count(args: CountArgs) -> Result<Count, clap::Error> {
    if args.by.len() > MAX_KEYS {
        return Err(wrong(format_args!("--by has at most {MAX_KEYS} keys")));
    }
    let lines = match &args.recipe {
        Some(recipe) => {
            let text = recipes::text(recipe).map_err(wrong)?;
            recipes::maps(&text).map(str::to_owned).collect()
        }
        None => vec![line(&args)],
    };
    let is_differences = args.interval.is_some() && !args.cumulative;
    for line in &lines {
        let map = MapLine::parse(line).map_err(|error| wrong(error.shown(line)))?;
        let MapLine::Define(map) = map else { continue };
        let mut kinds = map.columns.iter().flatten().map(|(kind, _)| *kind);
        if is_differences && kinds.any(|kind| kind != ColumnKind::Sum) {
            return Err(wrong(
                "the smallest and largest values are known only since the beginning: --interval needs --cumulative here",
            ));
        }
    }
    let mut command = args.command.into_iter();
    Ok(Count {
        lines,
        tasks: Tasks {
            pids: (!args.pids.is_empty()).then(|| args.pids.into()),
            cgroups: None,
            only_command: args.only.then(|| ().into()),
        },
        interval: args.interval,
        cumulative: args.cumulative,
        rows: rows(args.rows),
        json: args.json,
        conditions: Conditions {
            duration: args.duration,
            ..Conditions::default()
        },
        command: command.next().map(|program| (program, command.collect())),
    })
}

/// The line of `set_map`.
fn line(args: &CountArgs) -> String {
    let columns = [("sum", &args.sum), ("min", &args.min), ("max", &args.max)];
    let named = columns.iter().flat_map(|(_, fields)| fields.iter());
    let mut named = named.chain(&args.by).chain(&args.hist);
    let filter = args.filter.as_deref().unwrap_or_default();
    let mut words = filter.split(|c| !rtrace_input::rest::is_of_name(c));
    let is_of_end = |name: &str| OF_END.contains(&name);
    let mut of_end = named.any(|name| is_of_end(name));
    of_end |= words.any(is_of_end);
    // Each system call counts once.
    let patterns = ends(&args.events, if of_end { "exit" } else { "entry" });
    let mut line = format!("count {}", patterns.join(","));
    if !args.by.is_empty() {
        line += &format!(" by {}", args.by.join(","));
    }
    for (column, fields) in columns {
        line.extend(fields.iter().map(|field| format!(" {column}({field})")));
    }
    line.extend(args.hist.iter().map(|field| format!(" hist({field})")));
    let measures = args.hist.iter().chain(&args.sum).chain(&args.min);
    let measures = measures.chain(&args.max).any(|name| name == DURATION);
    let mut begins = ends(&args.from, "exit");
    let is_call = |pattern: &String| pattern.contains("syscall_exit_");
    if begins.is_empty() && measures && patterns.iter().all(is_call) {
        begins = ends(&args.events, "entry");
    }
    if !begins.is_empty() {
        line += &format!(" from {}", begins.join(","));
    }
    line.extend(args.matched.iter().map(|values| format!(" match {values}")));
    if args.size != DEFAULT_SIZE {
        line += &format!(" size {}", args.size);
    }
    line.extend(args.filter.iter().map(|filter| format!(" if {filter}")));
    line
}

/// The patterns of words, with this end of system calls.
fn ends(words: &[String], end: &str) -> Vec<String> {
    let patterns = words.iter().flat_map(|word| match word.as_str() {
        "syscalls" => vec![format!("syscalls:syscall_{end}_*")],
        word => patterns_of(word),
    });
    let other = match end {
        "exit" => "syscall_entry_",
        _ => "syscall_exit_",
    };
    // A user may name an end.
    let is_own = |pattern: &String| words.contains(pattern);
    patterns
        .filter(|pattern| is_own(pattern) || !pattern.starts_with(other))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use crate::options::{from_cli, Action};

    fn line(words: &[&str]) -> Option<String> {
        let words = ["rtrace", "count"].iter().chain(words);
        match from_cli(Cli::from_words(words).ok()?).ok()?.1 {
            Action::Count(options) => Some(options.lines.join("\n")),
            _ => None,
        }
    }

    #[test]
    fn options_are_a_map() {
        for (words, expected) in [
            ("-e write", "count syscall_entry_write"),
            ("-e write --sum ret", "count syscall_exit_write sum(ret)"),
            (
                "-e sched_switch,write --by event,comm -n 0",
                "count sched_switch,syscall_entry_write by event,comm",
            ),
            (
                "-e syscalls --by event --hist ret",
                "count syscalls:syscall_exit_* by event hist(ret)",
            ),
            (
                "-e read,openat --hist duration",
                "count syscall_exit_read,syscall_exit_openat hist(duration) from syscall_entry_read,syscall_entry_openat",
            ),
            (
                "-e syscalls --by event --sum duration",
                "count syscalls:syscall_exit_* by event sum(duration) from syscalls:syscall_entry_*",
            ),
            (
                "-e a:b --max duration --from c:d --match dev,sector",
                "count a:b max(duration) from c:d match dev,sector",
            ),
            (
                "-e syscall_entry_read --by comm",
                "count syscall_entry_read by comm",
            ),
            (
                "-e sched_stat_runtime --min runtime --max runtime --size 5",
                "count sched_stat_runtime min(runtime) max(runtime) size 5",
            ),
        ] {
            let words: Vec<_> = words.split(' ').collect();
            assert_eq!(line(&words).as_deref(), Some(expected), "{words:?}");
        }
        let filtered = line(&["-e", "write", "--filter", "ret < 0"]);
        assert_eq!(filtered.unwrap(), "count syscall_exit_write if ret < 0");
        let recipe = line(&["--recipe", "syscount"]).unwrap();
        assert_eq!(recipe, "syscount syscalls:syscall_entry_* by event");
        assert_eq!(line(&["--recipe", "/no/such/recipe"]), None);
        assert_eq!(line(&["-e", "a:b", "--hist", "duration"]), None);
        assert_eq!(line(&[]), None);
        assert_eq!(line(&["-e", "write", "--by", "a,b,c,d,e"]), None);
        assert_eq!(line(&["-e", "write", "--only"]), None);
    }
}
