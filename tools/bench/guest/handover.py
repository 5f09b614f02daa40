# SPDX-License-Identifier: GPL-2.0
"""What it takes to get a packet of another CPU and to give it back; under icount, with two CPUs,
the writer's idle.

rtrace's default interrupts the writer's CPU for each packet that is read, so that the writer has
no barrier; the module parameter delivery_barrier=1 puts a barrier where the writer finishes a
packet instead.

QEMU counts the instructions of both CPUs. The writer's has nothing to do, and what interrupts
either now and then only adds to the count: so the figure is the least that one of many packets
takes. With it is what the interrupted CPU executes until QEMU lets the reader go on, and
Python's own part.
"""

import fcntl
import os
import time

import firing
import tracers
from primitives import PACKETS, SITE
from tracers.base import run


def get_and_put(stream):
    """Instructions for one packet."""
    packet = bytearray(32)
    begin = time.monotonic_ns()
    fcntl.ioctl(stream, tracers.rtrace.GET_PACKET, packet)
    fcntl.ioctl(stream, tracers.rtrace.PUT_PACKET)
    return time.monotonic_ns() - begin


def of_packets(barrier):
    tracer = tracers.Rtrace(parameters=[f"delivery_barrier={barrier}"])
    os.sched_setaffinity(0, {1})
    tracer.start([SITE], "discard", PACKETS)
    firing.fire(SITE, 30_000)
    os.sched_setaffinity(0, {0})
    time.sleep(0.1)
    stream = os.open(f"{tracer.channel}/cpu1", os.O_RDONLY)
    least = min(get_and_put(stream) for _ in range(400))
    os.close(stream)
    tracer.stop()
    run("rmmod", "rtrace")
    return least


def of_all(say, quick=None):
    ways = {}
    for barrier, title in ((0, "the reader interrupts the writer's CPU"), (1, "delivery_barrier=1")):
        ways[title] = of_packets(barrier)
        say(f"{title}: {ways[title]}")
    return {"tables": {"Getting a packet of another CPU and giving it back": ways}}
