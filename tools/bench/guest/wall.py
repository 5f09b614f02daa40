# SPDX-License-Identifier: GPL-2.0
"""Nanoseconds per event on all CPUs at once, each a thread of the host. Emulated and noisy: it
says in which order the tracers are, not what a processor would take. The median of some rounds.
"""

import os
import statistics

import firing
import tracers
from tracers.base import FOUR_MIB

TRACERS = (("rtrace", tracers.Rtrace), ("LTTng", tracers.Lttng), ("ftrace", tracers.Ftrace),
           ("perf", tracers.Perf), ("BPF ring buffer", tracers.Bpf))


def nanoseconds(volley):
    return firing.ticks_per_event(volley) * 1e6 / volley.tsc_khz


def of_all(say, quick=None):
    rounds, cpus = 3 if quick else 7, os.cpu_count()
    result = {"rounds": rounds, "cpus": cpus, "tracers": {}}
    for label, make in TRACERS:
        tracer = make()
        result["tracers"][label] = {}
        for site in firing.SITES:
            measured = []
            for _ in range(rounds):
                tracer.start([site], "overwrite", FOUR_MIB)
                firing.fire(site, 1000, cpus)
                measured.append(nanoseconds(firing.fire(site, 20_000, cpus)))
                tracer.stop()
            result["tracers"][label][site] = statistics.median(measured)
            say(f"{label}: {site}: {statistics.median(measured):.0f} ns, {min(measured):.0f} to {max(measured):.0f}")
    return result
