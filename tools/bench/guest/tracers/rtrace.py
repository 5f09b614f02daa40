# SPDX-License-Identifier: GPL-2.0
"""rtrace."""

import os
import subprocess

from .base import GETPPID, SYSCALLS, FOUR_MIB, Outcome, Tracer, cpu_seconds, read, wait_for, write

ROOT = "/sys/kernel/debug/rtrace"
CHANNEL = ROOT + "/sessions/default/channels/channel0"
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
    modes = ("discard", "overwrite")

    def __init__(self, clock="tsc", parameters=()):
        if not os.path.exists(ROOT):
            subprocess.run(["insmod", "/payload/modules/rtrace.ko", *parameters], check=True)
        self.clock = clock
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
            self.daemon = subprocess.Popen(["rtraced", "--foreground", "--output", out], stderr=log)
            wait_for(lambda: " to " in read("/tmp/rtraced.log"), "rtraced")

    def pause(self):
        write(ROOT + "/enable", 0)

    def stop(self):
        write(ROOT + "/enable", 0)
        cpu = None
        if self.daemon:
            _, status, usage = os.wait4(self.daemon.pid, 0)
            self.daemon.returncode = os.waitstatus_to_exitcode(status)
            assert self.daemon.returncode == 0, read("/tmp/rtraced.log")
            cpu = usage.ru_utime + usage.ru_stime
            self.daemon = None
        lines = [line.split() for line in read(CHANNEL + "/stats").splitlines()]
        total = dict(zip(lines[0], lines[-1]))
        lost = sum(int(total[column]) for column in LOST)
        return Outcome(self.size(), lost, cpu)

    def size(self):
        """Bytes of the records, from the packets that are in the buffers."""
        import fcntl
        import struct
        if self.out:
            from .ctf import content_of
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
                    packet = struct.unpack("=QQQQ", fcntl.ioctl(fd, 0x8020F701, bytes(32)))
                    size += packet[2]
                    fcntl.ioctl(fd, 0x0000F702)
            except OSError:
                pass  # the last packet was read
            os.close(fd)
        return size

    @classmethod
    def version(cls):
        return read(ROOT + "/version").strip()
