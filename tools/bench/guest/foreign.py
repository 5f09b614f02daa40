# SPDX-License-Identifier: GPL-2.0
"""Reading traces of other tracers; under icount, on one CPU.

Each tracer records the same load. Then rtrace and the programs of that tracer read its trace. The guest's clock counts
the instructions of the reader and of the kernel.
"""

import os
import re
import shutil
import subprocess
import time

from tracers.base import run
from tracers.lttng import Lttng

DIR = "/tmp/foreign"
KERNEL = "sched_*,irq_*,timer_*"
TRACEPOINTS = "sched", "irq", "timer", "raw_syscalls"


def load(size):
    run("hackbench", "-g", "1", "-l", str(size))


def by_lttng(size):
    out = f"{DIR}/lttng"
    Lttng()
    for words in (["create", "foreign", f"--output={out}"],
                  ["enable-channel", "--kernel", "all", "--subbuf-size=4M", "--num-subbuf=16"],
                  ["enable-event", "--kernel", "--channel=all", KERNEL],
                  ["enable-event", "--kernel", "--channel=all", "--syscall", "--all"],
                  ["add-context", "--kernel", "--channel=all", "--type=procname", "--type=tid"],
                  ["start"]):
        run("lttng", *words)
    load(size)
    run("lttng", "stop")
    run("lttng", "destroy")
    return out, {"babeltrace2, dummy": ["babeltrace2", out, "-c", "sink.utils.dummy"], "babeltrace2, text": ["babeltrace2", out]}


def by_trace_cmd(size):
    out = f"{DIR}/trace.dat"
    events = [word for name in TRACEPOINTS for word in ("-e", name)]
    run("trace-cmd", "record", "-q", "-o", out, "-b", "65536", *events, "hackbench", "-g", "1", "-l", str(size))
    return out, {"trace-cmd report": ["trace-cmd", "report", "-i", out]}


def by_perf(size):
    out = f"{DIR}/perf.data"
    events = [word for name in TRACEPOINTS for word in ("-e", f"{name}:*")]
    run("perf", "record", "-q", "-a", "-m", "16M", "-o", out, *events, "--", "hackbench", "-g", "1", "-l", str(size))
    return out, {"perf script": ["perf", "script", "-i", out]}


def took(command):
    """The instructions of a command, of several runs the fewest: the first one also reads from disk."""
    runs = []
    for _ in range(2):
        begin = time.monotonic_ns()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        runs.append(time.monotonic_ns() - begin)
    return min(runs)


def of_all(say, quick=None):
    size = 30 if quick else 150
    result = {"traces": {}}
    for name, record in (("LTTng", by_lttng), ("trace-cmd", by_trace_cmd), ("perf", by_perf)):
        shutil.rmtree(DIR, ignore_errors=True)
        os.mkdir(DIR)
        trace, peers = record(size)
        said = run("rtrace", "report", trace)
        events = int(re.search(r"^(\d+) events recorded", said, re.M)[1])
        commands = {"rtrace report": ["rtrace", "report", trace], "rtrace export csv": ["rtrace", "export", "csv", trace], **peers}
        found = {label: took(command) / events for label, command in commands.items()}
        result["traces"][name] = {"events": events, "readers": found}
        say(f"{name}: {result['traces'][name]}")
    return result
