# SPDX-License-Identifier: GPL-2.0
"""Tracing to another machine, over loopback; under icount, on one CPU, which both sides share.

The benchmark searches the rate as disk.py does. The sender, the network and the receiver get the
rest of the CPU.

The cost is the time for which the threads of sender and receiver run, for each MiB, while nothing
is recorded. The running thread also gets the time of the network's softirqs. This is mostly the
sender: over loopback, its data has arrived when send(2) returns. So only the sum can be compared.
"""

import tracers
from disk import MEMORY, STEP, highest_rate, per_mib, prepare, trace_at
from tracers.base import run

TRACERS = (("rtrace", lambda: tracers.Rtrace(network=True)),
           ("LTTng", lambda: tracers.Lttng(read_timer_us=1000, network=True)),
           ("ftrace", lambda: tracers.Ftrace(network=True)))


def of_all(say, quick=None):
    prepare()
    run("ip", "link", "set", "lo", "up")
    events, rounds = (60_000, 3) if quick else (150_000, 5)
    result = {"memory": MEMORY, "step": STEP, "tracers": {}}
    for label, make in TRACERS[:2] if quick else TRACERS:
        tracer = make()
        rate, tried = highest_rate(tracer, events, say)
        slow = trace_at(tracer, 100, events // 4)
        size = slow["bytes"] / slow["events"]
        sender, receiver = per_mib(tracer, size, rounds, [tracer.writers, tracer.receivers])
        result["tracers"][label] = {"rate": rate, "tried": tried, "bytes": size, "sender": sender,
                                    "receiver": receiver}
        say(f"{label}: {result['tracers'][label]}")
    return result
