// SPDX-License-Identifier: GPL-2.0

//! Reads files of trace-cmd and perf that are made byte by byte.

mod made;

use ctf::{Event, Item, Merge, Value};
use foreign::Opened;
use std::io::Write;
use std::sync::Arc;
use system::Error;
use tempfile::NamedTempFile;

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn value(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(number) => number.to_string(),
        Value::Signed(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
        Value::Integers(integers) => {
            let integers: Vec<_> = integers.map(self::value).collect();
            format!("[{}]", integers.join(","))
        }
    }
}

fn line(event: &Event<'_>) -> String {
    let mut line = format!("{} {}", event.timestamp, event.layout.name);
    let is_shown = |name: &str| !name.starts_with('_') && !name.starts_with("common");
    for (field, shown) in event.contexts().chain(event.fields()) {
        if is_shown(&field.name) {
            line += &format!(" {}={}", field.name, value(shown));
        }
    }
    line
}

/// The events, losses and damaged places of a trace.
fn lines(opened: Opened) -> Vec<String> {
    let metadata = Arc::new(opened.metadata);
    let streams = opened.streams.iter().map(std::slice::from_ref);
    let mut merge = Merge::new(&metadata, streams).unwrap();
    let mut lines = Vec::new();
    while let Some((stream, item)) = merge.next_item().unwrap() {
        match item {
            Item::Event(event) => lines.push(format!("{stream}: {}", line(&event))),
            Item::Packet(packet) if packet.packets_lost + packet.events_lost > 0 => {
                lines.push(format!("{stream}: loss"))
            }
            Item::Damaged { damage, .. } => {
                lines.push(format!("{stream}: damaged: {}", damage.what))
            }
            _ => {}
        }
    }
    lines
}

fn read(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let file = file(bytes);
    let opened = foreign::open(file.path()).unwrap().expect("a known format");
    let notes = opened.notes.clone();
    (lines(opened), notes)
}

const SWITCH: &str =
    "prev_comm=one prev_tid=7 prev_prio=120 prev_state=1 next_comm=two next_tid=8 next_prio=120";

#[test]
fn both_versions_of_trace_dat_have_the_same_events() {
    let expected = [
        format!("0: 1000 sched_switch tid=7 {SWITCH}"),
        "1: 1005 print tid=9 ip=0 buf=a text".to_owned(),
        "0: 1010 syscall_entry_read tid=8 fd=3 buf=4096 count=64".to_owned(),
        "0: loss".to_owned(),
        "0: 1100 syscall_exit_read tid=8 ret=64".to_owned(),
        "0: 1200 syscall_entry_unknown tid=8 id=9999 args=[1,1,1,1,1,1]".to_owned(),
        "1: 1300 sched_switch tid=9 prev_comm=one prev_tid=9 prev_prio=120 prev_state=1 next_comm=two next_tid=0 next_prio=120".to_owned(),
    ];
    for bytes in [
        made::trace_dat_6(),
        made::trace_dat_7("none"),
        made::trace_dat_7("zlib"),
        made::trace_dat_7("zstd"),
    ] {
        let (lines, _) = read(&bytes);
        assert_eq!(lines, expected);
    }
}

#[test]
fn trace_dat_tells_its_machine_clock_and_losses() {
    let file = file(&made::trace_dat_6());
    let opened = foreign::open(file.path()).unwrap().unwrap();
    assert_eq!(opened.metadata.env["hostname"], "box");
    assert_eq!(opened.metadata.env["kernel_release"], "7.2.1");
    // The recorder wrote microseconds.
    assert_eq!(
        opened.metadata.clock.since_epoch(1),
        0x5AF3107A4000 * 1000 + 1
    );
    assert!(
        opened.notes[0].contains("9 lost events, the events themselves show 5"),
        "{:?}",
        opened.notes
    );
    assert!(opened
        .metadata
        .foreign
        .unwrap()
        .kallsyms()
        .unwrap()
        .contains("work"));
}

#[test]
fn an_event_is_declared_where_it_occurs() {
    let file = file(&made::trace_dat_7("none"));
    let opened = foreign::open(file.path()).unwrap().unwrap();
    let names = |class: usize| {
        let events = opened.metadata.streams[class].events.values();
        let names: Vec<_> = events.map(|event| event.name.as_str()).collect();
        names
    };
    assert!(
        names(0).contains(&"syscall_entry_read") && names(0).contains(&"syscall_exit_close_range")
    );
    assert!(!names(0).contains(&"print"));
    assert_eq!(names(1), ["print", "sched_switch"]);
    let streams: Vec<_> = opened
        .streams
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    assert_eq!(streams, ["trace_cpu0", "other_cpu0"]);
}

#[test]
fn records_of_perf_are_in_order_with_names_and_stacks() {
    let kernel = 0xffff_ffff_8100_0110_u64;
    let sample = |time: u64, comm: &str, stack: &str| {
        format!(
            "{time} profile_cpu_clock pid=7 tid=8 procname={comm} callstack_kernel=[{stack}] \
             callstack_user=[4194320,4194336] ip={kernel} period=1000000"
        )
    };
    let switch = |time: u64, [prev, next]: [u64; 2]| {
        format!(
            "{time} sched_switch pid=7 tid=8 procname=second callstack_kernel=[] callstack_user=[] prev_comm=one \
             prev_tid={prev} prev_prio=120 prev_state=1 next_comm=two next_tid={next} next_prio=120"
        )
    };
    let expected = [
        format!("0: {}", sample(1000, "first", &kernel.to_string())),
        format!("1: {}", sample(1005, "first", "")),
        format!("0: {}", sample(1010, "first", &kernel.to_string())),
        format!("0: {}", switch(1020, [8, 7])),
        "0: loss".to_owned(),
        format!("0: {}", switch(1040, [7, 8])),
    ];
    for bytes in [
        made::perf_data(false),
        made::perf_data(true),
        made::perf_pipe(),
    ] {
        let (lines, notes) = read(&bytes);
        assert_eq!(lines, expected);
        assert_eq!(notes, [""; 0]);
    }
    let file = file(&made::perf_data(false));
    let opened = foreign::open(file.path()).unwrap().unwrap();
    assert_eq!(opened.metadata.clock.since_epoch(0), 1_000_000_000_000);
    assert_eq!(opened.metadata.env["hostname"], "box");
    let mappings = opened
        .metadata
        .foreign
        .unwrap()
        .mappings()
        .unwrap()
        .to_owned();
    assert!(
        mappings.ends_with("map 50 7 400000 1000 0 - /bin/one\n"),
        "{mappings}"
    );
}

#[test]
fn cut_files_are_refused_or_reported() {
    for bytes in [
        made::trace_dat_6(),
        made::trace_dat_7("none"),
        made::trace_dat_7("zlib"),
        made::trace_dat_7("zstd"),
        made::perf_data(false),
        made::perf_data(true),
        made::perf_pipe(),
    ] {
        for length in (10..bytes.len()).step_by(17) {
            let file = file(&bytes[..length]);
            match foreign::open(file.path()) {
                Ok(Some(opened)) => drop(lines(opened)),
                Ok(None) => panic!("the format is known from the first bytes"),
                Err(error @ (Error::Corrupt { .. } | Error::Read { .. })) => {
                    let path = file.path().display().to_string();
                    assert!(error.to_string().contains(&path), "{error}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn what_cannot_be_read_has_a_reason() {
    let mut big = made::trace_dat_6();
    big[12] = 1;
    let mut old = made::trace_dat_6();
    old[10] = b'5';
    let mut unknown = made::trace_dat_7("none");
    unknown[18..22].copy_from_slice(b"lzma");
    for (bytes, reason) in [
        (big, "big-endian"),
        (old, "version `5`"),
        (unknown, "compressed by `lzma`"),
        (b"2ELIFREP".to_vec(), "big-endian"),
    ] {
        let file = file(&bytes);
        let error = foreign::open(file.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_damaged_sub_buffer_is_reported_and_the_next_one_read() {
    let mut bytes = made::trace_dat_6();
    let pages = made::pages().concat();
    let at = bytes.len() - pages.len();
    // The second record of the first sub-buffer is longer than the sub-buffer.
    bytes[at + 16 + 4 + 64] = 0;
    let (lines, _) = read(&bytes);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("0: damaged: a record of")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("syscall_exit_read")),
        "{lines:?}"
    );
}
