# SPDX-License-Identifier: GPL-2.0
"""The kernel's own event tracing; to disk with trace-cmd."""

import os
import re
import signal
import subprocess

from .base import (ALL, FOUR_MIB, GETPPID, LOCAL, SYSCALLS, Outcome, Tracer, files_size, listens, read, run,
                   wait_for, write)

ROOT = "/sys/kernel/tracing"
# The port of trace-cmd listen.
PORT = 5350

# Fields with another name here.
FIELDS = {"prev_tid": "prev_pid"}


def events_of(name):
    if name == SYSCALLS:
        return ["syscalls"]
    if name == GETPPID:
        return ["syscalls/sys_enter_getppid", "syscalls/sys_exit_getppid"]
    if ":" in name:
        return [name.replace(":", "/")]
    system = {"softirq": "irq", "hrtimer": "timer"}.get(name.split("_")[0], name.split("_")[0])
    return [f"{system}/{name}"]


def programs(command):
    """The processes of trace-cmd COMMAND."""
    return [int(line.split()[0]) for line in run("pgrep", "-a", "-x", "trace-cmd").splitlines()
            if line.split()[2:3] == [command]]  # (one that has ended has no command line)


class Ftrace(Tracer):
    name = "ftrace"
    # The reader is woken when half of the buffer is full (buffer_percent), and leaves smaller contents.
    room = 1.75

    def __init__(self, clock="local", record_cmd=False, network=False, instance=None):
        self.clock, self.record_cmd, self.root = clock, record_cmd, ROOT
        self.network, self.listener = network, None
        if instance:
            self.root = f"{ROOT}/instances/{instance}"
            os.makedirs(self.root, exist_ok=True)

    def can(self, choice):
        """A record has the id of its task in any case."""
        return choice.contexts in ((), ("callstack-kernel",))

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        self.out, self.recorder, root = out, None, self.root
        names = [name for event in events for name in events_of(event)]
        if out:
            to = ["-o", f"{out}/trace.dat"]
            if self.network:
                self.listener = subprocess.Popen(["trace-cmd", "listen", "-p", str(PORT), "-d", out],
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                wait_for(lambda: listens(PORT), "trace-cmd listen")
                # TCP instead of the default UDP, which may lose records without counting them. Uncompressed, so
                # that a MiB is comparable.
                to = ["-N", f"{LOCAL}:{PORT}", "-t", "--compression", "none"]
            command = ["trace-cmd", "record", "-q", *to, "-C", self.clock,
                       "-b", str(memory.size * memory.count // 1024)]
            for name in names:
                command += ["-e", name.replace("/", ":")]
            self.recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: read(ROOT + "/tracing_on") == "1\n" and self.enabled(names[-1]), "trace-cmd")
            # The description of the events, which comes first, is larger than many a trace.
            self.before = files_size(out)
            return
        write(root + "/tracing_on", 0)
        write(root + "/trace_clock", self.clock)
        write(root + "/options/overwrite", int(mode == "overwrite"))
        write(root + "/options/stacktrace", int("callstack-kernel" in choice.contexts))
        write(ROOT + "/options/record-cmd", int(self.record_cmd))  # (there is one for all instances)
        # The kernel has one page more; a buffer that is resized starts empty.
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
        return programs("record") if self.recorder else []

    def receivers(self):
        return programs("listen") if self.listener else []

    def stats(self):
        """The counters of each CPU."""
        for cpu in os.listdir(self.root + "/per_cpu"):
            yield dict(line.split(": ") for line in read(f"{self.root}/per_cpu/{cpu}/stats").splitlines())

    def lost(self):
        return sum(int(stats["overrun"]) + int(stats["dropped events"]) for stats in self.stats())

    def stop(self):
        if self.recorder:
            lost = self.lost()
            self.recorder.send_signal(signal.SIGINT)
            self.recorder.wait()
            self.recorder = None
            if self.listener:
                # A process for each connection writes the file when the connection is closed.
                wait_for(lambda: self.receivers() == [self.listener.pid], "the file of trace-cmd listen")
                self.listener.terminate()
                self.listener.wait()
                self.listener = None
                # The written file has no counters.
                return Outcome(files_size(self.out) - self.before, lost)
            file = f"{self.out}/trace.dat"
            text = run("trace-cmd", "report", "--stat", file)
            lost = sum(map(int, re.findall(r"^(?:overrun|dropped events): (\d+)", text, re.M)))
            return Outcome(os.path.getsize(file), lost)
        write(self.root + "/tracing_on", 0)
        outcome = Outcome(sum(int(stats["bytes"]) for stats in self.stats()), self.lost())
        write(self.root + "/events/enable", 0)
        for name in self.filtered:
            write(f"{self.root}/events/{name}/filter", 0)
        return outcome
