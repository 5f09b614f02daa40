# SPDX-License-Identifier: GPL-2.0
"""Instructions and bytes that a call stack adds to an event; under icount, on one CPU.

As in instructions.py: a run that did not record what it should ends with an error.
"""

import concurrent.futures
import json
import multiprocessing
import os
import platform
import subprocess

import firing
import tracers
from choices import LONG
from instructions import COUNT, cost
from tracers.base import ALL, Choice, run

# The event.
SITE = "sched_switch"
# The functions of arm64's entry into a system call that x86-64 has not.
ENTRY = 5 if platform.machine() == "aarch64" else 0
# The sites that fire it, and from about how many functions.
DEPTHS = {"sched_switch": 10 + ENTRY, "sched_switch_deeper": 20 + ENTRY}
# About how many functions of this program are on the stack of a thread, if so many functions of Python call the firing by map().
OF_PROGRAM, CALLS = 20, 2
# In one of four processes an address of the stack has the older rule of its slot, which costs some instructions more. If
# addresses replace each other's rules, each stack looks them up, at some 1,000 instructions. That takes three addresses with
# the same slot, so more than one process shows a fault.
PROCESSES, LOOKED_UP = 64, 500
KERNEL, USER = Choice(contexts=("callstack-kernel",)), Choice(contexts=("callstack-user",))


def load_tables():
    """Loads the unwind tables of all programs. They stay while a session takes stacks of programs."""
    subprocess.run(["rtrace", "record", "-e", "getppid", "--context", "callstack-user", "-o", "/tmp/tables", "--", "true"],
                   check=True, capture_output=True)


def through(calls, function):
    return next(map(lambda _: through(calls - 1, function), [None])) if calls else function()


def in_thread(function):
    """Calls it in a thread, whose stack is not deep."""
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


def in_process(function):
    """Calls it in a new process, in a thread."""
    result, to = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=lambda: to.send(in_thread(function)))
    process.start()
    to.close()
    answer = result.recv()
    process.join()
    return answer


def measure(tracer, site, choice, calls=0, count=COUNT):
    """Instructions and bytes of an event. Of a program's stack by rtrace: the least of some processes."""
    tracer.start([SITE], "discard", LONG, choice=choice)
    runs = 1
    if isinstance(tracer, tracers.Rtrace) and choice == USER:
        load_tables()
        runs, count = PROCESSES, count // PROCESSES

    def fire():
        firing.fire(site, 1000)  # what is done once: opening a packet, learning the rules
        return cost(site, count)

    figures = sorted(in_process(lambda: through(calls, fire)) if calls else fire() for _ in range(runs))
    instructions = figures[0]
    assert all(figure < instructions + LOOKED_UP for figure in figures[:-1]), f"{site}: rules are looked up again: {figures}"
    outcome = tracer.stop()
    assert not outcome.lost, f"{outcome.lost} events of {site} lost"
    return instructions, outcome.size / runs / (count + 1000)


def added(tracer, site, choice, calls=0, count=COUNT):
    """Instructions and bytes that a context adds."""
    instructions, size = measure(tracer, site, choice, calls, count)
    without, least = measure(tracer, site, ALL, calls, count)
    return instructions - without, size - least


def of_depth(site, choice, depth, rest, calls=0):
    """Instructions of a stack of rtrace, which has about `depth` addresses and `rest` other bytes."""
    instructions, size = added(tracers.Rtrace(), site, choice, calls)
    # Packets add some bytes.
    addresses = (size - rest) / 8
    assert abs(addresses - depth) < 2, f"{addresses} addresses of {site} instead of {depth}"
    return instructions


def of_rtrace():
    """(name, figure) of rtrace alone."""
    for site, depth in DEPTHS.items():
        yield f"{SITE}/stack-{depth}", of_depth(site, KERNEL, depth, 4)
    yield f"{SITE}/user-stack-{OF_PROGRAM}", of_depth(SITE, USER, OF_PROGRAM, 5, CALLS)


# Stacks of programs of each tracer, and perf's option for them.
OTHERS = {"perf --call-graph fp": (tracers.Perf, "fp"),
          "perf --call-graph dwarf": (lambda: tracers.Perf(dwarf=True), "dwarf")}

# A program without frame pointers, on some of whose stacks many functions are.
PROGRAM = """
import json, re
def deep(n):
    return max([deep(n - 1)], key=lambda x: x) if n else work()
def work():
    for n in range(100):
        json.dumps({"a": sorted(range(9), key=lambda x: -x)})
        re.sub("a", "b", "banana" * 9)
deep(5)
"""


def whole_of_rtrace():
    """The share of stacks of PROGRAM that reach its first function, of those that a timer stops."""
    report = run("rtrace", "profile", "-F", "9973", "--json", "-o", "/tmp/whole", "--", "python3", "-c", PROGRAM)
    stacks = json.loads(report[report.index("{"):])["profile"]["user_stacks"]
    return stacks["whole"] / stacks["total"]


def whole_of_perf(way):
    """The same of perf, which does not say so: the share of stacks with the function that calls main()."""
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "9973", "--call-graph", way, "-o", "/tmp/perf.data", "--",
                    "python3", "-c", PROGRAM], check=True)
    # With the name of the thread, samples without a stack have a line, too.
    script = run("perf", "script", "--no-inline", "-i", "/tmp/perf.data", "-F", "comm,ip,sym,dso")
    samples = [sample.splitlines() for sample in script.strip().split("\n\n")]
    # Before that function the dynamic linker runs, whose first function is its own.
    is_whole = lambda sample: "__libc_start_main" in "".join(sample[-2:]) or "ld-linux" in sample[-1]
    return sum(map(is_whole, samples)) / len(samples)


def of_all(say, quick=None):
    """The part of scripts/bench."""
    os.sched_setaffinity(0, {0})
    result = {}
    for label, (make, way) in ({"rtrace": (tracers.Rtrace, None)} | OTHERS).items():
        # A copy takes 8 KiB.
        instructions, size = added(make(), SITE, USER, CALLS, 2000)
        whole = whole_of_perf(way) if way else whole_of_rtrace()
        result[label] = {"instructions": instructions, "bytes": size, "whole": whole}
        say(f"{label}: {instructions:.1f} instructions, {size:.1f} bytes, {100 * whole:.1f}% whole")
    return {"stacks": result}
