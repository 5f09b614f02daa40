# SPDX-License-Identifier: GPL-2.0
"""Whether an event costs more where more CPUs record at once; under icount.

QEMU runs the virtual CPUs in turn then, and its clock counts the instructions of all. All
fire COUNT events each; from the moment when all are ready till the last is done, without what
the same takes where no tracer is, divided by all events: instructions per event. It stays the
same if no CPU waits for another or does work for it. What this cannot show is the time that
processors lose over cache lines which they share; which lines are is shown by the code (see
Documentation/performance.md).
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
        result["tracers"][label] = (volley.elapsed - nobody.elapsed) / volley.events
        say(f"{cpus} CPUs: {label}: {result['tracers'][label]:.1f}")
    return result
