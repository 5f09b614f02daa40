# SPDX-License-Identifier: GPL-2.0
"""Instructions that a tracer of all system calls adds to a call, its entry and its exit; under icount, on one CPU,
in overwrite mode.

The tracers differ in what they record. rtrace and LTTng record the data that arguments point to. perf and the BPF
tracer record the six registers and the result. ftrace also records paths and buffers.
"""

import ctypes
import functools
import os
import socket
import struct
import time

import tracers
from tracers.base import FOUR_MIB, SYSCALLS

# Numbers of the calls. arm64 has only the newer forms of some.
NUMBERS = {
    "x86_64": {"getppid": 110, "write": 1, "recvfrom": 45, "sendto": 44, "poll": 7, "select": 23, "writev": 20, "access": 21},
    "aarch64": {"getppid": 173, "write": 64, "recvfrom": 207, "sendto": 206, "ppoll": 73, "pselect6": 72, "writev": 66,
                "faccessat": 48},
}[os.uname().machine]
AT_FDCWD = -100

# Calls are measured in batches. Interrupts add to some of these, so the smallest figure is the result.
BATCH, BATCHES = 100, 20

libc = ctypes.CDLL(None)


def number(value):
    return ctypes.c_long(value)


def data(layout, *values):
    return ctypes.create_string_buffer(struct.pack(layout, *values))


def cases():
    """The calls that this processor has: a name, and a function that makes the call."""
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
    arguments = {
        "getppid": (),
        "write": (null, buffer, number(8)),
        "recvfrom": (fd, buffer, number(8), number(socket.MSG_DONTWAIT), None, None),
        "sendto": (no_fd, buffer, number(8), number(0), address, number(16)),
        "poll": (one, number(1), number(0)),
        "ppoll": (one, number(1), now, None, number(8)),
        "select": (number(1000), members, None, None, now),
        "pselect6": (number(1000), members, None, None, now, None),
        "writev": (null, parts, number(2)),
        "access": (path, number(0)),
        "faccessat": (number(AT_FDCWD), path, number(0)),
    }
    for name, nr in NUMBERS.items():
        yield name, functools.partial(libc.syscall, nr, *arguments[name])


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
