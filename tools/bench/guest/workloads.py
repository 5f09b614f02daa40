# SPDX-License-Identifier: GPL-2.0
"""Cost that tracing adds to usual benchmarks; under icount, on one CPU: a nanosecond of the guest's
clock is an executed instruction.

Every tracer records the same tracepoints: scheduler, interrupts, timers and all system calls.
"""

import os
import re
import shutil
import statistics
import subprocess
from collections import namedtuple

import tracers
from tracers.base import EVERYTHING, FOUR_MIB, read, run, wait_for

DISK = "/var/bench/disk"

TRACERS = (("rtrace", tracers.Rtrace), ("LTTng", tracers.Lttng), ("ftrace", tracers.Ftrace),
           ("perf", tracers.Perf), ("BPF ring buffer", tracers.Bpf))

# `measure` returns the instructions per operation of a run of a given size; `full` and `quick` are
# sizes, 0: not run.
Workload = namedtuple("Workload", "name operation measure full quick rounds", defaults=(3,))


# The addresses of a program's memory affect the cost of its fork.
UNRANDOMIZED = "setarch", "--addr-no-randomize"


def perf_bench(*arguments):
    def measure(size):
        said = run(*UNRANDOMIZED, "perf", "bench", *arguments, "--loop", str(size))
        return float(re.search(r"([0-9.]+) usecs/op", said).group(1)) * 1000
    return measure


def hackbench(loops):
    """One group: 20 senders that each send to 20 receivers."""
    said = run(*UNRANDOMIZED, "hackbench", "--groups", "1", "--loops", str(loops))
    return float(re.search(r"Time: ([0-9.]+)", said).group(1)) * 1e9 / (20 * 20 * loops)


def tbench(seconds):
    """One client of a server over loopback. It counts by the second, not from the first on; a
    second is a billion instructions."""
    server = subprocess.Popen(["tbench_srv"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # A client that starts before the server listens (on port 7003) is not restarted.
        wait_for(lambda: re.search(r":1B5B \S+ 0A ", read("/proc/net/tcp")), "tbench_srv")
        said = run("tbench", "-t", str(seconds), "1", "127.0.0.1")
    finally:
        server.kill()
        server.wait()
    throughput = float(re.search(r"Throughput ([0-9.]+) MB/sec", said).group(1))
    if not throughput:
        raise RuntimeError(f"tbench measured nothing in {seconds} s: {said[-300:]}")
    return 1e9 / throughput / 1024


WORKLOADS = (
    Workload("perf bench syscall basic", "getppid()", perf_bench("syscall", "basic"), 200_000, 50_000),
    Workload("perf bench sched pipe", "round trip", perf_bench("sched", "pipe"), 10_000, 3_000),
    Workload("perf bench syscall fork", "fork, exit, wait", perf_bench("syscall", "fork"), 60, 30),
    Workload("hackbench", "message", hackbench, 100, 30),
    # One slow round is enough.
    Workload("tbench", "KiB", tbench, 3, 0, 1),
)


# Kinds of recording: the tracer's mode, and whether it writes to disk.
MODES = {"recorder": ("overwrite", False), "disk": ("discard", True)}


def traced(tracer, mode, to_disk, measure):
    """(instructions per operation, what the trace came to)"""
    shutil.rmtree(DISK, ignore_errors=True)
    os.makedirs(DISK)
    tracer.start(EVERYTHING, mode, FOUR_MIB, DISK if to_disk else None)
    try:
        instructions = measure()
    finally:
        outcome = tracer.stop()
        shutil.rmtree(DISK)
    return instructions, outcome


def measured(workload, size, rounds, tracer, mode, to_disk):
    """Of some rounds: the median of what tracing adds; what was lost in all of them. Each traced run
    is compared with the untraced one just before it, for figures drift."""
    bare, added, lost = [], [], 0
    for _ in range(rounds):
        bare.append(workload.measure(size))
        if not tracer:
            added.append(workload.measure(size) - bare[-1])
            continue
        figure, outcome = traced(tracer, mode, to_disk, lambda: workload.measure(size))
        added.append(figure - bare[-1])
        lost = lost + outcome.lost if to_disk and outcome.lost is not None else None
    return {"bare": statistics.median(bare), "added": statistics.median(added), "of": added, "lost": lost}


def of_all(say, mode, quick=None):
    chosen = [(workload, workload.quick if quick else workload.full) for workload in WORKLOADS]
    chosen = [(workload, size) for workload, size in chosen if size]
    result = {"operations": {workload.name: workload.operation for workload, _ in chosen}, "runs": {}}
    for workload, size in chosen:
        workload.measure(max(size // 10, 3))  # what is read from disk the first time
    # Also without a tracer, to see by how much equal runs differ.
    for label, make in (("none", lambda: None), *(TRACERS[:2] if quick else TRACERS)):
        tracer = make()
        result["runs"][label] = {}
        for workload, size in chosen:
            try:
                rounds = 1 if quick else workload.rounds
                came = measured(workload, size, rounds, tracer, *MODES[mode])
            except RuntimeError as error:
                came = {"error": str(error)[-500:]}
            result["runs"][label][workload.name] = came
            say(f"{label}: {workload.name}: {came}")
    return result
