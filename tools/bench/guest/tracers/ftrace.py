# SPDX-License-Identifier: GPL-2.0
"""The kernel's own event tracing; to disk with trace-cmd."""

import os
import re
import signal
import subprocess

from .base import FOUR_MIB, GETPPID, SYSCALLS, Outcome, Tracer, read, run, wait_for, write

ROOT = "/sys/kernel/tracing"


def events_of(name):
    if name == SYSCALLS:
        return ["syscalls"]
    if name == GETPPID:
        return ["syscalls/sys_enter_getppid", "syscalls/sys_exit_getppid"]
    system = {"softirq": "irq", "hrtimer": "timer"}.get(name.split("_")[0], name.split("_")[0])
    return [f"{system}/{name}"]


class Ftrace(Tracer):
    name = "ftrace"

    def __init__(self, clock="local", record_cmd=False):
        self.clock, self.record_cmd = clock, record_cmd

    def start(self, events, mode, memory=FOUR_MIB, out=None):
        self.out, self.recorder = out, None
        names = [name for event in events for name in events_of(event)]
        if out:
            command = ["trace-cmd", "record", "-q", "-o", f"{out}/trace.dat", "-C", self.clock,
                       "-b", str(memory.size * memory.count // 1024)]
            for name in names:
                command += ["-e", name.replace("/", ":")]
            self.recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: read(ROOT + "/tracing_on") == "1\n" and self.enabled(names[-1]), "trace-cmd")
            return
        write(ROOT + "/tracing_on", 0)
        write(ROOT + "/trace_clock", self.clock)
        write(ROOT + "/options/overwrite", int(mode == "overwrite"))
        write(ROOT + "/options/record-cmd", int(self.record_cmd))
        # The kernel keeps a page more; a buffer of another size starts empty.
        write(ROOT + "/buffer_size_kb", memory.size * memory.count // 1024)
        with open(ROOT + "/trace", "w"):
            pass
        for name in names:
            write(f"{ROOT}/events/{name}/enable", 1)
        write(ROOT + "/tracing_on", 1)

    def enabled(self, name):
        return read(f"{ROOT}/events/{name}/enable")[0] == "1"

    def pause(self):
        write(ROOT + "/tracing_on", 0)

    def writers(self):
        """trace-cmd has a process for each CPU."""
        return [int(pid) for pid in run("pgrep", "-x", "trace-cmd").split()] if self.recorder else []

    def stop(self):
        if self.recorder:
            self.recorder.send_signal(signal.SIGINT)
            self.recorder.wait()
            self.recorder = None
            size = os.path.getsize(f"{self.out}/trace.dat")
            text = run("trace-cmd", "report", "--stat", f"{self.out}/trace.dat")
            lost = sum(map(int, re.findall(r"^(?:overrun|dropped events): (\d+)", text, re.M)))
            return Outcome(size, lost)
        write(ROOT + "/tracing_on", 0)
        size = lost = 0
        for cpu_dir in os.listdir(ROOT + "/per_cpu"):
            stats = dict(line.split(": ") for line in read(f"{ROOT}/per_cpu/{cpu_dir}/stats").splitlines())
            size += int(stats["bytes"])
            lost += int(stats["overrun"]) + int(stats["dropped events"])
        write(ROOT + "/events/enable", 0)
        return Outcome(size, lost)
