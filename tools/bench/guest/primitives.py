# SPDX-License-Identifier: GPL-2.0
"""The paper's Table 6: what the ring is made of, against what it could be made of; under icount.

Instructions of a reservation and a commit by either means (rtrace_bench.c), alone in a loop
whose own cost is taken off. Instructions are not cycles: on a processor, disabling interrupts
and a LOCK prefix take tens of cycles more than the instructions that they are.

And of handing a packet to a reader on another CPU: rtrace's default interrupts the writer's
CPU for each packet that is read, so that the writer has no barrier; the module parameter
delivery_barrier=1 puts a barrier where the writer finishes a packet instead.
"""

import fcntl
import os
import time

import firing
import tracers
from tracers.base import Memory, run

SITE = "sched_switch"
LOOPS = 100_000
MEANS = {
    "local": "local cmpxchg and add (what the ring does)",
    "locked": "the same with LOCK prefixes",
    "irq-off": "plain loads and stores, interrupts disabled",
    "preempt-off": "plain loads and stores, preemption disabled (not safe against interrupts)",
}
# One page: packets that are as small as they can be.
PACKETS = Memory(4096, 512)


def of_means(say):
    empty = firing.primitive("empty", LOOPS)
    for name, title in MEANS.items():
        cost = (firing.primitive(name, LOOPS) - empty) / LOOPS
        say(f"{title}: {cost:.1f}")
        yield title, cost


def of_packets(barrier, say):
    """(instructions per packet read on CPU 0, per event written on CPU 1)"""
    tracer = tracers.Rtrace(parameters=[f"delivery_barrier={barrier}"])
    os.sched_setaffinity(0, {1})
    tracer.start([SITE], "discard", PACKETS)
    firing.fire(SITE, 1000)
    event = firing.ticks_per_event(firing.fire(SITE, 20_000))
    os.sched_setaffinity(0, {0})
    time.sleep(0.1)
    stream = os.open(f"{tracers.rtrace.CHANNEL}/cpu1", os.O_RDONLY)
    packets = 0
    begin = time.monotonic_ns()
    while packets < 250:
        fcntl.ioctl(stream, tracers.rtrace.GET_PACKET, bytes(32))
        fcntl.ioctl(stream, tracers.rtrace.PUT_PACKET)
        packets += 1
    packet = (time.monotonic_ns() - begin) / packets
    os.close(stream)
    tracer.stop()
    run("rmmod", "rtrace")
    say(f"delivery_barrier={barrier}: {packet:.0f} per packet, {event:.1f} per event")
    return packet, event


def of_all(say, quick=None):
    tables = {"A reservation and a commit": dict(of_means(say))}
    interrupt, barrier = of_packets(0, say), of_packets(1, say)
    tables["Taking a packet of another CPU and giving it back (from Python: its own part is in both)"] = {
        "the reader interrupts the writer's CPU": interrupt[0], "delivery_barrier=1": barrier[0]}
    tables["An event, with a packet of 4 KiB to finish every 67 events"] = {
        "the reader interrupts the writer's CPU": interrupt[1], "delivery_barrier=1": barrier[1]}
    return {"tables": tables}
