// SPDX-License-Identifier: GPL-2.0

//! Events that patterns select. (The fuzzer checks the matcher for any pattern, in
//! `tools/fuzz/src/target/patterns.rs`.)

use rtrace_input::glob;
use rtrace_input::pattern::Pattern;

/// Cases for which the kernel's `glob_match()` gives the same results.
#[test]
fn globs_are_those_of_the_kernel() {
    for (pattern, matching, others) in [
        ("", &[""][..], &["a"][..]),
        ("a", &["a"], &["", "b", "aa"]),
        ("?", &["a", "*"], &["", "ab"]),
        ("*", &["", "a", "ab"], &[]),
        ("*??", &["ab", "abc"], &["", "a"]),
        ("?*?", &["ab", "abc"], &["", "a"]),
        ("a*a", &["aa", "aba", "aaa"], &["a", "ab", "aab"]),
        ("*ab*cd*", &["abcd", "aabcabdcd"], &["abcab", "cdab"]),
        ("*aab", &["aab", "aaab", "aabaab"], &["ab", "aaba"]),
        // Classes: ranges, brackets and dashes as members, and negated classes.
        ("[ab]c", &["ac", "bc"], &["c", "cc", "abc"]),
        ("[a-c]", &["a", "b", "c"], &["", "d", "-", "ab"]),
        ("[!a-c]", &["d", "!", "-"], &["", "a", "b", "c"]),
        ("[c-a]", &[], &["a", "b", "c", "-"]),
        ("[a-c-e-g]", &["b", "-", "f"], &["d"]),
        ("[]-a]", &["]", "^", "a"], &["-", "b"]),
        ("[]a]", &["]", "a"], &["[", "b"]),
        ("[!]a]", &["[", "b"], &["]", "a"]),
        ("[a-]", &["a", "-"], &["]", "b"]),
        ("[^a]", &["^", "a"], &["b"]),
        ("[*?]", &["*", "?"], &["a"]),
        (r"[\]", &[r"\"], &["]"]),
        ("*[0-9]", &["a1", "1"], &["", "1a"]),
        // A class that is not closed is no class.
        ("[", &["["], &["", "a"]),
        ("[]", &["[]"], &["[", "]"]),
        ("[!]", &["[!]"], &["a", "!"]),
        ("[a-", &["[a-"], &["a", "-"]),
        ("[a*", &["[a", "[ab"], &["a"]),
        // A backslash removes the special meaning of the next character.
        (r"\*", &["*"], &["a", r"\", r"\*"]),
        (r"\[a]", &["[a]"], &["a"]),
        (r"\a", &["a"], &[r"\a"]),
        (r"a\", &["a"], &[r"a\", "ab"]),
    ] {
        for text in matching {
            assert!(glob::matches(pattern, text), "{pattern} {text}");
        }
        let lens = matching.iter().map(|text| text.len());
        if let Some(shortest) = lens.min() {
            assert_eq!(glob::shortest(pattern), shortest, "{pattern}");
        }
        for text in others {
            assert!(!glob::matches(pattern, text), "{pattern} {text}");
        }
    }
}

#[test]
fn patterns_pick_by_event_or_by_subsystem() {
    for (pattern, event, expected) in [
        ("sched:sched_switch", "sched:sched_switch", true),
        ("sched:*", "sched:sched_switch", true),
        ("sched:*", "irq:softirq_entry", false),
        ("sched_switch", "sched:sched_switch", true),
        ("sched", "sched:sched_switch", true),
        ("!sched", "sched:sched_switch", true),
        ("*:*", "irq:softirq_entry", true),
        ("*entry*", "syscalls:syscall_entry_read", true),
        ("*_re?d", "syscalls:syscall_entry_read", true),
        ("*_re?d", "syscalls:syscall_entry_ready", false),
        ("[a-m]*:*", "irq:softirq_entry", true),
        ("[a-m]*:*", "sched:sched_switch", false),
        ("s*entry", "sched:sched_entry", true),
        ("s*:*:*", "sched:sched_entry", false),
        ("", "a:b", false),
        (":", "a:b", false),
    ] {
        let (subsystem, name) = event.split_once(':').unwrap();
        let pattern = Pattern::parse(pattern);
        assert_eq!(
            pattern.matches(subsystem, name),
            expected,
            "{pattern} {event}"
        );
    }
}

#[test]
fn only_a_whole_name_is_one() {
    for (pattern, expected) in [
        ("xfs:xfs_buf_read", Some(("xfs", "xfs_buf_read"))),
        ("!xfs:xfs_buf_read", Some(("xfs", "xfs_buf_read"))),
        ("xfs_buf_read", None),
        ("xfs:", None),
        (":xfs_buf_read", None),
        ("xfs:xfs_*", None),
        ("x?s:xfs_buf_read", None),
        ("xfs:xfs_buf_[r]ead", None),
        ("xfs:xfs\\_buf_read", None),
    ] {
        assert_eq!(Pattern::parse(pattern).full_name(), expected, "{pattern}");
    }
}

#[test]
fn a_subsystem_is_named_or_matched() {
    for (pattern, expected) in [
        ("xfs:*", true),
        ("!xfs:xfs_*", true),
        // That may be one.
        ("xfs", true),
        ("xfs*", false),
        ("x?s:xfs_buf_read", false),
        ("*:*", false),
        (":*", false),
    ] {
        assert_eq!(
            Pattern::parse(pattern).names_subsystem(),
            expected,
            "{pattern}"
        );
    }
}

#[test]
fn patterns_of_programs() {
    for (pattern, expected) in [
        ("user.*", true),
        ("user.a:b", true),
        ("user.a", true),
        ("!user.*:*", true),
        ("user*", false),
        ("*:*", false),
        ("userx:b", false),
        ("a:user.b", false),
    ] {
        assert_eq!(
            Pattern::parse(pattern).is_of_programs(),
            expected,
            "{pattern}"
        );
    }
    for (wide, narrow, expected) in [
        ("*:*", "user.*", true),
        ("*", "user.a", true),
        ("user.*", "user.a:b", true),
        ("user.*", "user.[ab]?:x", true),
        ("user.*", "user.*", true),
        ("user.a", "user.a:*", true),
        ("user.a:*", "user.a", true),
        ("user.a:b", "user.a", false),
        ("user.?:x", "user.*:x", false),
        ("user.?:x", "user.a:x", false),
        ("user.b*", "user.*", false),
        ("*:a", "user.*", false),
    ] {
        let covers = Pattern::parse(wide).covers(&Pattern::parse(narrow));
        assert_eq!(covers, expected, "{wide} {narrow}");
    }
}
