# SPDX-License-Identifier: GPL-2.0
"""Cost of the order between a record and its reader (scripts/bench barriers); under icount.

The setting `barrier` of the channel chooses the side that pays for the order of a packet.
"""

import fcntl
import os
import re
import time

import firing
import tracers
from instructions import with_room
from tracers.base import Memory, read, write
from tracers.rtrace import GET_PACKET, PUT_PACKET

SITE = "softirq_entry"
POLICIES = "writer", "reader"
# One page: the smallest packets.
PACKETS = Memory(4096, 512)


def started(policy, memory):
    tracer = tracers.Rtrace()
    write(tracer.channel + "/barrier", policy)
    tracer.start([SITE], "discard", memory)
    return tracer


def of_records():
    """(name, instructions of a record). With one CPU."""
    for policy in POLICIES:
        tracer = tracers.Rtrace()
        write(tracer.channel + "/barrier", policy)
        instructions, _, _ = with_room(tracer, SITE)
        yield f"{policy}/record", instructions
        tracer = started(policy, PACKETS)
        firing.fire(SITE, 1000)
        yield f"{policy}/record-in-small-packet", firing.ticks_per_event(firing.fire(SITE, 100_000))
        assert not tracer.stop().lost


def calls_of(cpu):
    """Number of interrupts that asked the CPU to call a function."""
    line = re.search(r"^.*Function call interrupts$", read("/proc/interrupts"), re.M)[0]
    return int(line.split()[1 + cpu])


def of_packets():
    """(name, figure) of taking and returning a packet of another, idle CPU: instructions of both CPUs, the smallest
    number of many packets, and interrupts per packet. With two CPUs."""
    for policy in POLICIES:
        os.sched_setaffinity(0, {1})
        tracer = started(policy, PACKETS)
        firing.fire(SITE, 300_000)
        os.sched_setaffinity(0, {0})
        time.sleep(0.1)
        stream = os.open(f"{tracer.channel}/cpu1", os.O_RDONLY)
        packet, count, least = bytearray(32), 200, None
        calls = calls_of(1)
        for _ in range(count):
            begin = time.monotonic_ns()
            fcntl.ioctl(stream, GET_PACKET, packet)
            fcntl.ioctl(stream, PUT_PACKET)
            took = time.monotonic_ns() - begin
            least = min(least or took, took)
        yield f"{policy}/interrupts-per-packet", (calls_of(1) - calls) / count
        yield f"{policy}/get-and-put", least
        os.close(stream)
        tracer.stop()


def of_rtrace(part):
    return of_records() if part == "records" else of_packets()
