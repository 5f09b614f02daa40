# SPDX-License-Identifier: GPL-2.0
"""Cost that sums by key add to usual benchmarks, and their memory; under icount, on one CPU."""

import re
import statistics
import time

import maps
from tracers.base import read, write
from workloads import WORKLOADS

CASES = "calls", "off-cpu"
MEMORY_CASES = "integer", "event", "off-cpu"
# The largest table of ftrace.
SIZE = 1 << 17
# The workloads: name, size and rounds. (tbench counts nothing in its first second.)
SIZES = {"fork": ("perf bench syscall fork", 30, 3), "hackbench": ("hackbench", 100, 3), "tbench": ("tbench", 3, 1)}


def measured(workload, size, rounds, begin, end):
    """As of workloads.py: the median of what counting adds to an operation."""
    bare, added = [], []
    for _ in range(rounds):
        bare.append(workload.measure(size))
        begin()
        try:
            added.append(workload.measure(size) - bare[-1])
        finally:
            end()
    return {"bare": statistics.median(bare), "added": statistics.median(added), "of": added}


def kernel_memory():
    """Memory that the kernel uses for itself, in MiB."""
    write("/proc/sys/vm/drop_caches", 3)
    # Also empties the lists of free pages of each CPU.
    write("/proc/sys/vm/compact_memory", 1)
    kib = {name: int(value) for name, value in re.findall(r"(\w+): +(\d+) kB", read("/proc/meminfo"))}
    others = "MemFree", "Buffers", "Cached", "AnonPages", "PageTables", "KernelStack"
    return (kib["MemTotal"] - sum(kib[name] for name in others)) / 1024


def settled():
    """kernel_memory(), when the kernel has freed what it frees later."""
    last = kernel_memory()
    for _ in range(20):
        time.sleep(0.5)
        now = kernel_memory()
        if abs(now - last) < 0.1:
            break
        last = now
    return now


def memory(tracer, say):
    """{case: memory of its tables}"""
    found = {}
    for case in MEMORY_CASES:
        if case in tracer.cases:
            used = []
            for _ in range(4):
                before = settled()
                tracer.begin(case, SIZE)
                used.append(settled() - before)
                tracer.end()
            # The first one also has what stays.
            found[case] = statistics.median(used[1:])
            say(f"{tracer.name}: {case}: {found[case]:.1f} MiB of {used}")
    return found


def workload(name, rounds, size, say):
    """The same of each case, tracer by tracer."""
    chosen = next(workload for workload in WORKLOADS if workload.name == name)
    chosen.measure(size)  # what is read from disk the first time
    tracers = [make() for make in maps.TRACERS]
    # Also without a tracer, to see by how much equal runs differ.
    none = measured(chosen, size, rounds, lambda: None, lambda: None)
    say(f"{name}: {none}")
    cases = {}
    for case in CASES:
        cases[case] = {"none": none}
        for tracer in tracers:
            if case in tracer.cases:
                came = measured(chosen, size, rounds, lambda: tracer.begin(case), tracer.end)
                cases[case][tracer.name] = came
                say(f"{case}: {tracer.name}: {came}")
    return {"operation": chosen.operation, "cases": cases}


def of_all(say, what, quick=None):
    """The part `counting` of scripts/bench: a workload of SIZES, or the memory."""
    if what == "memory":
        return {"size": SIZE, "tracers": {make.name: memory(make(), say) for make in maps.TRACERS}}
    name, size, rounds = SIZES[what]
    return workload(name, 1 if quick else rounds, size, say)
