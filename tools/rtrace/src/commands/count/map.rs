// SPDX-License-Identifier: GPL-2.0

//! The maps of a count.

use crate::args::{wrong, CountArgs};
use record::recipes::Recipe;
use record::session::channels::patterns_of;
use rtrace_input::map::{ColumnKind, LinePart, MapLine, DEFAULT_SIZE, DURATION, MAX_KEYS};

/// Fields that the end of a system call has, and the begin has not.
const OF_END: [&str; 2] = ["ret", DURATION];

/// The key that is a container, and the kernel's key that it is made of.
pub const CONTAINER: &str = "container";
const CGROUP: &str = "cgroup_id";

/// The column of the key [`CONTAINER`].
pub fn container(args: &CountArgs) -> Option<usize> {
    args.by.iter().position(|key| key == CONTAINER)
}

/// The maps that the arguments describe, and the events that the maps need.
pub fn recipe(args: &CountArgs) -> Result<Recipe, clap::Error> {
    if args.by.len() > MAX_KEYS {
        return Err(wrong(format_args!("--by has at most {MAX_KEYS} keys")));
    }
    if args.input.is_some() && container(args).is_some() {
        return Err(wrong(
            "--by container names the cgroups of this machine as they are now: of a trace, `rtrace query` knows container(path)",
        ));
    }
    let recipe = match &args.recipe {
        Some(name) => completed(name, args).map_err(wrong)?,
        None => Recipe {
            maps: vec![line(args)],
            probes: args.probes.iter().chain(&args.usdt).cloned().collect(),
        },
    };
    let is_differences = args.interval.is_some() && !args.cumulative;
    for line in &recipe.maps {
        let map = MapLine::parse(line).map_err(|error| wrong(error.shown(line)))?;
        let MapLine::Define(map) = map else { continue };
        if let Some(sort) = &args.sort {
            let mut names: Vec<_> = map
                .keys
                .into_iter()
                .flat_map(LinePart::items)
                .map(|key| key.text.to_owned())
                .collect();
            if let Some(name) = container(args).and_then(|place| names.get_mut(place)) {
                *name = CONTAINER.to_owned();
            }
            names.push("count".to_owned());
            let columns = map.columns.iter().flatten();
            names.extend(columns.map(|(kind, value)| format!("{}({})", kind.name(), value.text)));
            if !names.contains(sort) {
                return Err(wrong(format_args!(
                    "--sort {sort}: the table has {}",
                    names.join(", ")
                )));
            }
        }
        let mut kinds = map.columns.iter().flatten().map(|(kind, _)| *kind);
        if is_differences && kinds.any(|kind| kind != ColumnKind::Sum) {
            return Err(wrong(
                "the smallest and largest values are known only since the beginning: --interval needs --cumulative here",
            ));
        }
    }
    Ok(recipe)
}

/// Words of a recipe that stand for what an option gives.
const EVENTS: &str = "EVENTS";
const FIELD: &str = "FIELD";

/// The recipe with this name or in this file, completed by options. The error is a text for the user.
fn completed(name: &str, args: &CountArgs) -> Result<Recipe, String> {
    let mut recipe = Recipe::named(name).map_err(|error| error.to_string())?;
    let has = |word: &str| recipe.maps.iter().any(|line| line.contains(word));
    let field = args.hist.as_deref().unwrap_or_default();
    let events = call_events(args, OF_END.contains(&field)).join(",");
    let needed = [
        ("-e EVENT", has(EVENTS), !args.events.is_empty()),
        ("--hist FIELD", has(FIELD), !field.is_empty()),
        (
            "-T PATTERN",
            has("ftrace:function"),
            !args.functions.is_empty(),
        ),
        (
            "-G PATTERN",
            has("ftrace:funcgraph_"),
            !args.graph.is_empty(),
        ),
    ];
    for (option, is_needed, is_given) in needed {
        match (is_needed, is_given) {
            (true, false) => return Err(format!("recipe `{name}` needs {option}")),
            (false, true) => return Err(format!("recipe `{name}` has no use for {option}")),
            _ => {}
        }
    }
    for line in &mut recipe.maps {
        *line = line.replace(EVENTS, &events).replace(FIELD, field);
    }
    Ok(recipe)
}

/// The patterns of -e. Each system call counts once.
fn call_events(args: &CountArgs, is_of_end: bool) -> Vec<String> {
    ends(&args.events, if is_of_end { "exit" } else { "entry" })
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
    let mut patterns = call_events(args, of_end);
    let mut by = args.by.clone();
    if let Some(place) = container(args) {
        by[place] = CGROUP.to_owned();
    }
    if !args.probes.is_empty() || !args.usdt.is_empty() {
        patterns.push("probes:*".to_owned());
    }
    let function = match (args.functions.is_empty(), args.graph.is_empty()) {
        (true, true) => None,
        (false, _) => Some(("ftrace:function", "ip")),
        (_, false) => Some(("ftrace:funcgraph_exit", "func")),
    };
    if let Some((event, key)) = function {
        patterns.push(event.to_owned());
        if by.is_empty() {
            by.push(key.to_owned());
        }
    }
    let mut line = format!("count {}", patterns.join(","));
    if !by.is_empty() {
        line += &format!(" by {}", by.join(","));
    }
    for (column, fields) in columns {
        line.extend(fields.iter().map(|field| format!(" {column}({field})")));
    }
    line.extend(args.hist.iter().map(|field| format!(" hist({field})")));
    let measures = args.hist.iter().chain(&args.sum).chain(&args.min);
    let measures = measures.chain(&args.max).any(|name| name == DURATION);
    let mut begins = ends(&args.begin, "exit");
    let is_call = |pattern: &String| pattern.contains("syscall_exit_");
    if begins.is_empty() && measures && patterns.iter().all(is_call) {
        begins = ends(&args.events, "entry");
    }
    let is_of_functions = measures && !args.graph.is_empty();
    if is_of_functions {
        begins = vec!["ftrace:funcgraph_entry".to_owned()];
    }
    if !begins.is_empty() {
        line += &format!(" from {}", begins.join(","));
    }
    if is_of_functions {
        // The calls of a function can be nested.
        line += " match tid,depth";
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
    use super::*;
    use crate::args::{Cli, Command};

    fn lines(words: &[&str]) -> Option<String> {
        let words = ["rtrace", "count"].iter().chain(words);
        match Cli::from_words(words).ok()?.command {
            Command::Count(args) => Some(recipe(&args).ok()?.maps.join("\n")),
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
                "-e a:b --max duration --begin c:d --match dev,sector",
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
            assert_eq!(lines(&words).as_deref(), Some(expected), "{words:?}");
        }
        for (words, expected) in [
            (
                "-e read --by comm,container --sort container",
                "count syscall_entry_read by comm,cgroup_id",
            ),
            (
                "-k f(a) --hist a",
                "count probes:* hist(a)",
            ),
            ("-u a:b --by arg1", "count probes:* by arg1"),
            ("-T vfs_* --sort ip", "count ftrace:function by ip"),
            (
                "-G vfs_* --by comm --sum duration",
                "count ftrace:funcgraph_exit by comm sum(duration) from ftrace:funcgraph_entry match tid,depth",
            ),
            (
                "--recipe argdist -e read --hist ret",
                "argdist syscall_exit_read hist(ret)",
            ),
            (
                "--recipe argdist -e read --hist count",
                "argdist syscall_entry_read hist(count)",
            ),
            (
                "--recipe stackcount -e sched:sched_waking",
                "stackcount sched:sched_waking by kstack",
            ),
            (
                "--recipe funccount -T vfs_*",
                "funccount ftrace:function by ip",
            ),
        ] {
            let words: Vec<_> = words.split(' ').collect();
            assert_eq!(lines(&words).as_deref(), Some(expected), "{words:?}");
        }
        for words in [
            "--recipe argdist -e read",
            "--recipe argdist --hist ret",
            "--recipe funccount",
            "--recipe funccount -G vfs_*",
            "--recipe runqlat -e read",
            "--recipe runqlat --by comm",
            "-T a -G b",
            "-e read --by comm --sort cpu",
            "-e read --by container -i",
            "-T a -e b",
        ] {
            let words: Vec<_> = words.split(' ').collect();
            assert_eq!(lines(&words), None, "{words:?}");
        }
        let filtered = lines(&["-e", "write", "--filter", "ret < 0"]);
        assert_eq!(filtered.unwrap(), "count syscall_exit_write if ret < 0");
        let recipe = lines(&["--recipe", "syscount"]).unwrap();
        assert_eq!(recipe, "syscount syscalls:syscall_entry_* by event");
        assert_eq!(lines(&["--recipe", "/no/such/recipe"]), None);
        // A field of that name, which the kernel looks for.
        let field = lines(&["-e", "a:b", "--hist", "duration"]);
        assert_eq!(field.unwrap(), "count a:b hist(duration)");
        assert_eq!(lines(&[]), None);
        assert_eq!(lines(&["-e", "write", "--by", "a,b,c,d,e"]), None);
        assert_eq!(lines(&["-e", "write", "--only"]), None);
    }
}
