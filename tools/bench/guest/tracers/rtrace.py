# SPDX-License-Identifier: GPL-2.0
"""rtrace."""

import fcntl
import os
import struct
import subprocess

from .base import FOUR_MIB, Outcome, Tracer, read, wait_for, write
from .ctf import content_of

ROOT = "/sys/kernel/debug/rtrace"
CHANNEL = ROOT + "/sessions/default/channels/channel0"
# rust/abi/ioctl.rs
GET_PACKET, PUT_PACKET = 0x8020F701, 0x0000F702
LOST = ("overwritten", "full", "wrapped", "too_large", "nested", "no_buffer")


def event(name):
    match name.split("_")[0]:
        case "syscalls":
            return "syscalls:*"
        case "getppid":
            return "syscalls:*_getppid"
        case "sched":
            return f"sched:{name}"
        case "irq":
            return f"irq:{name}"
        case "softirq":
            return f"irq:irq_{name}"
        case "timer":
            return f"timer:{name}"
        case "hrtimer":
            return f"timer:timer_{name}"
    raise ValueError(name)


class Rtrace(Tracer):
    name = "rtrace"

    def __init__(self, clock="tsc", parameters=(), direct=False):
        if not os.path.exists(ROOT):
            subprocess.run(["insmod", "/payload/modules/rtrace.ko", *parameters], check=True)
        self.clock = clock
        self.writing = ["--direct"] * direct
        self.daemon = None

    def start(self, events, mode, memory=FOUR_MIB, out=None):
        write(ROOT + "/clock", self.clock)
        write(CHANNEL + "/mode", mode)
        write(CHANNEL + "/subbuf_size", memory.size)
        write(CHANNEL + "/subbuf_count", memory.count)
        with open(ROOT + "/set_event", "w") as file:
            file.write(" ".join(map(event, events)))
        self.out = out
        write(ROOT + "/enable", 1)
        if out:
            log = open("/tmp/rtraced.log", "w")
            self.daemon = subprocess.Popen(["rtraced", "--foreground", *self.writing, "--output", out], stderr=log)
            wait_for(lambda: " to " in read("/tmp/rtraced.log"), "rtraced")

    def pause(self):
        write(ROOT + "/enable", 0)

    def writers(self):
        return [self.daemon.pid] if self.daemon else []

    def stop(self):
        write(ROOT + "/enable", 0)
        if self.daemon:
            assert self.daemon.wait() == 0, read("/tmp/rtraced.log")
            self.daemon = None
        lines = [line.split() for line in read(CHANNEL + "/stats").splitlines()]
        total = dict(zip(lines[0], lines[-1]))
        lost = sum(int(total[column]) for column in LOST)
        return Outcome(self.size(), lost)

    def size(self):
        """Bytes of the records, from the packets that are in the buffers."""
        if self.out:
            return content_of(self.out, "channel0_")
        size = 0
        for name in sorted(os.listdir(CHANNEL)):
            if not name.startswith("cpu"):
                continue
            try:
                fd = os.open(f"{CHANNEL}/{name}", os.O_RDONLY)
            except OSError:
                continue  # that CPU never was online
            try:
                while True:
                    packet = struct.unpack("=QQQQ", fcntl.ioctl(fd, GET_PACKET, bytes(32)))
                    size += packet[2]
                    fcntl.ioctl(fd, PUT_PACKET)
            except OSError:
                pass  # the last packet was read
            os.close(fd)
        return size
