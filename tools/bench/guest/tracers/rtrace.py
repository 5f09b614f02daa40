# SPDX-License-Identifier: GPL-2.0
"""rtrace."""

import fcntl
import os
import struct
import subprocess

from .base import ALL, FOUR_MIB, LOCAL, Outcome, Tracer, read, wait_for, write
from .ctf import content_of

ROOT = "/sys/kernel/debug/rtrace"
# rust/abi/ioctl.rs
GET_PACKET, PUT_PACKET = 0x8020F701, 0x0000F702
RECEIVER = f"{LOCAL}:5340"
# The events of rtrace_bench_events.ko, by the tracepoints at which it registers them (stand_ins.h).
GENERATED = {
    "generated_softirq_entry": "cpu_frequency_limits",
    "generated_irq_handler_entry": "pstate_sample",
    "generated_sched_switch": "dev_pm_qos_remove_request",
}
LOST = ("overwritten", "full", "wrapped", "too_large", "nested", "no_buffer", "busy")


def event(name):
    if ":" in name:
        return name
    match name.split("_")[0]:
        case "generated":
            return f"generated:{GENERATED[name]}"
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


def rtraced(name, begun, *options):
    """Starts it, until its log in /tmp/NAME.log says that it has begun."""
    log = f"/tmp/{name}.log"
    daemon = subprocess.Popen(["rtraced", "--foreground", *options], stderr=open(log, "w"))
    wait_for(lambda: begun in read(log), name)
    return daemon


class Rtrace(Tracer):
    name = "rtrace"

    def __init__(self, clock="tsc", parameters=(), direct=False, network=False, session="default"):
        if not os.path.exists(ROOT):
            subprocess.run(["insmod", "/payload/modules/rtrace.ko", *parameters], check=True)
        self.session = f"{ROOT}/sessions/{session}"
        self.channel = self.session + "/channels/channel0"
        if not os.path.exists(self.session):
            write(ROOT + "/create_session", session)
        self.clock = clock
        self.writing = ["--direct"] * direct
        self.network = network
        self.daemon = self.receiver = None

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        write(self.session + "/clock", self.clock)
        write(self.channel + "/mode", mode)
        write(self.channel + "/subbuf_size", memory.size)
        write(self.channel + "/subbuf_count", memory.count)
        names = list(map(event, events))
        # Written from the start of the file: replaces the previous choice.
        for file, text in ((self.channel + "/set_event", " ".join(names)),
                           (self.channel + "/contexts", " ".join(choice.contexts)),
                           (self.session + "/set_event_pid", str(choice.task or "")),
                           (self.channel + "/set_filter", "")):
            open(file, "w").write(text)
        if choice.filter:
            for name in names:
                write(self.channel + "/set_filter", f"{name} {choice.filter[0]} == {choice.filter[1]}")
        self.out = out
        write(self.session + "/enable", 1)
        if out and self.network:
            self.receiver = rtraced("receiver", "listening at", "--listen", RECEIVER, "--output", out)
            self.daemon = rtraced("rtraced", " to ", "--connect", RECEIVER)
        elif out:
            self.daemon = rtraced("rtraced", " to ", *self.writing, "--output", out)

    def pause(self):
        write(self.session + "/enable", 0)

    def writers(self):
        return [self.daemon.pid] if self.daemon else []

    def receivers(self):
        return [self.receiver.pid] if self.receiver else []

    def stop(self):
        write(self.session + "/enable", 0)
        if self.daemon:
            assert self.daemon.wait() == 0, read("/tmp/rtraced.log")
            self.daemon = None
        if self.receiver:
            self.receiver.terminate()
            self.receiver.wait()
            self.receiver = None
        lines = [line.split() for line in read(self.channel + "/stats").splitlines()]
        total = dict(zip(lines[0], lines[-1]))
        lost = sum(int(total[column]) for column in LOST)
        return Outcome(self.size(), lost)

    def size(self):
        """Bytes of the records, from the packets that are in the buffers."""
        if self.out:
            return content_of(self.out, "channel0_")
        size = 0
        for name in sorted(os.listdir(self.channel)):
            if not name.startswith("cpu"):
                continue
            try:
                fd = os.open(f"{self.channel}/{name}", os.O_RDONLY)
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
