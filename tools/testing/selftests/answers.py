# SPDX-License-Identifier: GPL-2.0
"""Compares answers about LTTng's trace of the kernel.

Usage: answers.py text TEXT REPORT    computes the answers from TEXT, which babeltrace2 prints (--clock-cycles
                                      --no-delta), with the contexts procname and tid. REPORT is that of `rtrace report
                                      --syscalls --latency --threads --irq --json -n 0`
       answers.py both OURS THEIRS    compares the counts in two such reports (--by-process) of the same threads, of
                                      rtrace's trace and of LTTng's
       answers.py counts OURS THEIRS  compares the rows of two tables of `rtrace count -i --json`

Exit status 1 if an answer differs.
"""

import collections
import json
import re
import sys

LINE = re.compile(r"\[(\d+)\] \S+ (\w+): \{ cpu_id = (\d+) \}, \{ (.*?) \}, \{ (.*)\}$")
# A thread's states in which it can run: running, and preempted.
RUNNABLE = (0, 0x100)


def events(path):
    """Time, name, CPU, contexts and fields of each event."""
    with open(path, errors="replace") as file:
        for line in file:
            if m := LINE.match(line):
                yield int(m[1]), m[2], int(m[3]), m[4], m[5]


def number(text, name):
    return int(re.search(r"\b%s = (-?\d+)" % name, text)[1])


def of_text(path):
    """The answers, computed from the text: calls, waits after wake-ups, switches and times of threads, interrupts."""
    calls = collections.defaultdict(lambda: [0, 0, 0, 0])
    waits, left, ran = [], collections.Counter(), collections.Counter()
    handled = collections.defaultdict(lambda: [0, 0])
    inside, asleep, woken, running, handling = {}, {}, {}, {}, {}
    for time, name, cpu, contexts, fields in events(path):
        tid = number(contexts, "tid")
        if name.startswith("syscall_entry_"):
            inside[tid] = time, name.removeprefix("syscall_entry_")
        elif name.startswith("syscall_exit_"):
            begin, call = inside.pop(tid, (0, ""))
            if call == name.removeprefix("syscall_exit_"):
                row = calls[call]
                row[0] += 1
                row[1] += -4096 < number(fields, "ret") < 0
                row[2] += time - begin
                row[3] = max(row[3], time - begin)
        elif name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            tid = number(fields, "tid")
            if asleep.get(tid, True) and tid not in woken and tid not in [task for task, _ in running.values()]:
                woken[tid] = time
        elif name == "sched_switch":
            prev, state, tid = (number(fields, field) for field in ("prev_tid", "prev_state", "next_tid"))
            left[prev] += 1
            if cpu in running:
                ran[prev] += time - running[cpu][1]
            woken.pop(prev, None)
            asleep[prev] = state not in RUNNABLE
            running[cpu] = tid, time
            if tid in woken and tid != 0:
                waits.append(time - woken.pop(tid))
        elif name in ("irq_softirq_entry", "irq_handler_entry"):
            handling[cpu, name[:8]] = time
        elif name in ("irq_softirq_exit", "irq_handler_exit"):
            begin = handling.pop((cpu, name[:8]), None)
            if begin is not None:
                kind, key = ("soft", "vec") if name == "irq_softirq_exit" else ("hard", "irq")
                row = handled[kind, number(fields, key)]
                row[0] += 1
                row[1] += time - begin
    return calls, waits, left, ran, handled


def text(path, report):
    calls, waits, left, ran, handled = of_text(path)
    found = {row["name"]: [row["timed"], row["errors"], row["total_ns"], row["max_ns"]] for row in report["syscalls"]["calls"]}
    same("system calls", {name: row for name, row in found.items() if row[0]}, dict(calls))
    latency = report["latency"]
    same("waits", (latency["timed"], latency["total_ns"], latency["max_ns"]), (len(waits), sum(waits), max(waits)))
    threads = {row["tid"]: sum(row["left"].values()) for row in report["threads"]["threads"]}
    same("switches", threads, {tid: count for tid, count in left.items() if tid})
    rows = collections.defaultdict(lambda: [0, 0])
    for row in report["irq"]["interrupts"]:
        entry = rows[row["kind"], row["number"]]
        entry[0] += row["timed"]
        entry[1] += row["total_ns"]
    same("interrupts", dict(rows), dict(handled))
    print(f"{sum(row[0] for row in calls.values())} calls of {len(calls)} kinds, {len(waits)} waits, {sum(left.values())} "
          f"switches of {len(left)} threads, {sum(row[0] for row in handled.values())} interrupts")


def both(ours, theirs):
    def counts(report):
        latency = {row["tid"]: row["wakeups"] for row in report["latency"]["threads"]}
        threads = {row["tid"]: (row["comm"], sorted(row["left"].items())) for row in report["threads"]["threads"]}
        calls = {(row["pid"], row["name"]): (row["calls"], row["errors"]) for row in report["syscalls"]["processes"]}
        return {"wake-ups": latency, "threads": threads, "calls": calls}
    ours, theirs = counts(ours), counts(theirs)
    for what in ours:
        same(what, ours[what], theirs[what])
        print(f"{len(ours[what])} rows of {what} are equal")


def counts(ours, theirs):
    def rows(table):
        keys = table["keys"]
        return {tuple(row[key] for key in keys): [row[column] for column in table["columns"]] for row in table["rows"]}
    same("counts", rows(ours), rows(theirs))
    print(f"{len(ours['rows'])} rows are equal")


def same(what, found, expected):
    if found == expected:
        return
    if isinstance(found, dict):
        keys = sorted(key for key in {*found, *expected} if found.get(key) != expected.get(key))
        found, expected = ({key: rows.get(key) for key in keys[:10]} for rows in (found, expected))
    sys.exit(f"{what} differ: {found}, expected {expected}")


def main():
    how, first, second = sys.argv[1:]
    if how == "text":
        return text(first, json.load(open(second)))
    return {"both": both, "counts": counts}[how](json.load(open(first)), json.load(open(second)))


main()
