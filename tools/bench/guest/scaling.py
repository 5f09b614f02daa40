# SPDX-License-Identifier: GPL-2.0
"""Whether an event takes more instructions where more CPUs record at once; under icount.

QEMU runs the virtual CPUs in turn then, each for a while, and its clock counts the instructions
of all. So what a CPU executes itself is what it takes for events between which QEMU ran no
other: the quickest of the batches that it fires. All CPUs fire COUNT events each; the loop
without a tracer is subtracted. The figure stays the same if the code takes the same way with
many CPUs as with one. Not in it is what is not in every batch: a packet's end. And it cannot
show the time that processors lose by waiting for each other and over cache lines which they
share; which lines are is shown by the code (see Documentation/performance.md).
"""

import os

import firing
import tracers
from tracers.base import Memory

SITE = "sched_switch"


def of_all(say, quick=None):
    count = 10_000 if quick else 30_000
    cpus = os.cpu_count()
    result = {"cpus": cpus, "tracers": {}}
    nobody = firing.fire(SITE, count, cpus)
    for label, tracer in (("rtrace", tracers.Rtrace()), ("LTTng", tracers.Lttng()),
                          ("ftrace", tracers.Ftrace()), ("perf", tracers.Perf()),
                          ("BPF ring buffer", tracers.Bpf())):
        tracer.start([SITE], "overwrite", Memory(256 << 10, 4))
        firing.fire(SITE, 1000, cpus)
        volley = firing.fire(SITE, count, cpus)
        tracer.stop()
        result["tracers"][label] = (volley.least - nobody.least) / volley.events
        say(f"{cpus} CPUs: {label}: {result['tracers'][label]:.1f}")
    return result
