// SPDX-License-Identifier: GPL-2.0

//! Command lines, and what the commands make of them.

use super::control::config;
use super::record::options;
use super::show::options::{Input, Show};
use super::show::paths::Sources;
use crate::args::{Cli, Command};
use clap::CommandFactory;
use control::{BufferSize, Mode, FIRST_CHANNEL};
use record::recording::Record;
use record::session::channels::ChannelSetup;
use record::session::maker::Maker;
use record::session::setup::Setup;
use store::{Every, Rotate};

fn parse(words: &str) -> Result<Record, clap::Error> {
    let words = ["rtrace", "record"]
        .into_iter()
        .chain(words.split_whitespace());
    let cli = Cli::from_words(words)?;
    match cli.command {
        Command::Record(args) => options(*args, cli.session.is_some()),
        _ => panic!("not a record"),
    }
}

fn recorded(words: &str) -> Record {
    parse(words).unwrap()
}

/// Name, size, mode and patterns of a channel.
fn summary(channel: &ChannelSetup) -> String {
    let patterns = channel.events.iter().flatten();
    let patterns: Vec<_> = patterns.map(|given| given.value.as_str()).collect();
    let (size, mode) = (channel.size.unwrap(), channel.mode.unwrap().name());
    format!("{} {size} {mode} {}", channel.name, patterns.join(" "))
}

/// The first channel's patterns.
fn first(record: Record) -> Vec<String> {
    let events = record.setup.channels[0].events.iter().flatten();
    events.map(|given| given.value.clone()).collect()
}

#[test]
fn definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn record_is_independent_of_what_was_set() {
    let record = recorded("");
    let expected = ChannelSetup {
        events: Some(vec![]),
        mode: Some(Mode::Discard),
        size: Some(BufferSize::DEFAULT),
        ..ChannelSetup::named(FIRST_CHANNEL)
    };
    assert_eq!(record.setup.channels, [expected]);
    assert!(record.command.is_empty());
}

#[test]
fn patterns_go_in_order() {
    let record = recorded("-x b -e sched:* -e irq:* -x c -b 64Kx8 -- make -j -x all");
    assert_eq!(record.setup.channels[0].size.unwrap().to_string(), "64Kx8");
    assert_eq!(record.command, ["make", "-j", "-x", "all"]);
    assert_eq!(first(record), ["sched:*", "irq:*", "!b", "!c"]);
    assert_eq!(first(recorded("-x b")), ["*:*", "!b"]);
}

#[test]
fn patterns_go_to_the_channel_before_them() {
    let record = recorded(
        "-e a --channel one:64Kx2:overwrite -e b,c -x d --channel two -x e --overwrite \
         -b 2Mx8 --channel three:discard -e f -- make -e g --channel four",
    );
    let channels = record.setup.channels.iter();
    let channels: Vec<_> = channels.map(summary).collect();
    let expected = [
        "channel0 2Mx8 overwrite a",
        "one 64Kx2 overwrite b c !d",
        "two 2Mx8 overwrite *:* !e",
        "three 2Mx8 discard f",
    ];
    assert_eq!(channels, expected);
    // An unused channel takes as little memory as it can.
    let record = recorded("--channel one -e b");
    assert_eq!(record.setup.channels[0].size, Some(BufferSize::smallest()));
    assert_eq!(record.setup.channels[1].size, Some(BufferSize::DEFAULT));
    for (words, said) in [
        ("-e a --channel one", "channel `one` has no events"),
        ("--channel one --channel two -e b", "channel `one` has no"),
        ("--channel a -e b --channel a -e c", "`a` is given twice"),
        (
            "--channel a -e b --session s",
            "cannot be used with --session",
        ),
    ] {
        let error = parse(words).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{words}");
        assert!(error.to_string().contains(said), "{words}: {error}");
    }
}

#[test]
fn start_changes_only_what_is_given() {
    let started = |words: &str| {
        let words = ["rtrace", "start"]
            .into_iter()
            .chain(words.split_whitespace());
        match Cli::from_words(words).unwrap().command {
            Command::Start(args) => config(&args).unwrap().setup,
            _ => panic!("not a start"),
        }
    };
    let setup = started("");
    let expected = ChannelSetup {
        mode: Some(Mode::Discard),
        ..ChannelSetup::named(FIRST_CHANNEL)
    };
    assert_eq!(setup.channels, [expected]);
    assert!(setup.tasks.is_none() && setup.contexts.is_none() && setup.cpus.is_none());
    let setup = started(
        "--channel a:overwrite -e b,c --filter x==1 --filter y==2 --channel d --context tid,comm \
         -p 7 --cgroup /c -C 1 --marker-channel a",
    );
    let modes = setup.channels.iter().map(|channel| channel.mode.unwrap());
    let expected = [Mode::Discard, Mode::Overwrite, Mode::Discard];
    assert_eq!(modes.collect::<Vec<_>>(), expected);
    assert!(setup.channels.iter().all(|channel| channel.size.is_none()));
    let filters = setup.channels[1].filters.iter();
    let filters: Vec<_> = filters
        .map(|filter| format!("{} {}", filter.patterns[0], filter.expression.value))
        .collect();
    assert_eq!(filters, ["b x==1", "c x==1", "b y==2", "c y==2"]);
    assert_eq!(setup.contexts.unwrap().value, ["tid", "comm"]);
    assert_eq!(setup.tasks.pids.unwrap().value, [7]);
    assert_eq!(setup.marker_channel.unwrap().value, "a");
}

#[test]
fn a_trace_is_cut_where_it_can_be() {
    let rotate = |words| {
        let destination = recorded(words).destination;
        destination
            .directory()
            .and_then(|directory| directory.options.rotate)
    };
    let every = Every::Size(1 << 30);
    let keep = Some(3);
    assert_eq!(rotate(""), None);
    let expected = Some(Rotate { every, keep });
    assert_eq!(rotate("--rotate 1G --keep 3"), expected);
    let beside = "--rotate 1G --keep 3 -e a --channel one:overwrite -e b --until signal:USR1";
    assert_eq!(rotate(beside), expected);
    for (words, said) in [
        ("--keep 3", "--rotate"),
        ("--rotate 1G --keep 0", "0 is not in 1.."),
        ("--rotate 5", "a unit is missing"),
        ("--rotate 1G --overwrite", "needs a channel in discard mode"),
        ("--rotate 1G --until failure -- make", "--until failure"),
    ] {
        let error = parse(words).err().unwrap();
        assert_eq!(error.exit_code(), 2, "{words}");
        assert!(error.to_string().contains(said), "{words}: {error}");
    }
}

#[test]
fn a_receiver_takes_no_maps() {
    let error = parse("--connect /run/receiver.sock --map runqlat");
    let error = error.err().unwrap();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("takes no maps"), "{error}");
}

#[test]
fn commas_separate_patterns() {
    let record = recorded("-e a:*,b -x c,d -e e");
    let expected = ["a:*", "b", "e", "!c", "!d"];
    assert_eq!(first(record), expected);
    for option in ["-e", "-x"] {
        for word in [
            "", ",", "a,", ",a", "a,,b", "a b", "a, b", " ", "a\n", "!", "a,!",
        ] {
            let parsed = Cli::from_words(["rtrace", "record", option, word]);
            assert_eq!(parsed.unwrap_err().exit_code(), 2, "{option} '{word}'");
        }
    }
}

#[test]
fn a_filter_applies_to_the_nearest_event_or_probe() {
    let record = recorded("-e a --filter x==1 -k f->ret --filter y==2 -k g -e b --filter z==3");
    let subsystem = Maker::me().unwrap().subsystem();
    let filters = record.setup.channels[0].filters.iter();
    let mut filters: Vec<_> = filters
        .map(|filter| format!("{} {}", filter.patterns[0], filter.expression.value))
        .collect();
    filters.sort();
    let of_probe = format!("{subsystem}:f__return y==2");
    assert_eq!(filters, ["a x==1", "b z==3", &of_probe]);
    // Alone, too.
    let alone = recorded("-k f->ret --filter duration_ns>7");
    let filters = &alone.setup.channels[0].filters;
    assert_eq!(filters[0].patterns, [format!("{subsystem}:f__return")]);
    let before = parse("--filter x==1 -k f").err().unwrap().to_string();
    assert!(before.contains("needs an -e before it"), "{before}");
}

#[test]
fn a_system_call_is_its_begin_and_its_end() {
    let record = recorded("-e openat,sched_switch -x read --filter ret<0");
    let filters: Vec<_> = record.setup.channels[0].filters.clone();
    let openat = ["syscall_entry_openat", "syscall_exit_openat"];
    assert_eq!(filters[0].patterns, openat);
    let not_read = ["!syscall_entry_read", "!syscall_exit_read"];
    let expected = [&openat[..], &["sched_switch"], &not_read].concat();
    assert_eq!(first(record), expected);
    let expected = [&["*:*"][..], &not_read].concat();
    assert_eq!(first(recorded("-e !read")), expected);
    let expected = [&["irq"][..], &not_read, &["!a"]].concat();
    assert_eq!(first(recorded("-e !read,irq -x a")), expected);
    // No other call with a name that ends in `open`: mq_open.
    let open = ["syscall_entry_open", "syscall_exit_open"];
    assert_eq!(first(recorded("-e open")), open);
}

#[test]
fn patterns_and_sets_choose_system_calls() {
    let openats = [
        "openat*",
        "syscall_entry_openat",
        "syscall_exit_openat",
        "syscall_entry_openat2",
        "syscall_exit_openat2",
    ];
    assert_eq!(first(recorded("-e openat*")), openats);
    assert_eq!(first(recorded("-e trace=openat*")), openats);
    let file = first(recorded("-e %file"));
    assert!(file.contains(&"syscall_exit_openat".to_owned()), "{file:?}");
    assert!(!file.contains(&"%file".to_owned()), "{file:?}");
    let file = first(recorded("-e syscalls -x %file"));
    assert!(
        file.contains(&"!syscall_exit_openat".to_owned()),
        "{file:?}"
    );
    for word in ["*open*", "sched_swit*", "syscalls:*"] {
        assert_eq!(first(recorded(&format!("-e {word}"))), [word]);
    }
    let error = Cli::from_words(["rtrace", "record", "-e", "%fil"]).unwrap_err();
    assert!(error.to_string().contains("%file, %desc, "), "{error}");
}

#[test]
fn an_unknown_option_is_no_command() {
    for words in [
        "record -f -- true",
        "record -z -e sched -o d -- true",
        "record --onyl -o d -- true",
        "trace -f -- true",
        "profile -g -- true",
        "latency -Q -- true",
    ] {
        let words = ["rtrace"].into_iter().chain(words.split_whitespace());
        let error = Cli::from_words(words).unwrap_err();
        assert!(error.to_string().contains("unexpected argument"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    assert_eq!(recorded("-e a ls -l -- x").command, ["ls", "-l", "--", "x"]);
}

#[test]
fn options_of_other_tools_are_explained() {
    for (words, hint) in [
        ("record -f -- true", "processes that COMMAND starts"),
        ("trace -m 64 -- true", "-b SIZExN"),
        ("report -i dir", "the argument DIR"),
        ("latency -t 1ms", "--threshold"),
        ("export dir", "the format comes first"),
    ] {
        let words = ["rtrace"].into_iter().chain(words.split_whitespace());
        let error = Cli::from_words(words).unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
        assert!(!error.contains("as a value"), "{error}");
    }
}

#[test]
fn values_that_mean_something_else_are_refused() {
    for (words, said) in [
        (&["record", "-F", "vfs_*"][..], "-T traces functions"),
        (&["record", "-a", "-p", "1"], "cannot be used with"),
        (
            &["record", "-e", "sched", "--filter", ""],
            "the filter is empty",
        ),
        (&["record", "-e", "sched", "--filter", " 0"], "all events"),
        (
            &["report", "--comm", "a,averylongprogram", "dir"],
            "at most 15 bytes",
        ),
        (
            &["trace", "-i", "dir", "--comm", "*verylongprogram?"],
            "at most 15 bytes",
        ),
        (&["record", "-T", "!a"], "-N already excludes"),
        (&["session", "create", ""], "must not be empty"),
        (&["--session", "", "status"], "must not be empty"),
    ] {
        let words = ["rtrace"].iter().chain(words);
        let error = Cli::from_words(words).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn shown(words: &str) -> Result<Show, clap::Error> {
    let words = ["rtrace", "trace"]
        .into_iter()
        .chain(words.split_whitespace());
    match Cli::from_words(words)?.command {
        Command::Trace(args) => super::show::options::options(*args),
        _ => panic!("not a trace"),
    }
}

#[test]
fn system_calls_are_shown_unless_others_are_chosen() {
    let live = |words: &str| {
        let shown = shown(words).unwrap();
        match shown.input {
            Input::Live { setup } => (*setup, shown.args.command),
            Input::Recorded(_) | Input::Received { .. } => panic!("not live"),
        }
    };
    let (setup, command) = live("");
    let summaries = |setup: &Setup| -> Vec<String> { setup.channels.iter().map(summary).collect() };
    let expected = "syscalls sched:sched_process_exit signal:signal_generate \
                    signal:signal_deliver sched:sched_process_fork sched:sched_process_exec";
    assert_eq!(
        summaries(&setup),
        [format!("channel0 1Mx4 discard {expected}")]
    );
    assert_eq!(setup.contexts.unwrap().value, ["pid", "tid", "comm"]);
    assert!(setup.tasks.is_none() && command.is_empty());
    let (setup, command) = live("-e a,b --filter x==1 -x c -b 64Kx8 -p 7 -C 1 -- make -e d");
    assert_eq!(summaries(&setup), ["channel0 64Kx8 discard a b !c"]);
    assert_eq!(setup.channels[0].filters.len(), 2);
    assert!(shown("-e a --filter x==1").unwrap().filters.is_empty());
    assert_eq!(setup.tasks.pids.unwrap().value, [7]);
    assert!(setup.tasks.only_command.is_some());
    assert_eq!(setup.cpus.unwrap().value, "1");
    let (calls, _) = live("-e openat,mmap:*,sched_switch -x read");
    // The printer, not the kernel, distinguishes the calls of 32-bit programs.
    let expected =
        "syscall_entry_openat syscall_exit_openat mmap:* sched_switch !syscall_entry_read \
                    !syscall_exit_read compat_syscall_*_unknown";
    assert_eq!(
        summaries(&calls),
        [format!("channel0 1Mx4 discard {expected}")]
    );
    for words in ["-e openat --summary", "-e openat --filter dfd==3"] {
        let summaries = summaries(&live(words).0);
        assert!(!summaries[0].contains("compat"), "{words}: {summaries:?}");
    }
    // Signals and ends of threads are printed with all calls, and not with chosen ones.
    for words in ["-x read", "-Z", "-c", "-e read", "--filter ret<0"] {
        let summaries = summaries(&live(words).0);
        assert!(!summaries[0].contains("signal"), "{words}: {summaries:?}");
    }
    // The events that name the files of descriptors are recorded only where a line uses them.
    assert_eq!(shown("-e openat").unwrap().unprinted, [""; 0]);
    let unprinted = shown("-e openat,close,dup2").unwrap().unprinted;
    let replacing = ["dup3", "close_range", "execve", "execveat"];
    let processes = [
        "sched_process_fork",
        "sched_process_exit",
        "sched_process_exec",
    ];
    assert_eq!(unprinted[..3], processes);
    assert_eq!(unprinted[3..], replacing);
    for (words, files) in [
        ("-p 7", Sources::EventsAndProc),
        ("-C 1", Sources::None),
        ("-e read --filter fd==1", Sources::None),
        ("-i d", Sources::Events),
    ] {
        assert_eq!(shown(words).unwrap().files, files, "{words}");
    }
    assert_eq!(command, ["make", "-e", "d"]);
    assert!(matches!(shown("-i d").unwrap().input, Input::Recorded(_)));
    assert_eq!(shown("-i d").unwrap().summary(), None);
    assert_eq!(shown("--summary").unwrap().summary(), Some(15));
    assert_eq!(shown("--summary -n 0").unwrap().summary(), Some(usize::MAX));
    for words in [
        "-i d -b 64Kx4",
        "-i d -C 1",
        "-i d -G a",
        "-i d -N a",
        "-i d -- make",
        "--connect h:1 -b 64Kx4",
        "--connect h:1 -T a",
        "--connect h:1 -G a",
        "--connect h:1 -N a",
        "--filter x",
    ] {
        assert_eq!(shown(words).err().unwrap().exit_code(), 2, "{words}");
    }
}

#[test]
fn perfs_letters_are_taken() {
    let record = recorded("-a -g -F 400 -e profile --duration 1.5s");
    assert_eq!(record.setup.sample_frequency.unwrap().value, 400);
    let contexts = ["tid", "comm", "callstack-kernel", "callstack-user"];
    assert_eq!(record.setup.contexts.unwrap().value, contexts);
    assert!(record.symbols);
    let duration = std::time::Duration::from_millis(1500);
    assert_eq!(record.conditions.duration, Some(duration));
    let record = recorded("-g --context pid,callstack-user");
    let contexts = ["pid", "callstack-user", "callstack-kernel"];
    assert_eq!(record.setup.contexts.unwrap().value, contexts);
    assert!(recorded("-g --overwrite --snapshot-on signal:USR1").symbols);
    assert!(!recorded("-g --connect host:1").symbols);
}

#[test]
fn probes_say_whose_call_it_is() {
    let contexts = |words: &str| recorded(words).setup.contexts.unwrap().value;
    assert_eq!(contexts("-k do_sys_openat2"), ["tid", "comm"]);
    assert_eq!(contexts("-k do_sys_openat2 --context uid"), ["uid"]);
}

#[test]
fn functions_are_events_of_the_first_channel() {
    let record = recorded("-T vfs_*,do_* -T :mod:ext4 -N *lock* -e irq");
    let functions = &record.setup.functions;
    assert_eq!(functions.only, ["vfs_*", "do_*", ":mod:ext4"]);
    assert_eq!(functions.not, ["*lock*"]);
    assert!(record.setup.contexts.is_none());
    assert_eq!(first(record), ["irq", "ftrace:function"]);
    // A call in a graph needs its thread.
    let record = recorded("-G vfs_* -D 2");
    assert_eq!(record.setup.functions.max_depth, Some(2));
    assert_eq!(
        record.setup.contexts.as_ref().unwrap().value,
        ["tid", "comm"]
    );
    assert_eq!(first(record), ["ftrace:funcgraph_*"]);
    let record = recorded("-G vfs_* --context comm");
    assert_eq!(record.setup.contexts.unwrap().value, ["comm"]);
    for words in ["-T a -G b", "-N a", "-T a -D 1", "-G a -D 0", "-T ,"] {
        assert!(parse(words).is_err(), "{words}");
    }
}

/// The short help of a command fits a terminal of 80 columns and 24 lines.
#[test]
fn short_help_fits_one_screen() {
    fn too_long(command: &clap::Command) -> Vec<String> {
        // `help` lists all commands.
        let commands = command.get_subcommands();
        let commands = commands.filter(|command| command.get_name() != "help");
        let commands = commands.flat_map(|command| {
            let help = command.clone().term_width(80).render_help().to_string();
            let is_too_long = help.lines().count() > 24;
            let own = is_too_long.then_some(help);
            own.into_iter().chain(too_long(command))
        });
        commands.collect()
    }
    let mut command = Cli::command();
    command.build();
    let too_long = too_long(&command);
    assert!(too_long.is_empty(), "{}", too_long.join("\n\n"));
}
