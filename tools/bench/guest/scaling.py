# SPDX-License-Identifier: GPL-2.0
"""Whether an event costs more where more CPUs record at once; under icount.

QEMU runs the virtual CPUs in turn then, and its clock counts the instructions of all. All
fire COUNT events each; from the moment when all are ready till the last is done, without what
the same takes where no tracer is, divided by all events: instructions per event. It stays the
same if no CPU waits for another or does work for it. What the kernel does meanwhile (timers,
waking the threads) is in it and only adds to it, so it is the least of some volleys. What this
cannot show is the time that processors lose over cache lines which they share; which lines are
is shown by the code (see Documentation/performance.md).
"""

import os

import firing
import tracers
from tracers.base import Memory

SITE = "sched_switch"
VOLLEYS = 5


def least(count, cpus):
    """(instructions of all CPUs, events) of the volley that took least."""
    volleys = [firing.fire(SITE, count, cpus) for _ in range(VOLLEYS)]
    return min(volley.elapsed for volley in volleys), volleys[0].events


def of_all(say, quick=None):
    count = 10_000 if quick else 30_000
    cpus = os.cpu_count()
    result = {"cpus": cpus, "tracers": {}}
    nobody, events = least(count, cpus)
    for label, tracer in (("rtrace", tracers.Rtrace()), ("LTTng", tracers.Lttng()),
                          ("ftrace", tracers.Ftrace()), ("perf", tracers.Perf()),
                          ("BPF ring buffer", tracers.Bpf())):
        tracer.start([SITE], "overwrite", Memory(256 << 10, 4))
        firing.fire(SITE, 1000, cpus)
        elapsed, _ = least(count, cpus)
        tracer.stop()
        result["tracers"][label] = (elapsed - nobody) / events
        say(f"{cpus} CPUs: {label}: {result['tracers'][label]:.1f}")
    return result
