# SPDX-License-Identifier: GPL-2.0
"""The kernel's own event tracing; to disk with trace-cmd."""

import os
import re
import signal
import subprocess

from .base import ALL, FOUR_MIB, GETPPID, SYSCALLS, Outcome, Tracer, read, run, wait_for, write

ROOT = "/sys/kernel/tracing"


# Fields that are called otherwise here.
FIELDS = {"prev_tid": "prev_pid"}


def events_of(name):
    if name == SYSCALLS:
        return ["syscalls"]
    if name == GETPPID:
        return ["syscalls/sys_enter_getppid", "syscalls/sys_exit_getppid"]
    system = {"softirq": "irq", "hrtimer": "timer"}.get(name.split("_")[0], name.split("_")[0])
    return [f"{system}/{name}"]


class Ftrace(Tracer):
    name = "ftrace"

    def __init__(self, clock="local", record_cmd=False, instance=None):
        self.clock, self.record_cmd, self.root = clock, record_cmd, ROOT
        if instance:
            self.root = f"{ROOT}/instances/{instance}"
            os.makedirs(self.root, exist_ok=True)

    def can(self, choice):
        """A record has the id of its task in any case."""
        return not choice.contexts

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        self.out, self.recorder, root = out, None, self.root
        names = [name for event in events for name in events_of(event)]
        if out:
            command = ["trace-cmd", "record", "-q", "-o", f"{out}/trace.dat", "-C", self.clock,
                       "-b", str(memory.size * memory.count // 1024)]
            for name in names:
                command += ["-e", name.replace("/", ":")]
            self.recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: read(ROOT + "/tracing_on") == "1\n" and self.enabled(names[-1]), "trace-cmd")
            return
        write(root + "/tracing_on", 0)
        write(root + "/trace_clock", self.clock)
        write(root + "/options/overwrite", int(mode == "overwrite"))
        write(ROOT + "/options/record-cmd", int(self.record_cmd))  # (there is one for all instances)
        # The kernel keeps a page more; a buffer of another size starts empty.
        write(root + "/buffer_size_kb", memory.size * memory.count // 1024)
        with open(root + "/trace", "w"):
            pass
        for name in names:
            if choice.filter:
                field, value = choice.filter
                write(f"{root}/events/{name}/filter", f"{FIELDS.get(field, field)} == {value}")
            write(f"{root}/events/{name}/enable", 1)
        with open(root + "/set_event_pid", "w") as file:
            file.write(str(choice.task or ""))
        self.filtered = names if choice.filter else []
        write(root + "/tracing_on", 1)

    def enabled(self, name):
        return read(f"{self.root}/events/{name}/enable")[0] == "1"

    def pause(self):
        write(self.root + "/tracing_on", 0)

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
        write(self.root + "/tracing_on", 0)
        size = lost = 0
        for cpu_dir in os.listdir(self.root + "/per_cpu"):
            stats = dict(line.split(": ") for line in read(f"{self.root}/per_cpu/{cpu_dir}/stats").splitlines())
            size += int(stats["bytes"])
            lost += int(stats["overrun"]) + int(stats["dropped events"])
        write(self.root + "/events/enable", 0)
        for name in self.filtered:
            write(f"{self.root}/events/{name}/filter", 0)
        return Outcome(size, lost)
