# SPDX-License-Identifier: GPL-2.0
"""Instructions that a tracer of all system calls adds to a call, its entry and its exit; under icount, on one CPU,
in overwrite mode.

The tracers differ in what they record. rtrace and LTTng record the data that arguments point to. perf and the BPF
tracer record the six registers and the result. ftrace also records paths and buffers.
"""

import ctypes
import os
import socket
import struct
import time

import tracers
from tracers.base import FOUR_MIB, SYSCALLS

# Calls are measured in batches. Interrupts add to some of these, so the smallest figure is the result.
BATCH, BATCHES = 100, 20

libc = ctypes.CDLL(None)


def number(value):
    return ctypes.c_long(value)


def data(layout, *values):
    return ctypes.create_string_buffer(struct.pack(layout, *values))


def cases():
    """The calls: a name, and a function that makes the call."""
    fd, _ = (end.detach() for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    no_fd = -1
    null = os.open("/dev/null", os.O_WRONLY)
    buffer = ctypes.create_string_buffer(16)
    address = data("=HH4s8x", socket.AF_INET, socket.htons(9), socket.inet_aton("127.0.0.1"))
    one = data("=ihh", fd, 1, 0)
    members = ctypes.create_string_buffer(128)
    members[fd // 8] = 1 << fd % 8
    now = data("=QQ", 0, 0)
    parts = data("=QQQQ", *(ctypes.addressof(buffer), 8) * 2)
    path = b"/no/such/file/of/this/name"
    call = libc.syscall
    yield "getppid", lambda: call(110)
    yield "write", lambda: call(1, null, buffer, number(8))
    yield "recvfrom", lambda: call(45, fd, buffer, number(8), number(socket.MSG_DONTWAIT), None, None)
    yield "sendto", lambda: call(44, no_fd, buffer, number(8), number(0), address, number(16))
    yield "poll", lambda: call(7, one, number(1), number(0))
    yield "select", lambda: call(23, number(1000), members, None, None, now)
    yield "writev", lambda: call(20, null, parts, number(2))
    yield "access", lambda: call(21, path, number(0))


def cost(call):
    def batch():
        begin = time.perf_counter_ns()
        for _ in range(BATCH):
            call()
        return time.perf_counter_ns() - begin
    return min(batch() for _ in range(BATCHES)) / BATCH


def added(tracer, calls):
    """(name, figure)."""
    untraced = {name: cost(call) for name, call in calls.items()}
    tracer.start([SYSCALLS], "overwrite", FOUR_MIB)
    traced = {name: cost(call) for name, call in calls.items()}
    outcome = tracer.stop()
    assert outcome.size >= 8 * BATCH * BATCHES * len(calls), f"{tracer.name}: {outcome.size} bytes are not all calls"
    return {name: traced[name] - untraced[name] for name in calls}


def of_rtrace():
    """(name, figure) of rtrace alone."""
    for name, value in added(tracers.Rtrace(), dict(cases())).items():
        yield f"{name}/tsc/traced", value


def of_all(say, quick=None):
    """The part of scripts/bench. It counts: a shorter run would save little."""
    calls, result = dict(cases()), {}
    for label, tracer in (("rtrace", tracers.Rtrace()), ("LTTng", tracers.Lttng()), ("ftrace", tracers.Ftrace()),
                          ("perf", tracers.Perf()), ("BPF ring buffer", tracers.Bpf())):
        result[label] = added(tracer, calls)
        say(f"{label}: " + ", ".join(f"{name} {value:.1f}" for name, value in result[label].items()))
    return {"tracers": result}
