// SPDX-License-Identifier: GPL-2.0

//! The first inputs of all targets: valid ones, and one for each kind of error that a fuzzer takes long to
//! find. `examples/seeds.rs` writes them into `corpus/`.

use crate::made_elf::{frame, ARM64, X86_64};
use crate::made_files;
use crate::target::eh_frame::around;
use consumer::State;
use ctf::StreamName;
use network::message::Message;
use network::{Hello, Sent};
use rtrace_abi::header::Layout;
use rtrace_abi::packet::PacketHeader;
use std::mem::offset_of;
use synthetic::{metadata, metadata_of, PacketBuilder, FAR, SOFTIRQ, UUID};
use uuid::Uuid;

/// An input of a target.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Name of the target.
    pub target: &'static str,
    /// Name of the file.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

const LAYOUTS: [Layout; 2] = [Layout::Compact, Layout::Large];
const BEGIN: u64 = 1 << 40;

/// All inputs. Each call returns the same.
pub fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut add = |target, name: &str, bytes: Vec<u8>| {
        let name = name.to_owned();
        seeds.push(Seed {
            target,
            name,
            bytes,
        });
    };
    for (byte, layout) in (0..).zip(LAYOUTS) {
        let name = format!("{layout:?}").to_lowercase();
        let (text, events) = (metadata(UUID, layout), events(layout));
        add("metadata", &name, text.clone().into_bytes());
        add("packets", &name, [&[byte], &*stream(layout)].concat());
        add("events", &name, in_packet(byte, &events));
        add("trace", &name, [text.as_bytes(), &[0], &events].concat());
    }
    let both = metadata_of(UUID, &LAYOUTS);
    add("metadata", "channels", both.clone().into_bytes());
    add(
        "trace",
        "channels",
        [both.as_bytes(), &[0], &self::events(Layout::Large)].concat(),
    );
    for (name, bytes) in wrong_metadata(&both) {
        add("metadata", name, bytes);
    }
    for (name, bytes) in other_packets() {
        add("packets", name, [vec![1], bytes].concat());
    }
    let events = events(Layout::Large);
    add("region", "sound", Vec::new());
    for (name, place, word) in region_changes() {
        add(
            "region",
            name,
            [&u16::to_le_bytes(place)[..], &u64::to_le_bytes(word)].concat(),
        );
    }
    for (name, bytes) in rings() {
        add("rings", name, bytes);
    }
    add("events", "cut", in_packet(1, &events[..events.len() - 2]));
    add("events", "unknown", in_packet(1, &[9; 6]));
    add("events", "late", in_packet(0, &[0; 4]));
    add("events", "noise", in_packet(0, &noise(1, 400, &ALL)));
    let text = metadata(UUID, Layout::Large);
    add(
        "trace",
        "cut",
        [text.as_bytes(), &[0], &events[..9]].concat(),
    );
    add("trace", "fields", fields());
    add("description", "letters", vec![b'a'; 400]);
    for (seed, length) in [(1, 60), (2, 200), (3, 600), (4, 1500)] {
        add(
            "description",
            &format!("noise-{length}"),
            noise(seed, length, &ALL),
        );
        let texts = noise(seed, length, br#"aZ_9 "\{};=/*"#);
        add("description", &format!("texts-{length}"), texts);
    }
    for (target, name, text) in TEXTS {
        add(target, name, text.as_bytes().to_vec());
    }
    for (name, bytes) in frames() {
        add("frames", name, bytes);
    }
    let trace = synthetic::uuid_text(UUID);
    for (name, text) in BESIDE {
        add("beside", name, text.replace("UUID", &trace).into_bytes());
    }
    for (name, bytes) in sessions() {
        add("receiver", name, bytes);
    }
    for (name, bytes) in programs() {
        add("eh_frame", name, bytes);
    }
    for (name, bytes) in tables() {
        add("unwind_blob", name, bytes);
    }
    for (name, file) in [
        ("version-6", made_files::trace_dat_6()),
        ("version-7", made_files::trace_dat_7("none")),
        ("zlib", made_files::trace_dat_7("zlib")),
        ("zstd", made_files::trace_dat_7("zstd")),
    ] {
        add("trace_dat", name, file[10..].to_vec());
    }
    for (name, file) in [
        ("file", made_files::perf_data(false)),
        ("compressed", made_files::perf_data(true)),
        ("pipe", made_files::perf_pipe()),
    ] {
        add("perf_data", name, file[8..].to_vec());
    }
    let most = u64::MAX;
    let largest = format!("cpu recorded full nested\ntotal {most} {most} {most}\n");
    add("stats", "largest", largest.into_bytes());
    seeds
}

/// Rings: valid records, a wrong event, a length that is cut, a head that is too far.
fn rings() -> Vec<(&'static str, Vec<u8>)> {
    let record = |words: u64, event: u64, fields: &[u8]| {
        let mut bytes = [7, words | (event << 10)].map(u64::to_le_bytes).concat();
        bytes.extend(fields);
        bytes
    };
    let number = record(3, 0, &[9; 8]);
    let text = record(4, 1, b"1234text\0.......");
    let sequence = record(4, 2, b"\x02\0\0\0abcdef\0x....");
    let valid = [number.clone(), text, sequence].concat();
    let step = |words: u16, bytes: &[u8]| [&words.to_le_bytes()[..], bytes].concat();
    vec![
        ("valid", step(11, &valid)),
        ("event", step(3, &record(3, 9, &[0; 8]))),
        ("cut", step(3, &record(5, 0, &[0; 8]))),
        ("far", step(0x7fff, &number)),
        ("twice", [step(3, &number), step(3, &number)].concat()),
    ]
}

/// Functions with each kind of rule, as call frame information.
fn functions(is_eh: bool, machine: u16) -> Vec<u8> {
    let arm = machine == ARM64;
    let common: &[u8] = if arm {
        &[0x0c, 31, 0]
    } else {
        &[0x0c, 7, 8, 0x90, 1]
    };
    let pushed: &[u8] = if arm {
        &[0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x0d, 29]
    } else {
        &[
            0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0x0a, 0x0c, 7, 8, 0x44, 0x0b,
        ]
    };
    // The frame of a realigned stack, of a procedure linkage table, of a signal, and of rbx.
    let realigned = [0x0f, 3, 0x76, 0x78, 6, 0x10, 6, 2, 0x76, 0];
    let plt = [
        0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
    ];
    let loaded = [0x0f, 5, 0x77, 0x18, 6, 0x23, 8];
    frame(
        is_eh,
        machine,
        common,
        &[
            (0x1080, 0x80, pushed),
            (0x1100, 0x40, &realigned),
            (0x1140, 0x40, &plt),
            (0x1180, 0x30, &loaded),
            (0x1200, 0x40, &[0x0c, 3, 16, 0x83, 3]),
            (0x1240, 0x40, &[0x07, if arm { 30 } else { 16 }]),
            (0x4_1000, 0x1000, &[0x09, 16, 5]),
            (0x5_0f00, 0x100, pushed),
        ],
    )
}

/// Programs with unwind information.
fn programs() -> Vec<(&'static str, Vec<u8>)> {
    let kind = |kind: u8, bytes: Vec<u8>| [vec![kind], bytes].concat();
    vec![
        ("eh-frame", kind(9, functions(true, X86_64))),
        ("eh-frame-arm64", kind(5, functions(true, ARM64))),
        ("debug-frame", kind(2, functions(false, X86_64))),
        ("debug-frame-arm64", kind(6, functions(false, ARM64))),
        (
            "file",
            kind(0, around(1, &functions(true, X86_64))[..0x800].to_vec()),
        ),
        ("none", kind(1, Vec::new())),
        ("packed", kind(17, packed(&functions(true, X86_64)))),
    ]
}

/// The contents of a section with a compression header: zlib, one block that is stored as it is.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let (mut low, mut high) = (1, 0);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    let size = bytes.len() as u16;
    let header = [1, u64::from(size), 1].map(u64::to_le_bytes).concat();
    let block = [
        &[0x78, 1, 1][..],
        &size.to_le_bytes(),
        &(!size).to_le_bytes(),
    ]
    .concat();
    [&header, &block, bytes, &((high << 16) | low).to_be_bytes()].concat()
}

/// Unwind tables after the bytes that control the target.
fn tables() -> Vec<(&'static str, Vec<u8>)> {
    let compiled = |kind: u8, machine| {
        let file = around(kind, &functions(true, machine));
        unwind::compile(&file).expect("a program")
    };
    let after = |control: [u8; 8], bytes: &[u8]| [&control, bytes].concat();
    let (program, arm) = (compiled(1, X86_64), compiled(5, ARM64));
    vec![
        ("table", after([0x90, 0, 0, 0, 0, 0, 0, 0], &program)),
        ("arm64", after([0x90, 0, 0, 0, 0, 0, 0, 0], &arm)),
        ("cut", after([0; 8], &program[..program.len() - 1])),
        // As the header of the table has them.
        ("body", after(numbers(&program), &program[64..])),
        ("body-arm64", after(numbers(&arm), &arm[64..])),
    ]
}

/// The control bytes that give the header of a table.
fn numbers(table: &[u8]) -> [u8; 8] {
    let low = |at: usize| table[at];
    [
        low(5) - 1,
        low(9),
        low(16),
        low(17),
        low(20),
        low(24),
        low(28),
        low(32),
    ]
}

/// Texts in files beside a trace.
const BESIDE: [(&str, &str); 14] = [
    (
        "mappings-sound",
        "rtrace mappings 1\ntrace UUID\nclock 5 105\n\
         map 7 12 1000 2000 3000 12ab /bin/a b\nmap 8 12 2000 1000 0 - [heap]\n\
         fork 9 13 13 12\nfork 9 12 14 12\nexec 10 13\nexit 11 12 14\nlost 12 3\nnews 13\n",
    ),
    (
        "mappings-relative",
        "rtrace mappings 1\ntrace UUID\nclock 5 105\nmap 0 7 1000 2000 0 - a\\nb\\\\c\n",
    ),
    (
        "mappings-overflow",
        "rtrace mappings 1\ntrace UUID\nclock 18446744073709551615 0\n\
         map 1 7 ffffffffffffff00 2000 0 - a\n",
    ),
    ("mappings-another", "rtrace mappings 1\ntrace x\n"),
    (
        "symbols-sound",
        "rtrace symbols 1\ntrace UUID\nkernel\nffffffff81000000 10 schedule\n\
         ffffffffc0000000 10 probe [rtrace]\nfile 12ab /bin/a\n20 3 operator new\nfile - b\n1 1 c\n",
    ),
    (
        "symbols-overflow",
        "rtrace symbols 1\ntrace UUID\nffffffffffffffff ffffffffffffffff a\nfile - b\n\
         ffffffffffffffff ffffffffffffffff c\n",
    ),
    ("symbols-another", "rtrace symbols 2\n"),
    (
        "recording-chunk",
        "trace UUID\nstate stopped\nunwritten 7\nchunk 2\nlost_before channel0 0 3\n\
         lost_before aux 1 18446744073709551615\nchannel channel0\ncpu recorded full\n0 10 4\ntotal 10 4\n\
         channel aux\ncpu full\n1 2\ntotal 18446744073709551615\n",
    ),
    (
        "recording-one-channel",
        "trace UUID\nstate over\nunwritten 0\ncpu recorded overwritten\n0 10 3\n1 5 0\ntotal 15 3\n",
    ),
    ("recording-begun", "trace UUID\nstate writing\nunwritten 0\n"),
    (
        "recording-wrong",
        "trace UUID\r\nstate failed\nmore\nunwritten -1\nlost_before a\n",
    ),
    (
        "maps-sound",
        "trace UUID\nmap a e by comm,cpu sum(n) max(n)\noverflow 3 5 -5\nlacking 2\n\
         comm cpu count sum(n) max(n)\n\"b\\xc3\" 0 9 10 7\n\"a\" 1 4 30 8\n\n\
         map b e by kstack hist(n)\noverflow 0\nlacking 0\nstackless 1\nkstack n count\n\
         f+0x2a;g 8..8 7\n- -17..-16 5\n\n\
         map c e max(duration) from b\noverflow 0 0\nlacking 0\nunmatched 1\nrepeated 2\ndropped 3\n\
         count max(duration)\n4 18446744073709551615\n",
    ),
    (
        "maps-no-column",
        "trace UUID\nmap a e by cpu\noverflow 0\nlacking 0\ncpu\n1\n",
    ),
    (
        "maps-sums",
        "trace UUID\nmap a e by cpu\noverflow 0\nlacking 0\ncpu count\n\
         1 18446744073709551615\n1 18446744073709551615\n",
    ),
];

/// All messages that a sender or a watcher sends to a receiver.
fn sessions() -> Vec<(&'static str, Vec<u8>)> {
    let (sent, number) = (Uuid::from_bytes(UUID), 0);
    let name = StreamName {
        channel: "channel0".to_owned(),
        cpu: 0,
    };
    let begin = |streams| {
        [
            Message::Hello(Hello::Send(Sent {
                host: "web-1".to_owned(),
                uuid: sent,
                streams,
            })),
            Message::Metadata(format!("trace {{ uuid = \"{sent}\"; }};")),
            Message::Stream {
                number,
                name: name.clone(),
            },
        ]
        .iter()
        .flat_map(Message::to_bytes)
        .collect::<Vec<_>>()
    };
    let packets = (0..2).flat_map(|sequence| {
        let packet = PacketBuilder::new(Layout::Compact, 0, sequence, BEGIN).close(BEGIN, 8);
        let size = packet.len() as u32;
        [Message::Packet { number, size }.to_bytes(), packet].concat()
    });
    let packets: Vec<u8> = packets.collect();
    let stats = Message::Stats("cpu packets\n0 2\n".to_owned()).to_bytes();
    let (state, unwritten) = (State::Over, 0);
    let end = Message::End { state, unwritten }.to_bytes();
    let watch = Message::Hello(Hello::Watch { trace: None }).to_bytes();
    let whole = [begin(vec![name.clone()]), packets.clone(), stats, end].concat();
    let cut = whole[..whole.len() / 2].to_vec();
    let discard = [
        begin(Vec::new()),
        packets.clone(),
        Message::Discard.to_bytes(),
    ]
    .concat();
    let twice = [begin(Vec::new()), packets.clone(), packets].concat();
    vec![
        ("cut", cut),
        ("discard", discard),
        ("twice", twice),
        ("watch", watch),
        ("whole", whole),
    ]
}

/// Messages of senders, receivers and watchers, valid and invalid ones.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let stream = StreamName {
        channel: "channel0".to_owned(),
        cpu: 0,
    };
    let sent = Sent {
        host: "web-1".to_owned(),
        uuid: Uuid::from_bytes(UUID),
        streams: vec![stream.clone()],
    };
    let packet = PacketBuilder::new(Layout::Compact, 0, 0, BEGIN).close(BEGIN, 8);
    let (number, size) = (0, packet.len() as u32);
    let (state, unwritten) = (State::Over, 0);
    let bytes = |message: Message| message.to_bytes();
    let sender = [
        bytes(Message::Hello(Hello::Send(sent))),
        bytes(Message::Metadata("trace { };".to_owned())),
        bytes(Message::Stream {
            number,
            name: stream,
        }),
        bytes(Message::Packet { number, size }),
        packet,
        bytes(Message::Stats("cpu packets\n0 1\n".to_owned())),
        bytes(Message::End { state, unwritten }),
    ];
    let answers = [
        bytes(Message::Welcome {
            trace: "web-1".to_owned(),
            resumed: true,
        }),
        bytes(Message::Have { number, next: 1 }),
        bytes(Message::Complete { time: BEGIN }),
        bytes(Message::Refused {
            lasting: false,
            reason: "No space left on device".to_owned(),
        }),
        bytes(Message::Done),
        bytes(Message::Discard),
    ];
    let watch = |trace: Option<&str>| {
        let trace = trace.map(str::to_owned);
        bytes(Message::Hello(Hello::Watch { trace }))
    };
    let hello = |text: &str| message(1, text.len() as u32, text.as_bytes());
    vec![
        ("sender", sender.concat()),
        ("cut", sender.concat()[..200].to_vec()),
        ("answers", answers.concat()),
        ("watch", [watch(None), watch(Some("web-1"))].concat()),
        ("version", hello("rtrace-network 2\n")),
        (
            "host",
            hello("rtrace-network 1\nhost ../x\ntrace 5a010203-0405-0607-0809-0a0b0c0d0e0f\n"),
        ),
        ("stream", message(2, 16, b"\0\0\0\0../../a_cpu0")),
        ("kind", message(0x15, 0, b"")),
        ("long", message(3, u32::MAX, b"trace")),
        ("short", message(4, 3, b"\0\0\0")),
        ("more", message(18, 1, b"x")),
    ]
}

fn message(kind: u32, length: u32, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes(), &length.to_le_bytes(), body].concat()
}

const TEXTS: [(&str, &str, &str); 77] = [
    (
        "http",
        "metrics",
        "\u{5}GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
    ),
    ("http", "repeated", "\u{1}GET /?a HTTP/1.0\naccept: x\nACCEPT:y\n\nrest"),
    ("http", "post", "\u{7f}POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"),
    ("http", "half", "\u{2}GET / HTTP/1.1\r\nHost: a\r\n"),
    (
        "filter",
        "numbers",
        "prio < 0 && level >= 0x7f || !(flags & 010)\0\u{7f}\u{7f}\u{7f}\u{7f}01234567bash",
    ),
    ("filter", "texts", "comm ~ \"*a?[r-t]*\" && name.ustring != 'x'\x00012345678901abst"),
    ("filter", "integers", "low == 5 || high < -1\x000123456789012345678901234567890"),
    (
        "filter",
        "variable",
        "data == \"ab\" && last == 0x3231\x0001234567890123456789012\u{2}nine\0ab1212",
    ),
    ("filter", "contexts", "CPU == 3 && (COMM == 'bash' || common_pid > 0)\0"),
    ("filter", "cpus", "cpu & CPUS{0-N:1/2} && mask != CPUS{1,3-5}\x0001234567890123456789012"),
    ("filter", "place", "prio == 1 &&\n\tlevel == 256"),
    ("filter", "deep", "((((!((((a==1))))))))"),
    ("patterns", "several", "!a:b c !d\0a:b"),
    ("patterns", "stars", "s*:*_en?ry\0syscalls:sys_entry"),
    ("patterns", "system", "sched\0sched:sched_switch"),
    ("patterns", "none", "\0"),
    ("patterns", "again", "a*bc*?d\0abxbcbcxd"),
    (
        "patterns",
        "class",
        "[a-ch-s]*:*[!]_x-z]\\_?[0]\0irq:irq_softirq_x0",
    ),
    ("patterns", "unlike", "a?*b:c\0ab:d"),
    ("sizes", "buffer", "64Kx8"),
    ("sizes", "count", "4Mx3"),
    ("sizes", "largest", "1Mx9223372036854775808"),
    ("sizes", "one", "1Kx2"),
    ("sizes", "overflow", "99999999999G"),
    ("sizes", "size", "4G"),
    ("sizes", "switch", "1"),
    ("sizes", "unit", "4096x+2k"),
    ("sizes", "uuid", "00112233-4455-6677-8899-aabbccddeeff"),
    (
        "config",
        "all",
        "session = \"web\"\nclock = \"mono\"\nsample_freq = 7\naux_size = \"1M\"\nbarrier = \"auto\"\nmarker_channel = \"a\"\n\
         contexts = [\"tid\", \"comm\"]\ncpus = \"0-3\"\nstate = true\npids = [1, 2]\ncgroups = [\"/a\"]\n\
         only = true\n[[channel]]\nname = \"a\"\nsize = \"64Kx8\"\nmode = \"overwrite\"\n\
         events = [\"sched\", \"!irq:*\", \"openat\"]\nexclude = [\"b\"]\ncontexts = [\"pid\"]\ncpus = \"1\"\n\
         snapshot_memory = \"keep\"\n[channel.filters]\nz = \"x == 1\"\n\"a:*\" = '''\ny == \"2\"'''\n",
    ),
    (
        "config",
        "tables",
        "channel = [{name = 'channel0'}, {name = \"c\", events = [], exclude = [\"\\u0064\"]}]\n",
    ),
    (
        "config",
        "filter-twice",
        "[[channel]]\nname = \"a\"\nevents = [\"e\"]\nfilters = { openat = 'x', 'syscall_*_openat' = 'y' }\n",
    ),
    (
        "config",
        "types",
        "clock = 1979-05-27T07:32:00Z\npids = [0x10, 0o7, 0b1, -1, +1_0, inf, 1e9]\n",
    ),
    (
        "config",
        "deep",
        "pids = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
    ),
    ("config", "no-events", "# a comment\r\n[[channel]]\r\nname = \"a\"\r\n"),
    (
        "stats",
        "table",
        "cpu recorded full nested packets\n0 10 1 2 3\n1 0 0 0 0\ntotal 10 1 2 3\n",
    ),
    (
        "stats",
        "columns",
        "cpu recorded overwritten full wrapped too_large nested no_buffer missed packets bytes \
         read_packets read_records more\n\
         0 10 1 2 3 4 5 6 0 7 8 9 4 1\ncpu1 0 0 0 0 0 0 0 0 0 0 0 0 0\n\ntotal 10 1 2 3 4 5 6 2 7 8 9 4 1\n",
    ),
    (
        "stats",
        "channels",
        "trace t\nstate over\nchannel channel0\ncpu recorded\n0 10\ntotal 10\n\
         channel aux\ncpu full\n1 2\ntotal 2\n",
    ),
    (
        "stats",
        "channel-sums",
        "channel a\ncpu full\n0 18446744073709551615\ntotal 1\n\
         channel b\ncpu full\n0 18446744073709551615\ntotal 18446744073709551615\n",
    ),
    ("stats", "none", "\n"),
    ("dynamic", "reached", "p:mine/open do_sys_openat2+0x4 fd=%di:s32 +0(+8($stack2)):string"),
    ("dynamic", "returns", "r12 vfs_read $arg3:u64 $retval:s32 $comm"),
    ("dynamic", "address", "p:a 0xffffffff81000000 @0x10:symbol \\-2:b3@4/8\n"),
    ("dynamic", "program", "r:a /bin/b:0x1139,0x1150 $retval:u8 +0(+8(%sp)):string"),
    ("dynamic", "removed", "-:mine/open"),
    ("dynamic", "wrong", "p f $arg9 +u(%ax)"),
    ("program", "registered", "+my-app.http:done u32 size; string path;x64 f;char c[16]; s8 v[]\n+a:b\n"),
    ("program", "records", "a.b:c size=-5 path=\"x y\"\n# no event\n\n  a:b\n"),
    ("program", "wrong", "+a:b u33 c\n+a:b u8 _c\n+a:b u8 c; s8 c\n+a:b u8 c[0]\na..b:c\n1:a\n"),
    ("state", "all", "1\n\n threads \n1 2\n"),
    ("state", "values", "event number=-0x1f text=\"a \\\" \\\\ \\xff\" none= empty=\"\"\n"),
    ("state", "wrong", "e a=\"x\ne a=\"\\n\"\ne =1\ne a=\"\"b\ne a=\"\\x00\"\n"),
    ("triggers", "session", "traceon:web.1:3"),
    ("triggers", "digits", "traceoff:5:7 if policy == 50"),
    ("triggers", "packets", " traceoff_after:3:18446744073709551615\tif a < 1\n"),
    ("triggers", "removed", "!traceoff_after"),
    ("triggers", "name", "traceon:-a if b"),
    ("triggers", "words", "snapshot:1:2 unless"),
    ("triggers", "marker", "marker:late:3 if a"),
    ("triggers", "quoted", "marker:\"it's: late\":3 if a == 'b'"),
    ("triggers", "quotes", "marker:'a\"b\" if c"),
    ("triggers", "stack", "!stacktrace:2"),
    ("triggers", "hist", "hist:keys=a.log2,b.hex:vals=c,hitcount:sort=a.descending,c:size=64:name=n if d"),
    (
        "triggers",
        "hist-duration",
        "!hist:key=p,$lat.log2:val=$lat:lat=common_timestamp-$t:onmatch(a.b):onmax($lat):clear",
    ),
    ("triggers", "hist-begin", "hist:keys=pid:ts0=common_timestamp"),
    ("triggers", "hist-wrong", "hist:keys=a.sym"),
    ("maps", "by", "calls syscalls:*,irq:a by event,comm sum(len) min(len) size 16 if len > 0 && a ~ \"x*\"\n"),
    ("maps", "duration", "d end hist(duration) max(duration) from begin,b2 match a,b:c,d\n"),
    ("maps", "thread", " t e from b match tid hist(x)"),
    ("maps", "removed", "!calls"),
    ("maps", "clause", "m e count"),
    ("maps", "twice", "m e by a by b"),
    ("maps", "columns", "m e sum(a) sum(b) sum(c) sum(d) sum(e)"),
    ("maps", "no-begin", "m e sum(duration)"),
    ("maps", "size", "m e size 0"),
    ("stats", "cpu", "cpu full\nx 1\n"),
    ("stats", "number", "cpu full\n0 +1\n1 -1\n"),
    ("stats", "short", "cpu full nested\n0 1\n"),
];

/// Each value of a byte.
const ALL: [u8; 256] = {
    let mut all = [0; 256];
    let mut i = 0;
    while i < 256 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// Random bytes of `alphabet`, the same for the same seed (xorshift).
fn noise(seed: u64, length: usize, alphabet: &[u8]) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[(state >> 33) as usize % alphabet.len()]
    };
    (0..length).map(|_| next()).collect()
}

/// Descriptions of one channel, or of `channels`, that are invalid in one way, or unusual.
fn wrong_metadata(channels: &str) -> Vec<(&'static str, Vec<u8>)> {
    let good = metadata(UUID, Layout::Large);
    let replaced = |good: &str, from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1).into_bytes()
    };
    let with = |from: &str, to: &str| replaced(&good, from, to);
    vec![
        (
            "contexts",
            replaced(
                channels,
                "\tpacket.context",
                "\tevent.context := struct {\n\
                 \t\tinteger { size = 8; align = 8; signed = false; encoding = UTF8; } _procname[16];\n\
                 \t\tinteger { size = 32; align = 8; signed = true; } _tid;\n\
                 \t};\n\
                 \tpacket.context",
            ),
        ),
        (
            "stream-event",
            replaced(channels, "stream_id = 1;", "stream_id = 2;"),
        ),
        (
            "stream-header",
            replaced(channels, "event_header_large;", "event_header_huge;"),
        ),
        (
            "stream-twice",
            replaced(channels, "\tid = 1;\n\tevent", "\tid = 0;\n\tevent"),
        ),
        ("big-endian", with("byte_order = le", "byte_order = be")),
        ("comments", with("trace {", "// one\ntrace { /* two * */")),
        ("deep", "a {".repeat(20).into_bytes()),
        ("escapes", with("made up", r#"a\n\t\"\\"#)),
        ("event-twice", with("id = 1;", "id = 0;")),
        ("field-form", with("string _filename", "float _filename")),
        (
            "field-type",
            with(
                "size = 64; align = 8; signed = true",
                "size = 63; align = 8; signed = true",
            ),
        ),
        ("header", with("enum : uint16_t", "enum : uint8_t")),
        ("no-clock", with("clock {", "clok {")),
        ("no-frequency", with("freq = 100000000", "freq = 0")),
        ("open-comment", b"trace /* {".to_vec()),
        ("open-text", br#"trace { uuid = "\"#.to_vec()),
    ]
}

/// A description with a field of each type, and an event of it.
fn fields() -> Vec<u8> {
    let text = metadata(UUID, Layout::Large);
    let events = PacketBuilder::new(Layout::Large, 0, 0, 0)
        .switch(5, (0, "swapper/0"), (7, "make"))
        .switch(8, (7, "make"), (0, "swapper/0"))
        .softirq(9, 3)
        .exec(10, "/bin/true", 7)
        .read(11, u64::MAX)
        .event(FAR, 12, &[]);
    [text.as_bytes(), &[0], &content(&events.close(20, 1))].concat()
}

fn in_packet(layout: u8, events: &[u8]) -> Vec<u8> {
    [&[layout][..], &BEGIN.to_le_bytes(), events].concat()
}

/// The bytes after a packet's header.
fn content(packet: &[u8]) -> Vec<u8> {
    packet[PacketHeader::SIZE..].to_vec()
}

fn events(layout: Layout) -> Vec<u8> {
    content(&first(layout).close(BEGIN + 9, 1))
}

fn first(layout: Layout) -> PacketBuilder {
    PacketBuilder::new(layout, 0, 0, BEGIN)
        .switch(BEGIN + 5, (0, "swapper/0"), (7, "make"))
        .exec(BEGIN + 6, "/bin/true", 7)
}

fn second(layout: Layout) -> PacketBuilder {
    PacketBuilder::new(layout, 0, 1, BEGIN + 10)
        .softirq(BEGIN + 10, 3)
        .read(BEGIN + 11, 0xffff_8000_0000_0000)
        .every_type(BEGIN + 11)
        .event(FAR, BEGIN + 11, &[])
        .discarded(3)
}

fn stream(layout: Layout) -> Vec<u8> {
    let one = first(layout).close(BEGIN + 9, 512);
    [one, second(layout).close(BEGIN + 12, 512)].concat()
}

/// Streams with large headers that are invalid or incomplete.
fn other_packets() -> Vec<(&'static str, Vec<u8>)> {
    let good = stream(Layout::Large);
    let with = |offset: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[offset] = byte;
        bytes
    };
    let back = PacketBuilder::new(Layout::Large, 0, 1, BEGIN).close(BEGIN, 512);
    let gap = PacketBuilder::new(Layout::Large, 1, 7, BEGIN + 20)
        .discarded(9)
        .event(SOFTIRQ, BEGIN + 20 + (1 << 33), &[0; 4]);
    vec![
        ("class", with(offset_of!(PacketHeader, stream_id), 1)),
        ("back", [good[..512].to_vec(), back].concat()),
        ("gap", [good.clone(), gap.close(u64::MAX, 512)].concat()),
        ("magic", with(offset_of!(PacketHeader, magic), 0)),
        ("other-trace", with(offset_of!(PacketHeader, uuid), 0)),
        ("partial", good[..700].to_vec()),
        ("size", with(offset_of!(PacketHeader, packet_size), 1)),
        (
            "content",
            with(offset_of!(PacketHeader, content_size) + 7, 1),
        ),
    ]
}

/// Changed words of a region, with their offsets: inputs of the target `region`.
fn region_changes() -> [(&'static str, u16, u64); 6] {
    const HEADER: u16 = 0x4000;
    [
        ("size", HEADER + 72, 1),
        ("subbuf-count", HEADER + 88, 1 << 40),
        ("metadata-room", HEADER + 120, u64::MAX),
        ("place", HEADER + 4096, u64::MAX - 4095),
        ("reference", 32, 2),
        ("left", 64, 4096),
    ]
}
