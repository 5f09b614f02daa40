// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --html` on synthetic traces: contents of the page. `tools/testing/run page` checks the page in a
//! browser.

use assert_cmd::Command;
use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use predicates::prelude::*;
use predicates::str::contains;
use rtrace_abi::header::Layout;
use serde_json::{json, Value};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use synthetic::{PacketBuilder, READ_EXIT, WAKING};
use tempfile::TempDir;

/// Microseconds in clock ticks.
const US: u64 = synthetic::FREQUENCY / 1_000_000;

const IDLE: (i32, &str) = (0, "swapper");
const SHELL: (i32, &str) = (7, "sh");

/// Every question, as the page asks them.
const ALL: [&str; 6] = [
    "--syscalls",
    "--by-process",
    "--latency",
    "--threads",
    "--cpu",
    "--irq",
];

/// A trace, and the path of its page.
struct Place {
    dir: TempDir,
}

impl Place {
    /// Writes a trace with these streams.
    fn new(streams: &[(u32, Vec<Vec<u8>>)]) -> Self {
        let dir = TempDir::new().unwrap();
        synthetic::write(&dir.path().join("trace"), Layout::Compact, streams).unwrap();
        Self { dir }
    }

    fn trace(&self) -> PathBuf {
        self.dir.path().join("trace")
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("page.html")
    }

    /// Returns the command `rtrace report --html` with these options.
    fn report(&self, options: &[&str]) -> Command {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        command.args(["report", "--html"]).arg(self.file());
        command.args(options).arg(self.trace());
        command
    }

    /// Returns the page.
    fn page(&self, options: &[&str]) -> Page {
        let options = [options, &["--force"]].concat();
        let options = &options;
        self.report(options).assert().success();
        Page(fs::read_to_string(self.file()).unwrap())
    }

    /// Returns the JSON object that `rtrace report` prints.
    fn json(&self, options: &[&str]) -> Value {
        let mut command = Command::cargo_bin("rtrace").unwrap();
        command.args(["report", "--json"]).args(options);
        let output = command.arg(self.trace()).assert().success();
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    }
}

struct Page(String);

impl Page {
    /// Returns the contents of the element with this name.
    fn element(&self, name: &str) -> &str {
        let begin = format!("id=\"{name}\">");
        let (_, rest) = self.0.split_once(&begin).unwrap();
        rest.split_once("</script>").unwrap().0
    }

    fn index(&self) -> Value {
        serde_json::from_str(self.element("trace")).unwrap()
    }

    fn column(&self, name: &str) -> Vec<u64> {
        let packed = self.element(&format!("column-{name}"));
        let packed = BASE64_STANDARD.decode(packed).unwrap();
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed.as_slice())
            .read_to_end(&mut bytes)
            .unwrap();
        let mut numbers = Vec::new();
        let (mut number, mut shift) = (0, 0);
        for byte in bytes {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        assert_eq!(shift, 0);
        numbers
    }

    /// Returns the slices of each lane: its kind, its owner, and the begin, end and number of each slice.
    fn lanes(&self) -> Vec<(String, u64, Vec<[u64; 3]>)> {
        let names = ["slice-pauses", "slice-lengths", "slice-values"];
        let mut columns = names.map(|name| self.column(name).into_iter());
        let index = self.index();
        let lanes = index["lanes"].as_array().unwrap().iter();
        let lanes = lanes.map(|lane| {
            let mut now = 0;
            let slices = (0..lane["slices"].as_u64().unwrap()).map(|_| {
                let [pause, length, value] =
                    columns.each_mut().map(|column| column.next().unwrap());
                let from = now + pause;
                now = from + length;
                [from, now, value]
            });
            let slices = slices.collect();
            (
                lane["kind"].as_str().unwrap().to_owned(),
                lane["of"].as_u64().unwrap(),
                slices,
            )
        });
        let lanes: Vec<_> = lanes.collect();
        assert!(columns.iter_mut().all(|column| column.next().is_none()));
        lanes
    }
}

/// Writes a trace. `sh` is woken at 10 us, runs from 12 to 60 us and then sleeps. It reads from 20 to 50 us. A
/// disk interrupts it from 30 to 34 us.
fn known() -> Place {
    let zero = PacketBuilder::new(Layout::Compact, 0, 0, 0)
        .wake(WAKING, 10 * US, SHELL)
        .switch(12 * US, IDLE, SHELL)
        .read(20 * US, 0)
        .irq(30 * US, 24, "disk")
        .irq_exit(34 * US, 24)
        .syscall_exit(READ_EXIT, 50 * US, -11)
        .switch_from(60 * US, SHELL, 1, IDLE)
        .close(100 * US, 8);
    Place::new(&[(0, vec![zero])])
}

#[test]
fn the_timeline_has_what_happened() {
    let page = known().page(&[]);
    let index = page.index();
    assert_eq!(
        index["threads"],
        json!([{"tid": 7, "pid": null, "comm": "sh"}])
    );
    assert_eq!(
        index["interrupts"],
        json!([{"is_hard": true, "number": 24, "name": "disk"}])
    );
    assert_eq!(index["calls"][1], "read");
    assert_eq!(index["ways"][1], "interruptible");
    assert_eq!(index["cpus"], json!([0]));
    assert_eq!(index["gaps"], json!([]));
    assert_eq!(index["losses"], json!([]));
    assert_eq!(index["date"], "2023-11-14 22:13:20.000 UTC");
    let lane = |kind: &str, slices: &[[u64; 3]]| (kind.to_owned(), 0, slices.to_vec());
    // On CPU 0, bit 4 of a running state is 1. The number of woken is 1; the number of blocked in way 1 is 4.
    let expected = [
        lane("tasks", &[[12_000, 60_000, 0]]),
        lane("hard", &[[30_000, 34_000, 0]]),
        lane(
            "states",
            &[
                [10_000, 12_000, 0x11 << 1],
                [12_000, 60_000, 0x10 << 1],
                [60_000, 100_000, 4 << 1],
            ],
        ),
        lane("calls", &[[20_000, 50_000, ((1 << 1) | 1) << 1]]),
    ];
    assert_eq!(page.lanes(), expected);
    assert_eq!(
        page.column("mark-pauses"),
        [10_000, 2_000, 8_000, 10_000, 4_000, 16_000, 10_000]
    );
    assert_eq!(page.column("mark-threads"), [0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(page.column("mark-counts"), [1; 7]);
    let names: Vec<_> = page
        .column("mark-events")
        .iter()
        .map(|event| {
            index["events"][*event as usize]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        names,
        [
            "sched_waking",
            "sched_switch",
            "syscall_entry_read",
            "irq_handler_entry",
            "irq_handler_exit",
            "syscall_exit_read",
            "sched_switch",
        ]
    );
    assert_eq!(
        index["report"]["events"]["events"][0],
        json!({"name": "sched_switch", "count": 2})
    );
}

#[test]
fn the_tables_are_the_answers() {
    let place = known();
    let report = &place.page(&[]).index()["report"];
    let answers = place.json(&ALL);
    for name in ["syscalls", "threads", "cpu", "irq"] {
        assert_eq!(report[name], answers[name], "{name}");
    }
    // JavaScript would round nanoseconds since 1970, so they are texts.
    let woken = &answers["latency"]["worst"][0]["woken_ns"];
    assert_eq!(report["latency"]["worst"][0]["woken_ns"], woken.to_string());
    for name in ["histogram", "threads"] {
        assert_eq!(report["latency"][name], answers["latency"][name], "{name}");
    }
    for name in ["env", "duration_ns", "recorded", "lost", "trace"] {
        assert_eq!(report[name], answers[name], "{name}");
    }
    // A page with one question only.
    let report = &place.page(&["--cpu"]).index()["report"];
    assert_eq!(report["cpu"], answers["cpu"]);
    assert!(report.get("threads").is_none(), "{report}");
}

/// Deletes the events whose names have this prefix from the description.
fn forget(place: &Place, prefix: &str) {
    let path = place.trace().join("metadata");
    let text = fs::read_to_string(&path).unwrap();
    let begin = format!("name = \"{prefix}");
    let blocks = text.split_inclusive("};\n\n");
    let kept: String = blocks.filter(|block| !block.contains(&begin)).collect();
    assert_ne!(kept, text);
    fs::write(&path, kept).unwrap();
}

#[test]
fn what_cannot_be_answered_is_left_out_and_named() {
    let place = Place::new(&[(
        0,
        vec![PacketBuilder::new(Layout::Compact, 0, 0, 0)
            .switch(US, IDLE, SHELL)
            .close(2 * US, 8)],
    )]);
    forget(&place, "syscall_");
    let index = place.page(&[]).index();
    let left_out = index["left_out"].as_array().unwrap();
    let options = left_out.iter().map(|missing| {
        let (option, _) = missing.as_str().unwrap().split_once(" needs ").unwrap();
        option
    });
    assert_eq!(
        options.collect::<Vec<_>>(),
        ["--syscalls", "--io", "--locks", "--profile"]
    );
    assert!(index["report"].get("cpu").is_some());
    // An explicit question without its events is an error, and the old page stays.
    let before = fs::read(place.file()).unwrap();
    place
        .report(&["--syscalls", "--force"])
        .assert()
        .code(125)
        .stderr(contains("--syscalls needs "));
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn names_do_not_become_html() {
    const HOSTILE: [&str; 4] = [
        "</script><b>x",
        "<!--<script>",
        "]]>\"'&\\u003c",
        "\u{2028}\u{1}",
    ];
    let mut packet = PacketBuilder::new(Layout::Compact, 0, 0, 0);
    let mut now = 0;
    for (tid, name) in (1..).zip(HOSTILE) {
        packet = packet.switch(now + US, IDLE, (tid, name));
        packet = packet
            .irq(now + 2 * US, tid, name)
            .irq_exit(now + 3 * US, tid);
        now += 4 * US;
        packet = packet.switch_from(now, (tid, name), 1, IDLE);
    }
    let page = Place::new(&[(0, vec![packet.close(now, 8)])]).page(&[]);
    let (begin, end) = (
        page.0.matches("<script").count(),
        page.0.matches("</script").count(),
    );
    let plain = known().page(&[]);
    assert_eq!(begin, plain.0.matches("<script").count());
    assert_eq!(end, plain.0.matches("</script").count());
    assert!(!page.0.contains("<b>"));
    let index = page.index();
    for (place, name) in HOSTILE.iter().enumerate() {
        assert_eq!(index["threads"][place]["comm"], *name);
        assert_eq!(index["interrupts"][place]["name"], *name);
    }
}

#[test]
fn losses_have_their_place() {
    let packet = |number, begin| PacketBuilder::new(Layout::Compact, 3, number, begin);
    let stream = vec![
        packet(0, 0).switch(10 * US, IDLE, SHELL).close(20 * US, 8),
        // Two packets are missing, and five events of this packet.
        packet(3, 50 * US)
            .switch(55 * US, SHELL, IDLE)
            .discarded(5)
            .close(60 * US, 8),
        packet(4, 60 * US)
            .switch(70 * US, IDLE, SHELL)
            .discarded(5)
            .close(80 * US, 8),
    ];
    let place = Place::new(&[(3, stream)]);
    let page = place.page(&[]);
    let index = page.index();
    assert_eq!(
        index["gaps"],
        json!([{"cpu": 3, "from_ns": 20_000, "to_ns": 60_000, "events": 5, "packets": 2}])
    );
    assert_eq!(index["report"]["lost"], 5);
    let said = index["losses"].as_array().unwrap();
    assert!(
        said.iter()
            .any(|line| line.as_str().unwrap().starts_with("Events were lost: ")),
        "{said:?}"
    );
    assert_eq!(index["report"]["packets_lost"], 2);
    assert_eq!(index["report"]["lost_is_exact"], false);
    let tasks = page.lanes().swap_remove(0);
    assert_eq!(
        tasks,
        (
            "tasks".to_owned(),
            3,
            vec![[10_000, 20_000, 0], [70_000, 80_000, 0]]
        )
    );
    let said = contains("page.html: a page of ").and(contains("5 lost"));
    place.report(&["--force"]).assert().success().stdout(said);
}

#[test]
fn the_page_needs_nothing_else() {
    let Page(text) = known().page(&[]);
    for foreign in [
        "http:", "https:", " src=", "<link", "url(", "@import", "import(", "eval(",
    ] {
        assert!(!text.contains(foreign), "{foreign}");
    }
    assert!(text.contains("default-src 'none'"));
    assert!(text.ends_with("</html>\n"));
}

#[test]
fn a_page_can_go_to_standard_output() {
    let place = known();
    let mut command = Command::cargo_bin("rtrace").unwrap();
    command.current_dir(place.dir.path());
    command.args(["report", "--html", "-"]).arg(place.trace());
    let said = command.assert().success().stderr(contains("a page"));
    assert_eq!(said.get_output().stdout, place.page(&[]).0.as_bytes());
    assert!(!place.dir.path().join("-").exists());
}

#[test]
fn only_a_regular_file_is_replaced_and_only_by_a_whole_page() {
    let place = known();
    let others = |place: &Place| {
        let names = fs::read_dir(place.dir.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "trace").collect::<Vec<_>>()
    };
    let refused = |place: &Place| {
        for options in [["--force"].as_slice(), &[]] {
            let why = contains("page.html: it exists and is not a regular file");
            place.report(options).assert().code(125).stderr(why);
        }
    };
    fs::create_dir(place.file()).unwrap();
    refused(&place);
    fs::remove_dir(place.file()).unwrap();
    symlink(Path::new("/nowhere"), place.file()).unwrap();
    refused(&place);
    fs::remove_file(place.file()).unwrap();

    fs::write(place.file(), "old").unwrap();
    let why = contains("already exists (--force replaces it)");
    place.report(&[]).assert().code(125).stderr(why);
    assert_eq!(fs::read_to_string(place.file()).unwrap(), "old");
    let stream = place.trace().join("channel0_cpu0");
    let whole = fs::read(&stream).unwrap();
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" report --force --html \"$@\"";
    let mut without_room = Command::new("sh");
    without_room
        .args(["-c", limited])
        .arg(assert_cmd::cargo::cargo_bin("rtrace"))
        .args([place.file(), place.trace()]);
    without_room.assert().code(125);
    assert_eq!(fs::read_to_string(place.file()).unwrap(), "old");
    assert_eq!(others(&place), ["page.html"]);

    // The page of a damaged trace has a warning.
    fs::write(&stream, vec![7; 4096]).unwrap();
    place
        .report(&["--force"])
        .assert()
        .code(1)
        .stderr(contains("damaged"));
    let page = fs::read_to_string(place.file()).unwrap();
    assert!(page.contains("no packet begins here"), "{page}");

    fs::write(&stream, whole).unwrap();
    place.page(&[]);
    assert_eq!(others(&place), ["page.html"]);
    let mode = fs::metadata(place.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_page_is_no_json_and_no_text() {
    for other in [["--json"].as_slice(), &["-n", "3"]] {
        known()
            .report(other)
            .assert()
            .code(2)
            .stderr(contains("cannot be used with"));
    }
}
