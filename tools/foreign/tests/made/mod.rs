// SPDX-License-Identifier: GPL-2.0

//! Small files of trace-cmd and perf, made byte by byte. The fuzzer uses them, too.

#![allow(dead_code)]

use std::io::Write;

/// Common fields of ftrace's events.
const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// The number of each event.
pub const PRINT: u16 = 5;
pub const SWITCH: u16 = 300;
pub const ENTER: u16 = 20;
pub const EXIT: u16 = 21;

fn format(name: &str, id: u16, fields: &str) -> String {
    format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"\"\n")
}

fn print() -> String {
    format(
        "print",
        PRINT,
        "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
         \tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n",
    )
}

fn switch() -> String {
    format(
        "sched_switch",
        SWITCH,
        "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
         \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
         \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
         \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n",
    )
}

fn enter() -> String {
    format(
        "sys_enter",
        ENTER,
        "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
    )
}

fn exit() -> String {
    format(
        "sys_exit",
        EXIT,
        "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n",
    )
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// Bytes of a sub-buffer.
pub const PAGE: usize = 256;

fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    comm
}

fn common(id: u16, tid: i32) -> Vec<u8> {
    let mut record = id.to_le_bytes().to_vec();
    record.extend_from_slice(&[1, 2]);
    record.extend_from_slice(&tid.to_le_bytes());
    record
}

/// The record of a switch from one thread to another.
pub fn switch_record(prev: i32, next: i32) -> Vec<u8> {
    let mut record = common(SWITCH, prev);
    for (tid, name) in [(prev, "one"), (next, "two")] {
        record.extend_from_slice(&comm(name));
        record.extend_from_slice(&tid.to_le_bytes());
        record.extend_from_slice(&120_i32.to_le_bytes());
        if name == "one" {
            record.extend_from_slice(&1_u64.to_le_bytes());
        }
    }
    record
}

/// The record of the entry of a system call.
pub fn enter_record(tid: i32, call: u64, arguments: [u64; 6]) -> Vec<u8> {
    let mut record = common(ENTER, tid);
    for value in std::iter::once(call).chain(arguments) {
        record.extend_from_slice(&value.to_le_bytes());
    }
    record
}

/// The record of the exit of a system call.
pub fn exit_record(tid: i32, call: u64, ret: i64) -> Vec<u8> {
    let mut record = common(EXIT, tid);
    record.extend_from_slice(&call.to_le_bytes());
    record.extend_from_slice(&ret.to_le_bytes());
    record
}

/// The record of a text.
pub fn print_record(tid: i32, text: &str) -> Vec<u8> {
    let mut record = common(PRINT, tid);
    record.extend_from_slice(&0_u64.to_le_bytes());
    record.extend_from_slice(text.as_bytes());
    record.resize(record.len().next_multiple_of(4), 0);
    record
}

/// A sub-buffer that begins at a time, with records and their times after it, and a number of events missing before it.
pub fn page(time: u64, records: &[(u64, Vec<u8>)], missed: Option<u64>) -> Vec<u8> {
    let (mut data, mut now) = (Vec::new(), time);
    for (at, record) in records {
        assert_eq!(record.len() % 4, 0);
        let words = record.len() as u32 / 4;
        let delta = (at - now) as u32;
        now = *at;
        let kind = if words <= 28 { words } else { 0 };
        data.extend_from_slice(&(kind | (delta << 5)).to_le_bytes());
        if words > 28 {
            data.extend_from_slice(&(record.len() as u32 + 4).to_le_bytes());
        }
        data.extend_from_slice(record);
    }
    let mut commit = data.len() as u64;
    if missed.is_some() {
        commit |= (1 << 31) | (1 << 30);
    }
    let mut page = time.to_le_bytes().to_vec();
    page.extend_from_slice(&commit.to_le_bytes());
    page.extend_from_slice(&data);
    page.extend_from_slice(&missed.unwrap_or(0).to_le_bytes());
    assert!(page.len() <= PAGE, "{}", page.len());
    page.resize(PAGE, 0);
    page
}

/// The sub-buffers of CPUs 0 and 1.
pub fn pages() -> [Vec<u8>; 2] {
    let first = [
        page(
            1000,
            &[
                (1000, switch_record(7, 8)),
                (1010, enter_record(8, 0, [3, 0x1000, 64, 0, 0, 0])),
            ],
            None,
        ),
        page(
            1100,
            &[
                (1100, exit_record(8, 0, 64)),
                (1200, enter_record(8, 9999, [1; 6])),
            ],
            Some(5),
        ),
    ];
    let second = page(
        1005,
        &[
            (1005, print_record(9, "a text\n")),
            (1300, switch_record(9, 0)),
        ],
        None,
    );
    [first.concat(), second]
}

fn sized(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn header_part() -> Vec<u8> {
    let mut part = b"header_page\0".to_vec();
    sized(&mut part, HEADER_PAGE);
    part.extend_from_slice(b"header_event\0");
    sized(&mut part, "# compressed entry header\n");
    part
}

fn tracer_part() -> Vec<u8> {
    let mut part = 1_u32.to_le_bytes().to_vec();
    sized(&mut part, &print());
    part
}

fn events_part() -> Vec<u8> {
    let mut part = 2_u32.to_le_bytes().to_vec();
    for (system, events) in [
        ("sched", vec![switch()]),
        ("raw_syscalls", vec![enter(), exit()]),
    ] {
        part.extend_from_slice(system.as_bytes());
        part.push(0);
        part.extend_from_slice(&(events.len() as u32).to_le_bytes());
        events.iter().for_each(|event| sized(&mut part, event));
    }
    part
}

fn kallsyms_part() -> Vec<u8> {
    let text = "ffffffff81000000 T _stext\nffffffff81000100 t work\nffffffff81001000 T _etext\n";
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn comms_part() -> Vec<u8> {
    let mut part = Vec::new();
    sized(&mut part, "7 one\n8 two\n9 three\n");
    part
}

fn option(out: &mut Vec<u8>, id: u16, bytes: &[u8]) {
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn magic(version: &str) -> Vec<u8> {
    let mut file = b"\x17\x08\x44tracing".to_vec();
    file.extend_from_slice(version.as_bytes());
    file.extend_from_slice(&[0, 0, 8]);
    file.extend_from_slice(&(PAGE as u32).to_le_bytes());
    file
}

const UNAME: &[u8] = b"Linux box 7.2.1 #1 SMP x86_64";

/// A file of version 6.
pub fn trace_dat_6() -> Vec<u8> {
    let mut file = magic("6");
    let parts = [
        header_part(),
        tracer_part(),
        events_part(),
        kallsyms_part(),
        vec![0; 4],
        comms_part(),
    ];
    file.extend(parts.concat());
    file.extend_from_slice(&2_u32.to_le_bytes());
    file.extend_from_slice(b"options  \0");
    option(&mut file, 5, UNAME);
    option(&mut file, 4, b"[local] global counter");
    option(&mut file, 1, b"0x5AF3107A4000");
    option(&mut file, 2, b"CPU: 0\noverrun: 0\ndropped events: 9\n");
    file.extend_from_slice(&0_u16.to_le_bytes());
    file.extend_from_slice(b"flyrecord\0");
    let pages = pages();
    let mut at = (file.len() + 32).next_multiple_of(PAGE);
    for pages in &pages {
        file.extend_from_slice(&(at as u64).to_le_bytes());
        file.extend_from_slice(&(pages.len() as u64).to_le_bytes());
        at += pages.len();
    }
    file.resize(file.len().next_multiple_of(PAGE), 0);
    file.extend(pages.concat());
    file
}

/// Compresses bytes.
pub fn compress(compression: &str, bytes: &[u8]) -> Vec<u8> {
    if compression == "zstd" {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        return ruzstd::encoding::compress_to_vec(bytes, level);
    }
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A file of version 7, with this compression: `none`, `zlib` or `zstd`.
pub fn trace_dat_7(compression: &str) -> Vec<u8> {
    let is_compressed = compression != "none";
    let mut file = magic("7");
    file.extend_from_slice(compression.as_bytes());
    file.extend_from_slice(b"\x001\0");
    let place = file.len();
    file.extend_from_slice(&0_u64.to_le_bytes());
    let head = |id: u16, size: usize| {
        let mut head = id.to_le_bytes().to_vec();
        head.extend_from_slice(&u16::from(is_compressed).to_le_bytes());
        head.extend_from_slice(&0_u32.to_le_bytes());
        head.extend_from_slice(&(size as u64).to_le_bytes());
        head
    };
    let part = |id: u16, bytes: &[u8]| {
        if !is_compressed {
            return [head(id, bytes.len()), bytes.to_vec()].concat();
        }
        let stored = compress(compression, bytes);
        let mut part = head(id, stored.len() + 8);
        part.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        part.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        part.extend(stored);
        part
    };
    let mut options = Vec::new();
    for (id, bytes) in [
        (16, header_part()),
        (17, tracer_part()),
        (18, events_part()),
        (19, kallsyms_part()),
        (21, comms_part()),
    ] {
        option(&mut options, id, &(file.len() as u64).to_le_bytes());
        file.extend(part(id, &bytes));
    }
    option(&mut options, 5, UNAME);
    for (name, pages) in ["", "other"].into_iter().zip(pages()) {
        let begin = file.len();
        let mut data = pages.clone();
        if is_compressed {
            let stored = compress(compression, &pages);
            data = 1_u32.to_le_bytes().to_vec();
            data.extend_from_slice(&(stored.len() as u32).to_le_bytes());
            data.extend_from_slice(&(pages.len() as u32).to_le_bytes());
            data.extend(stored);
        }
        file.extend(head(3, data.len()));
        let at = file.len();
        file.extend_from_slice(&data);
        let mut buffer = (begin as u64).to_le_bytes().to_vec();
        buffer.extend_from_slice(name.as_bytes());
        buffer.extend_from_slice(b"\0local\0");
        buffer.extend_from_slice(&(PAGE as u32).to_le_bytes());
        buffer.extend_from_slice(&1_u32.to_le_bytes());
        buffer.extend_from_slice(&0_u32.to_le_bytes());
        buffer.extend_from_slice(&(at as u64).to_le_bytes());
        buffer.extend_from_slice(&(data.len() as u64).to_le_bytes());
        option(&mut options, 3, &buffer);
    }
    option(&mut options, 0, &0_u64.to_le_bytes());
    let at = file.len() as u64;
    file[place..place + 8].copy_from_slice(&at.to_le_bytes());
    file.extend(part(0, &options));
    file
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut record = kind.to_le_bytes().to_vec();
    record.extend_from_slice(&misc.to_le_bytes());
    record.extend_from_slice(&(body.len() as u16 + 8).to_le_bytes());
    record.extend_from_slice(body);
    record
}

fn longs(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Values of samples: id, address, thread, time, CPU, period, stack, record.
const SAMPLE: u64 = 0x1_05a7;

fn attribute(kind: u32, config: u64) -> Vec<u8> {
    let mut attribute = kind.to_le_bytes().to_vec();
    attribute.extend_from_slice(&128_u32.to_le_bytes());
    attribute.extend(longs(&[config, 1, SAMPLE, 0, 1 << 18]));
    attribute.resize(128, 0);
    attribute
}

fn sample(id: u64, time: u64, cpu: u64, stack: &[u64], raw: &[u8]) -> Vec<u8> {
    let mut body = longs(&[
        id,
        0xffff_ffff_8100_0110,
        7 | (8 << 32),
        time,
        cpu,
        1_000_000,
    ]);
    body.extend(longs(&[stack.len() as u64]));
    body.extend(longs(stack));
    body.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    body.extend_from_slice(raw);
    body.resize(body.len().next_multiple_of(8), 0);
    record(9, 0, &body)
}

/// The values at the end of other records.
fn end(time: u64, cpu: u64) -> Vec<u8> {
    longs(&[7 | (8 << 32), time, cpu, 1])
}

fn records() -> Vec<u8> {
    let name = |tid: u64, time, name: &[u8; 8]| {
        record(
            3,
            0,
            &[longs(&[7 | (tid << 32)]), name.to_vec(), end(time, 0)].concat(),
        )
    };
    let mut map = longs(&[7 | (7 << 32), 0x40_0000, 0x1000, 0, 8, 9, 10, 5 | (2 << 32)]);
    map.extend_from_slice(b"/bin/one");
    map.extend(longs(&[0]));
    map.extend(end(50, 0));
    let stack = [
        -128_i64 as u64,
        0xffff_ffff_8100_0110,
        -512_i64 as u64,
        0x40_0010,
        0x40_0020,
    ];
    [
        name(8, 0, b"first\0\0\0"),
        record(10, 0, &map),
        sample(1, 1000, 0, &stack, &[]),
        // Two records that are not in order.
        sample(2, 1020, 0, &[], &switch_record(8, 7)),
        sample(1, 1010, 0, &stack, &[]),
        name(8, 1015, b"second\0\0"),
        record(2, 0, &[longs(&[1, 6]), end(1030, 0)].concat()),
        sample(2, 1040, 0, &[], &switch_record(7, 8)),
        record(68, 0, &[]),
        sample(1, 1005, 1, &stack[2..], &[]),
    ]
    .concat()
}

fn tracing_data() -> Vec<u8> {
    let mut data = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    data.extend_from_slice(&4096_u32.to_le_bytes());
    data.extend([header_part(), tracer_part(), events_part()].concat());
    data.extend_from_slice(&[0; 16]);
    data.resize(data.len().next_multiple_of(8), 0);
    data
}

/// A file, whose samples are compressed or not.
pub fn perf_data(is_compressed: bool) -> Vec<u8> {
    let attributes = [attribute(1, 0), attribute(2, SWITCH.into())];
    let ids_at = 104;
    let attributes_at = ids_at + 16;
    let data_at = attributes_at + 2 * 144;
    let mut data = records();
    if is_compressed {
        // The stream has no end.
        let stored = compress("zstd", &data);
        let (first, second) = stored.split_at(stored.len() / 2);
        data = [record(81, 0, first), record(81, 0, second)].concat();
    }
    let mut file = MAGIC.to_vec();
    file.extend(longs(&[
        104,
        144,
        attributes_at as u64,
        2 * 144,
        data_at as u64,
        data.len() as u64,
        0,
        0,
    ]));
    file.extend(longs(&[(1 << 1) | (1 << 3) | (1 << 29), 0, 0, 0]));
    file.extend(longs(&[1, 2]));
    for (number, attribute) in (0..).zip(attributes) {
        file.extend(attribute);
        file.extend(longs(&[ids_at as u64 + 8 * number, 8]));
    }
    assert_eq!(file.len(), data_at);
    file.extend(&data);
    let tracing = tracing_data();
    let host = [&8_u32.to_le_bytes()[..], b"box\0\0\0\0\0"].concat();
    let clock = [longs(&[1 | (1 << 32)]), longs(&[1_000_000_001_000, 1000])].concat();
    let mut at = (file.len() + 3 * 16) as u64;
    for section in [&tracing, &host, &clock] {
        file.extend(longs(&[at, section.len() as u64]));
        at += section.len() as u64;
    }
    file.extend([tracing, host, clock].concat());
    file
}

const MAGIC: &[u8; 8] = b"PERFILE2";

/// The same records from a pipe.
pub fn perf_pipe() -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(longs(&[16]));
    for (id, attribute) in (1..).zip([attribute(1, 0), attribute(2, SWITCH.into())]) {
        file.extend(record(64, 0, &[attribute, longs(&[id])].concat()));
    }
    let tracing = tracing_data();
    let size = [(tracing.len() as u32).to_le_bytes(), [0; 4]].concat();
    file.extend(record(66, 0, &size));
    file.extend(tracing);
    file.extend(records());
    file
}
