# SPDX-License-Identifier: GPL-2.0
"""Threads whose names and ids change, and what the views of a trace say of them.

Usage: taskname.py run TRUTH           changes names and ids, and writes what the kernel says to TRUTH
       taskname.py compare TRUTH TRACE exit status 1 if a view of TRACE differs
"""

import collections
import csv
import ctypes
import io
import json
import os
import re
import subprocess
import sys
import threading
import time

PR_SET_NAME = 15

# The kernel's largest id. The process of the tracks of CPUs has a larger one.
PID_MAX = 1 << 22


def note(truth):
    """Writes the kernel's name of this thread. The call of getppid marks its place in the trace."""
    time.sleep(0.02)
    with open("/proc/thread-self/comm") as file:
        comm = file.read().rstrip("\n")
    with open(truth, "a") as file:
        file.write(f"{threading.get_native_id()} {comm}\n")
    os.getppid()
    time.sleep(0.02)


def rename(name):
    ctypes.CDLL(None).prctl(PR_SET_NAME, name)


def again(truth, step):
    return [sys.executable, "-S", os.path.abspath(__file__), step, truth]


def wait_for(pid):
    assert os.waitpid(pid, 0) == (pid, 0)


def run(truth):
    note(truth)
    rename(b"second")
    note(truth)
    # A thread that another one names.
    started, named = threading.Event(), threading.Event()

    def helper():
        started.set()
        named.wait()
        note(truth)

    thread = threading.Thread(target=helper)
    thread.start()
    started.wait()
    with open(f"/proc/self/task/{thread.native_id}/comm", "w") as file:
        file.write("a helper")
    named.set()
    thread.join()
    # A program that is executed by its descriptor.
    pid = os.fork()
    if pid == 0:
        program = os.open(sys.executable, os.O_RDONLY)
        os.execve(program, again(truth, "note"), os.environ)
    wait_for(pid)
    # Another process with its id.
    for _ in range(100):
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        other = os.fork()
        if other == 0:
            if os.getpid() == pid:
                note(truth)
                rename(b"same id")
                note(truth)
            os._exit(0)
        wait_for(other)
        if other == pid:
            break
    assert other == pid, "no process got the id"
    # A thread that executes a program, and thus becomes the first one.
    pid = os.fork()
    if pid == 0:
        thread = threading.Thread(target=lambda: os.execv(sys.executable, again(truth, "last")))
        thread.start()
        thread.join()
    wait_for(pid)
    note(truth)


def rtrace(*arguments):
    return subprocess.run(["rtrace", *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def csv_rows(text):
    return [(int(row["tid"]), row["comm"]) for row in csv.DictReader(io.StringIO(text)) if row["tid"]]


def found(text, pattern):
    """Thread and name of each line with a call of getppid."""
    found = (re.search(pattern, line) for line in text.splitlines() if "getppid" in line)
    return [(int(match["tid"]), match["comm"].strip()) for match in found if match]


def lines(text, expected):
    """The same, of lines whose columns may have spaces: a name is at the end of one."""
    rows = found(text, r"^(?P<comm>.*)/(?P<tid>\d+) getppid\(")
    names = [comm for _, comm in expected]
    return [(tid, name if before.endswith(f" {name}") else before) for (tid, before), name in zip(rows, names)]


def chrome(trace):
    """The name on the CPU's track at the begin of each call."""
    events = json.loads(rtrace("export", "chrome", trace))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    runs = [event for event in slices if event["pid"] > PID_MAX and "tid" in event["args"]]
    calls = sorted((event for event in slices if event["name"] == "getppid"), key=lambda event: event["ts"])

    def at(call):
        ran = [run for run in runs if run["args"]["tid"] % 10_000_000 == call["tid"] % 10_000_000
               and run["ts"] <= call["ts"] < run["ts"] + run["dur"]]
        return [(run["args"]["tid"] % 10_000_000, run["name"]) for run in ran]

    return [name for call in calls for name in at(call)]


def compare(truth, trace):
    with open(truth) as file:
        expected = [line.rstrip("\n").split(" ", 1) for line in file]
    expected = [(int(tid), comm) for tid, comm in expected]
    tids = {tid for tid, _ in expected}
    views = {
        "trace": lines(rtrace("trace", "-i", trace), expected),
        "csv": csv_rows(rtrace("export", "csv", "-e", "syscall_entry_getppid", trace)),
        "query": csv_rows(rtrace("query", "--format", "csv",
                                 "SELECT tid, comm FROM syscalls WHERE name = 'getppid' ORDER BY ns", trace)),
        "text": found(rtrace("export", "text", "-e", "syscall_entry_getppid", trace),
                      r"^ *(?P<comm>.*)-(?P<tid>\d+) +\["),
        "perf-script": found(rtrace("export", "perf-script", "-e", "syscall_entry_getppid", trace),
                             r"^ *(?P<comm>.*?) +(?P<tid>\d+) \["),
        "chrome": chrome(trace),
    }
    differ = 0
    for view, rows in views.items():
        rows = [row for row in rows if row[0] in tids]
        if rows != expected:
            differ += 1
            print(f"{view}: {rows}\nthe kernel: {expected}")
    # These have the last name of each thread, and the number of calls with a name.
    last = {}
    for tid, comm in expected:
        last.setdefault(tid, []).append(comm)
    rows = json.loads(rtrace("report", "--threads", "--json", "-n", "0", trace))["threads"]["threads"]
    for tid, names in last.items():
        shown = [row["comm"] for row in rows if row["tid"] == tid]
        if names[-1] not in shown or not set(shown) <= set(names):
            differ += 1
            print(f"report --threads: {tid} is {shown}, by the kernel {names}")
    folded = collections.Counter()
    for line in rtrace("export", "folded", "-e", "syscall_entry_getppid", trace).splitlines():
        stack, count = line.rsplit(" ", 1)
        folded[stack.split(";")[0]] += int(count)
    counts = collections.Counter(comm.replace(" ", "_") for _, comm in expected)
    if folded != counts:
        differ += 1
        print(f"folded: {folded}, by the kernel {counts}")
    print(f"{len(expected)} names, {differ} views differ")
    return differ > 0


if __name__ == "__main__":
    step, truth = sys.argv[1:3]
    if step == "run":
        run(truth)
    elif step == "compare":
        sys.exit(compare(truth, sys.argv[3]))
    else:
        note(truth)
