// SPDX-License-Identifier: GPL-2.0

//! `rtrace report --latency`.

use super::machine::{self, Loss, Random, WAIT_NS};
use super::{forget, json, limit, packet, report, write, IDLE, SHELL, THREAD, US};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{json as value, Value};
use std::path::Path;
use synthetic::{WAKEUP, WAKING};
use tempfile::TempDir;

/// Writes a trace. `sh` waits 10 us, and 40 us on another CPU; `worker` waits 3 us. `sh` is also preempted by `worker`
/// for 50 us. A wake-up of `sh` while it runs does not count.
fn known(dir: &Path) {
    let zero = packet(0, 0, 0)
        .wake(WAKING, 10 * US, SHELL)
        .wake(WAKEUP, 12 * US, SHELL)
        .switch(20 * US, IDLE, SHELL)
        .wake(WAKING, 25 * US, SHELL)
        .switch_from(30 * US, SHELL, 0x100, THREAD)
        .switch_from(80 * US, THREAD, 1, SHELL)
        .switch_from(90 * US, SHELL, 2, IDLE)
        .wake(WAKING, 107 * US, THREAD)
        .switch(110 * US, IDLE, THREAD)
        .close(200 * US, 8);
    let one = packet(1, 0, 0)
        .wake(WAKING, 100 * US, SHELL)
        .switch(140 * US, IDLE, SHELL)
        // The switch to sleep follows the first of the two wake-up events.
        .wake(WAKING, 149 * US, SHELL)
        .switch_from(150 * US, SHELL, 1, IDLE)
        .wake(WAKEUP, 151 * US, SHELL)
        .switch(152 * US, IDLE, SHELL)
        .close(200 * US, 8);
    write(dir, &[(0, vec![zero]), (1, vec![one])]);
}

#[test]
fn waits_are_measured() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    let answer = &json(&["--latency"], dir.path())["latency"];
    assert_eq!(answer["timed"], 4);
    assert_eq!(answer["total_ns"], 54_000);
    assert_eq!(answer["average_ns"], 13_500);
    assert_eq!(answer["max_ns"], 40_000);
    assert_eq!(answer["p50_ns"], 3_001);
    let worst: Vec<_> = answer["worst"].as_array().unwrap().iter().collect();
    let expected = [
        (40_000, 100, 1, "sh"),
        (10_000, 10, 0, "sh"),
        (3_000, 107, 0, "worker"),
        (1_000, 151, 1, "sh"),
    ];
    assert_eq!(worst.len(), expected.len());
    for (found, (ns, woken, cpu, comm)) in worst.into_iter().zip(expected) {
        assert_eq!(found["latency_ns"], ns);
        let woken = 1_700_000_000_000_000_000_u64 + woken * 1_000;
        assert_eq!(found["woken_ns"], woken);
        assert_eq!(found["cpu"], cpu);
        assert_eq!(found["comm"], comm);
    }
    // The CPU was idle.
    assert_eq!(answer["worst"][1]["ran"]["tid"], 0);
    assert_eq!(answer["wakeups_recorded"], true);
    let preempted = &answer["preempted"];
    assert_eq!(
        (&preempted["timed"], &preempted["max_ns"]),
        (&1.into(), &50_000.into())
    );
    assert_eq!(preempted["worst"], worst_preempted());
    let histogram: Vec<_> = answer["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bar| {
            let number = |field: &str| bar[field].as_u64().unwrap();
            assert_eq!(number("below_ns"), 2 * number("from_ns"));
            (number("from_ns"), number("count"))
        })
        .collect();
    let expected = [
        (512, 1),
        (1024, 0),
        (2048, 1),
        (4096, 0),
        (8192, 1),
        (16384, 0),
        (32768, 1),
    ];
    assert_eq!(histogram, expected);
    let threads = &answer["threads"];
    assert_eq!(threads[0]["tid"], 7);
    assert_eq!(threads[0]["wakeups"], 3);
    assert_eq!(threads[0]["average_ns"], 17_000);
    assert_eq!(threads[1]["total_ns"], 3_000);
}

/// In a trace of cgroups, a thread outside has some wake-ups and switches, which do not belong together. `worker` is woken
/// by `sh`, runs and sleeps unseen, and much later runs after `sh`.
#[test]
fn a_trace_of_cgroups_invents_nothing_for_other_threads() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(10 * US, IDLE, SHELL)
        .wake(WAKING, 12 * US, THREAD)
        .switch_from(20 * US, SHELL, 1, IDLE)
        .wake(WAKING, 40 * US, SHELL)
        .switch(45 * US, IDLE, SHELL)
        .switch_from(100 * US, SHELL, 0x100, THREAD)
        .switch_from(120 * US, THREAD, 1, SHELL)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    let latency = |dir: &Path| json(&["--latency"], dir)["latency"].clone();
    let found = latency(dir.path());
    assert_eq!(
        (&found["timed"], &found["max_ns"]),
        (&2.into(), &88_000.into())
    );
    limit(dir.path());
    let found = latency(dir.path());
    assert_eq!(
        (&found["timed"], &found["max_ns"]),
        (&1.into(), &5_000.into())
    );
    assert_eq!(found["preempted"]["max_ns"], 20_000);
    let threads = &json(&["--threads"], dir.path())["threads"]["threads"];
    let running = |tid: i64| {
        let mut rows = threads.as_array().unwrap().iter();
        let row = rows.find(|row| row["tid"] == tid).unwrap();
        row["running_ns"].clone()
    };
    assert_eq!((running(7), running(8)), (145_000.into(), 0.into()));
    for question in ["--latency", "--threads", "--cpu"] {
        let output = report(&[question], dir.path()).assert().success();
        output.stderr(contains("limited to cgroups"));
    }
}

fn worst_preempted() -> Value {
    value!([{
        "latency_ns": 50_000, "since_ns": 1_700_000_000_000_030_000_u64, "cpu": 0, "tid": 7, "comm": "sh",
        "ran": { "took_ns": 50_000, "tid": 8, "comm": "worker" }
    }])
}

/// Without wake-ups, the waits of preempted threads are known, and why they waited.
#[test]
fn switches_alone_explain_waits() {
    let dir = TempDir::new().unwrap();
    let zero = packet(0, 0, 0)
        .switch(20 * US, IDLE, SHELL)
        .switch_from(30 * US, SHELL, 0x100, THREAD)
        .switch_from(80 * US, THREAD, 1, SHELL)
        .switch_from(90 * US, SHELL, 2, IDLE)
        .close(200 * US, 8);
    write(dir.path(), &[(0, vec![zero])]);
    for prefix in ["sched_waking", "sched_wakeup"] {
        forget(dir.path(), prefix);
    }
    let answer = &json(&["--latency"], dir.path())["latency"];
    assert_eq!(answer["wakeups_recorded"], false);
    assert_eq!(answer["timed"], 0);
    assert_eq!(answer["preempted"]["worst"], worst_preempted());
    report(&["--latency"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "  from a preemption until the thread runs again\n",
        ))
        .stdout(contains(
            "   50.0 us  22:13:20.000030000     0        7  sh  (worker-8 ran 50.0 us of it)\n",
        ))
        .stdout(contains("only waits after a preemption are known"))
        .stdout(contains("wake-ups ").not());
    // The threads that kept a chosen one waiting need not be chosen.
    let answer = &json(&["--latency", "--comm", "sh"], dir.path())["latency"];
    assert_eq!(answer["preempted"]["worst"], worst_preempted());
}

#[test]
fn text_has_the_same() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    report(&["--latency", "--syscalls"], dir.path())
        .assert()
        .success()
        .stdout(contains(
            "         4    13.5 us     3.0 us    40.0 us    40.0 us    40.0 us\n",
        ))
        .stdout(contains(
            "   40.0 us  22:13:20.000100000     1        7  sh  (idle ran 40.0 us of it)\n",
        ))
        .stdout(contains(" 32.8 us    65.5 us          1  ####"))
        .stdout(contains("No system call was made."))
        .stdout(contains("\x1b").not());
}

#[test]
fn what_the_trace_lacks_is_said() {
    let dir = TempDir::new().unwrap();
    known(dir.path());
    forget(dir.path(), "sched_switch");
    report(&["--latency"], dir.path())
        .assert()
        .code(125)
        .stderr(contains("--latency needs sched_switch,"))
        .stderr(contains("`rtrace record -e sched_switch,sched_waking"));
}

#[test]
fn a_machine_is_as_it_was() {
    for seed in 0..20 {
        let dir = TempDir::new().unwrap();
        let truth = machine::write(dir.path(), &mut Random(seed), 4, 3, Loss::Nothing);
        let answer = &json(&["--latency"], dir.path())["latency"];
        assert_eq!(answer["timed"], truth.waits, "{seed}");
        assert_eq!(answer["total_ns"], truth.waits * WAIT_NS, "{seed}");
        assert_eq!(answer["max_ns"], WAIT_NS, "{seed}");
    }
}

/// Every wait takes the same time: a wait across a loss would have another duration.
#[test]
fn no_wait_is_measured_across_a_loss() {
    let mut timed = 0;
    for seed in 0..100 {
        let dir = TempDir::new().unwrap();
        let loss = [Loss::Packets, Loss::Events][seed as usize % 2];
        let truth = machine::write(dir.path(), &mut Random(seed), 4, 3, loss);
        let answer = &json(&["--latency"], dir.path())["latency"];
        let number = |field: &str| answer[field].as_u64().unwrap();
        assert!(number("timed") <= truth.waits, "{seed}");
        assert_eq!(number("total_ns"), number("timed") * WAIT_NS, "{seed}");
        timed += number("timed");
    }
    assert!(timed > 200, "{timed}");
}

#[test]
fn a_wait_may_be_of_any_length() {
    let dir = TempDir::new().unwrap();
    let one = packet(0, 0, 0)
        .wake(WAKING, 0, SHELL)
        .switch(0, IDLE, SHELL)
        .wake(WAKING, 1, THREAD)
        .switch(u64::MAX, SHELL, THREAD)
        .close(u64::MAX, 8);
    write(dir.path(), &[(0, vec![one])]);
    let answer = &json(&["--latency"], dir.path())["latency"];
    assert_eq!(answer["timed"], 2);
    assert_eq!(answer["max_ns"], u64::MAX);
    let bars = answer["histogram"].as_array().unwrap();
    assert_eq!(bars.len(), 64);
    assert_eq!(
        (&bars[0]["count"], &bars[63]["count"]),
        (&1.into(), &1.into())
    );
    report(&["--latency"], dir.path()).assert().success();
}

/// The thread that ran longest is found, however many activities follow it in the wait.
#[test]
fn a_wait_is_explained_by_all_of_it() {
    const OTHER: (i32, &str) = (9, "cc");
    let dir = TempDir::new().unwrap();
    // `sh` waits for 60 ms. First `worker` runs for 10 ms, in the end `cc` and the idle task take turns for 50 ms. Other
    // waits end meanwhile.
    let mut cpu = packet(0, 0, 0)
        .switch(10 * US, IDLE, THREAD)
        .wake(WAKING, 20 * US, SHELL)
        .switch_from(10_020 * US, THREAD, 1, OTHER);
    let mut now = 10_020 * US;
    for _ in 0..5000 {
        cpu = cpu
            .switch_from(now + US, OTHER, 1, IDLE)
            .wake(WAKING, now + 7 * US, OTHER)
            .switch(now + 10 * US, IDLE, OTHER);
        now += 10 * US;
    }
    let cpu = cpu
        .switch_from(now + US, OTHER, 1, SHELL)
        .close(now + 2 * US, 8);
    write(dir.path(), &[(0, vec![cpu])]);
    let answer = &json(&["--latency"], dir.path())["latency"];
    let wait = &answer["worst"][0];
    assert_eq!(wait["latency_ns"], 60_001_000);
    // The idle task ran for 45 ms, `worker` for 10 ms and `cc` for 5 ms.
    let ran = value!({"took_ns": 45_000_000, "tid": 0, "comm": ""});
    assert_eq!(wait["ran"], ran);
    assert_eq!(answer["worst"][1]["latency_ns"], 3_000);
    assert_eq!(answer["worst"][1]["ran"]["took_ns"], 3_000);
}
