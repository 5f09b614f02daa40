# SPDX-License-Identifier: GPL-2.0
"""perf: rings of perf_event_open(2) of our own; to disk with perf record."""

import ctypes
import mmap
import os
import re
import select
import signal
import struct
import subprocess

from .base import ALL, FOUR_MIB, GETPPID, SYSCALLS, Outcome, Tracer, read, run
from .ftrace import FIELDS, ROOT

SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
TYPE_TRACEPOINT = 2
IP, TID, TIME, CALLCHAIN, ID, CPU, PERIOD, RAW = 1, 2, 4, 32, 64, 128, 256, 1024
DISABLED, WATERMARK, USER_CALLCHAIN, KERNEL_CALLCHAIN, WRITE_BACKWARD = 1 << 0, 1 << 14, 1 << 21, 1 << 22, 1 << 27

# By rtrace's names.
CONTEXTS = {"tid": TID, "callstack-kernel": CALLCHAIN, "callstack-user": CALLCHAIN}
# The registers and the bytes of the stack that perf record --call-graph dwarf copies.
COPIED = 1 << 12 | 1 << 13
REGISTERS, STACK = {"x86_64": 0xFF0FFF, "aarch64": (1 << 33) - 1}[os.uname().machine], 8192
IOC_ENABLE, IOC_DISABLE, IOC_SET_OUTPUT, IOC_SET_FILTER = 0x2400, 0x2401, 0x2405, 0x40082406
# Offset in the ring's first page.
HEAD = 1024

# perf record gets its start command, and answers, through these.
CONTROL = ("/tmp/perf-control", "/tmp/perf-answer")

# Contents of samples: the minimum, and those of perf record.
LEAN = TIME | RAW
DEFAULT = IP | TID | TIME | ID | CPU | PERIOD | RAW

libc = ctypes.CDLL(None, use_errno=True)


def events_of(name):
    """SYSTEM:EVENT names. All system calls: the two events that perf trace uses."""
    if name == SYSCALLS:
        return ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]
    if name == GETPPID:
        return ["syscalls:sys_enter_getppid", "syscalls:sys_exit_getppid"]
    if ":" in name:
        return [name]
    system = {"softirq": "irq", "hrtimer": "timer"}.get(name.split("_")[0], name.split("_")[0])
    return [f"{system}:{name}"]


def event_open(name, cpu, fields, flags, watermark, task=None):
    number = int(read(f"{ROOT}/events/{name.replace(':', '/')}/id"))
    size = 128
    attr = struct.pack("=IIQQQQQIIQQQQI", TYPE_TRACEPOINT, size, number, 1, fields, 0, flags, watermark, 0, 0, 0, 0,
                       REGISTERS if fields & COPIED else 0, STACK if fields & COPIED else 0)
    fd = libc.syscall(SYS_PERF_EVENT_OPEN, attr.ljust(size, b"\0"), task or -1, cpu, -1, 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"perf_event_open {name}")
    return fd


def ioctl(fd, request, argument=0):
    if libc.ioctl(fd, ctypes.c_ulong(request), ctypes.c_ulong(argument)) < 0:
        raise OSError(ctypes.get_errno(), "perf ioctl")


class Perf(Tracer):
    name = "perf"

    def __init__(self, fields=LEAN, nowhere=False, dwarf=False):
        """`nowhere`: what perf record reads it writes to /dev/null. `dwarf`: callstack-user is a copy of the stack."""
        self.fields, self.nowhere = fields, nowhere
        self.contexts = CONTEXTS | {"callstack-user": COPIED} if dwarf else CONTEXTS

    def can(self, choice):
        return all(context in self.contexts for context in choice.contexts)

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        names = [name for event in events for name in events_of(event)]
        size = memory.size * memory.count
        self.out, self.recorder, self.fds, self.rings = out, None, [], []
        if out:
            self.record(names, size)
            return
        callchain = USER_CALLCHAIN if "callstack-user" in choice.contexts else KERNEL_CALLCHAIN
        flags, protection = DISABLED | WATERMARK | callchain, mmap.PROT_READ | mmap.PROT_WRITE
        if mode == "overwrite":
            # A ring with a read-only mapping is overwritten.
            flags, protection = flags | WRITE_BACKWARD, mmap.PROT_READ
        for cpu in range(os.cpu_count()):
            leader = None
            for name in names:
                fields = self.fields | sum(self.contexts[context] for context in choice.contexts)
                fd = event_open(name, cpu, fields, flags, size, choice.task)
                if choice.filter:
                    field, value = choice.filter
                    text = ctypes.create_string_buffer(f"{FIELDS.get(field, field)} == {value}".encode())
                    ioctl(fd, IOC_SET_FILTER, ctypes.addressof(text))
                self.fds.append(fd)
                if leader is None:
                    leader = fd
                    self.rings.append(mmap.mmap(fd, size + mmap.PAGESIZE, mmap.MAP_SHARED, protection))
                else:
                    ioctl(fd, IOC_SET_OUTPUT, leader)
        for fd in self.fds:
            ioctl(fd, IOC_ENABLE)

    def record(self, names, size, *options):
        """perf record, from when it has said that it records."""
        file = "/dev/null" if self.nowhere else f"{self.out}/perf.data"
        for fifo in CONTROL:
            if not os.path.exists(fifo):
                os.mkfifo(fifo)
        # Opened for both ways, so that neither side waits for the other's open.
        control, answer = (os.open(fifo, os.O_RDWR) for fifo in CONTROL)
        command = ["perf", "record", "-q", "-a", "-c", "1", "-R", "--no-buildid", "--no-buildid-cache",
                   "--delay=-1", f"--control=fifo:{','.join(CONTROL)}",
                   "-m", f"{size >> 20}M", "-o", file, *options]
        for name in names:
            command += ["-e", name]
        self.recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                         stderr=open("/tmp/perf.log", "w"))
        os.write(control, b"enable\n")
        if not select.select([answer], [], [], 60)[0]:
            raise RuntimeError(f"perf record does not begin: {read('/tmp/perf.log')}")
        os.close(control)
        os.close(answer)

    def pause(self):
        for fd in self.fds:
            ioctl(fd, IOC_DISABLE)

    def writers(self):
        return [self.recorder.pid] if self.recorder else []

    def stop(self):
        if self.recorder:
            self.recorder.send_signal(signal.SIGINT)
            self.recorder.wait()
            self.recorder = None
            if self.nowhere:
                return Outcome(0, None)
            said = run("perf", "report", "--stdio", "--sort", "comm", "-i", f"{self.out}/perf.data")
            # One line per event.
            lost = re.findall(r"Total Lost Samples: (\d+)", said)
            if not lost:
                raise RuntimeError(f"perf report does not say what was lost: {said[-300:]}")
            return Outcome(os.path.getsize(f"{self.out}/perf.data"), sum(map(int, lost)))
        self.pause()
        # Backward rings count down from 0.
        size = sum(abs(struct.unpack_from("=q", ring, HEAD)[0]) for ring in self.rings)
        for ring in self.rings:
            ring.close()
        for fd in self.fds:
            os.close(fd)
        return Outcome(size, None)
