// SPDX-License-Identifier: GPL-2.0

//! How the stacks of programs ended, in each view of a synthetic trace. `tool/profile` of the selftests does the same
//! with a recorded one.

use assert_cmd::Command;
use flate2::read::GzDecoder;
use rtrace_abi::header::Layout;
use serde_json::{json, Value};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use synthetic::{Machine, PacketBuilder, SAMPLE};
use tempfile::TempDir;

/// Microseconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;

/// An address of the kernel.
const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// The user stacks and the numbers of their ends: whole, guessed, cut, cut and guessed, of a newer module, of a thread
/// of the kernel. Some have addresses where no code can be.
const STACKS: [(&[u64], u8); 8] = [
    (&[0x3, 0x2], 0),
    (&[0x3, 0x2], 0),
    (&[0x4, 0x2], 16),
    (&[0x3], 3),
    (&[0x3, 0, KERNEL, 1 << 60, u64::MAX], 3),
    (&[0x5, 0x3], 20),
    (&[0x6], 99),
    (&[], 0),
];

/// Writes a sample for each stack. `has_end`: with the context `callstack_user_end`.
fn write(dir: &Path, has_end: bool) {
    let mut packet = PacketBuilder::new(Layout::Compact, 0, 0, 0);
    for (place, (stack, end)) in STACKS.iter().enumerate() {
        let mut record = 7_i32.to_le_bytes().to_vec();
        record.extend(*b"my task\0\0\0\0\0\0\0\0\0");
        record.extend((stack.len() as u32).to_le_bytes());
        record.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
        if has_end {
            record.push(*end);
        }
        record.extend(KERNEL.to_le_bytes());
        packet = packet.event(SAMPLE, (1 + place as u64) * US, &record);
    }
    let machine = Machine {
        is_sampled: true,
        ..Machine::default()
    };
    let streams = [(0, vec![packet.close(100 * US, 8)])];
    synthetic::write_of(dir, machine, Layout::Compact, &streams).unwrap();
    let path = dir.join("metadata");
    let description = fs::read_to_string(&path).unwrap();
    let integer = |size, signed, rest: &str| {
        format!("\t\tinteger {{ size = {size}; align = 8; signed = {signed}; {rest}}}")
    };
    let end = match has_end {
        true => {
            "\t\tenum : integer { size = 8; align = 8; signed = false; } { \
             \"whole\" = 0, \"no_table\" = 3, \"guessed_whole\" = 16, \"guessed_no_rules\" = 20 } _callstack_user_end;\n"
        }
        false => "",
    };
    let contexts = format!(
        "\tevent.context := struct {{\n{} _tid;\n{} _procname[16];\n{} __callstack_user_length;\n\
         {} _callstack_user[__callstack_user_length];\n{end}\t}};\n\tpacket.context",
        integer(32, true, ""),
        integer(8, false, "encoding = UTF8; "),
        integer(32, false, ""),
        integer(64, false, "base = 16; "),
    );
    let description = description.replacen("\tpacket.context", &contexts, 1);
    fs::write(&path, description).unwrap();
}

fn rtrace(words: &[&str], dir: &Path) -> String {
    let mut command = Command::cargo_bin("rtrace").unwrap();
    let output = command.args(words).arg(dir).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn profile(dir: &Path) -> Value {
    let text = rtrace(&["report", "--profile", "--json", "-n", "0"], dir);
    serde_json::from_str::<Value>(&text).unwrap()["profile"].clone()
}

#[test]
fn the_sums_say_how_many_stacks_are_whole() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), true);
    let text = rtrace(&["report", "--profile", "-n", "0"], dir.path());
    let sums = "28.6% of 7 stacks of programs are whole; 28.6% cut: no table yet; 14.3% cut: code without rules; \
                14.3% cut: unknown reason; 14.3% guessed by frame pointers.\n";
    assert!(text.contains(sums), "{text}");
    assert!(
        text.contains("       0    0.0%   25.0%  [cut: no table yet]\n"),
        "{text}"
    );
    let profile = profile(dir.path());
    let cut =
        |reason, stacks, guessed| json!({"reason": reason, "stacks": stacks, "guessed": guessed});
    assert_eq!(
        profile["user_stacks"],
        json!({
            "total": 7, "whole": 2, "guessed": 1,
            "cut": [
                cut("no table yet", 2, 0),
                cut("code without rules", 1, 1),
                cut("unknown reason", 1, 0),
            ],
        })
    );
}

#[test]
fn a_cut_stack_begins_with_the_reason() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), true);
    let trace = dir.path();
    assert_eq!(
        rtrace(&["export", "folded"], trace),
        "my_task;0x2;0x3 2\n\
         my_task;0x2;0x4 1\n\
         my_task;[cut: code without rules, guessed];0x3;0x5 1\n\
         my_task;[cut: no table yet];0x3 2\n\
         my_task;[cut: unknown reason];0x6 1\n"
    );
    let picture = rtrace(&["export", "flamegraph"], trace);
    assert!(
        picture.contains("[cut: no table yet] (2 samples"),
        "{picture}"
    );
    let script = rtrace(&["export", "perf-script"], trace);
    let frames = "\t               3 [unknown] ([unknown])\n\t               0 [cut: no table yet] ([unknown])\n\n";
    assert_eq!(script.matches(frames).count(), 2, "{script}");
    assert_eq!(script.matches("[cut: ").count(), 4, "{script}");
    let text = rtrace(&["export", "text"], trace);
    let frames = " =>  <0000000000000003>\n => [cut: no table yet]\n";
    assert_eq!(text.matches(frames).count(), 2, "{text}");
    let out = TempDir::new().unwrap();
    let mut pprof = Vec::new();
    let file = out.path().join("profile.pb.gz");
    rtrace(&["export", "pprof", "-o", file.to_str().unwrap()], trace);
    let mut packed = GzDecoder::new(File::open(&file).unwrap());
    packed.read_to_end(&mut pprof).unwrap();
    let pprof = String::from_utf8_lossy(&pprof).into_owned();
    assert_eq!(pprof.matches("[cut: no table yet]").count(), 1, "{pprof}");
    let sql = "SELECT stack, count(*) FROM samples GROUP BY stack ORDER BY stack DESC LIMIT 1";
    let rows = rtrace(&["query", "--format", "csv", sql], trace);
    assert!(rows.contains("[cut: unknown reason];?,1"), "{rows}");
    let page = out.path().join("page.html");
    rtrace(&["report", "--html", page.to_str().unwrap()], trace);
    let page = fs::read_to_string(&page).unwrap();
    for reason in [
        "no table yet",
        "code without rules, guessed",
        "unknown reason",
    ] {
        assert!(page.contains(&format!("\"[cut: {reason}]\"")), "{reason}");
    }
}

#[test]
fn impossible_addresses_are_no_frames() {
    for has_end in [true, false] {
        let dir = TempDir::new().unwrap();
        write(dir.path(), has_end);
        for format in ["folded", "perf-script", "text"] {
            let text = rtrace(&["export", format], dir.path());
            let lines = text.lines().filter(|line| !line.contains("profile"));
            for line in lines {
                assert!(!line.contains("ffffffff"), "{format}: {line}");
                assert!(
                    !line.contains(";0x0;") && !line.contains(";0x1000000000000000"),
                    "{line}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_said_of_an_older_trace() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), false);
    let text = rtrace(&["report", "--profile"], dir.path());
    assert!(!text.contains("whole") && !text.contains("cut"), "{text}");
    assert!(profile(dir.path()).get("user_stacks").is_none());
    assert_eq!(
        rtrace(&["export", "folded"], dir.path()),
        "my_task;0x2;0x3 2\nmy_task;0x2;0x4 1\nmy_task;0x3 2\nmy_task;0x3;0x5 1\nmy_task;0x6 1\n"
    );
    assert!(!rtrace(&["export", "perf-script"], dir.path()).contains("cut"));
}

#[test]
fn inlined_functions_are_frames_of_their_own() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), true);
    let trace = synthetic::uuid_text(synthetic::UUID);
    let mappings =
        format!("rtrace mappings 1\ntrace {trace}\nclock 1 1\nmap 0 7 0 10 0 ab /bin/program\n");
    fs::write(dir.path().join(".mappings"), mappings).unwrap();
    // A caller continues after its call, so its code is one byte before its address.
    let symbols = format!(
        "rtrace symbols 3\ntrace {trace}\nfile ab /bin/program\n1 1 main\n3 4 work\n\
         inlined 3 inner\ninlined 3 middle\ninlined 1 setup;all\n"
    );
    fs::write(dir.path().join(".symbols"), symbols).unwrap();
    let folded = rtrace(&["export", "folded"], dir.path());
    let whole = "my_task;main;setup:all (inlined);work;middle (inlined);inner (inlined) 2\n";
    assert!(folded.contains(whole), "{folded}");
    let script = rtrace(&["export", "perf-script"], dir.path());
    let frames = "\t               3 inner (inlined)\n\t               3 middle (inlined)\n\
                  \t               3 work+0x0 (/bin/program)\n";
    assert!(script.contains(frames), "{script}");
    let text = rtrace(&["report", "--profile", "-n", "0"], dir.path());
    let own = "       4   50.0%   50.0%  inner (inlined)  program\n";
    assert!(text.contains(own), "{text}");
    let sql = "SELECT function, stack FROM samples LIMIT 1";
    let row = rtrace(&["query", "--format", "csv", sql], dir.path());
    let stack = "inner (inlined),main;setup:all (inlined);work;middle (inlined);inner (inlined)\n";
    assert!(row.contains(stack), "{row}");
    let out = TempDir::new().unwrap();
    let page = out.path().join("page.html");
    rtrace(&["report", "--html", page.to_str().unwrap()], dir.path());
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("\"inner (inlined) [program]\""));
}
