# SPDX-License-Identifier: GPL-2.0
"""Cost of taking a packet of another CPU and returning it; under icount, with two CPUs. The
writer's CPU is idle.

With barrier `reader`, rtrace interrupts the writer's CPU for each packet that is read. With `writer`, it has a
barrier where the writer finishes a packet instead.

QEMU counts the instructions of both CPUs. Other interrupts of either CPU only add to the count.
So the figure is the smallest count of many packets. It includes the instructions of the
interrupted CPU until QEMU continues the reader, and Python's own part.
"""

import fcntl
import os
import time

import firing
import tracers
from primitives import PACKETS, SITE
from tracers.base import run, write


def get_and_put(stream):
    """Instructions for one packet."""
    packet = bytearray(32)
    begin = time.monotonic_ns()
    fcntl.ioctl(stream, tracers.rtrace.GET_PACKET, packet)
    fcntl.ioctl(stream, tracers.rtrace.PUT_PACKET)
    return time.monotonic_ns() - begin


def of_packets(barrier):
    tracer = tracers.Rtrace()
    write(tracer.channel + "/barrier", barrier)
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
    for barrier, title in (("reader", "the reader interrupts the writer's CPU"), ("writer", "barrier=writer")):
        ways[title] = of_packets(barrier)
        say(f"{title}: {ways[title]}")
    return {"tables": {"Getting a packet of another CPU and giving it back": ways}}
