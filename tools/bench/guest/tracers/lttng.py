# SPDX-License-Identifier: GPL-2.0
"""LTTng: lttng-modules, with lttng-tools around."""

import os
import shutil
import signal
import subprocess

from .base import FOUR_MIB, GETPPID, SYSCALLS, Outcome, Tracer, cpu_seconds, run
from .ctf import content_of, discarded_of

SPOOL = "/root/lttng"
CHANNEL = "channel0"


def event(name):
    kind = name.split("_")[0]
    if kind == "softirq":
        return f"irq_{name}"
    if kind == "hrtimer":
        return f"timer_{name}"
    return name


def consumer():
    """The process that writes the kernel's buffers to disk."""
    return [int(pid) for pid in run("pgrep", "-x", "lttng-consumerd").split()]


class Lttng(Tracer):
    name = "LTTng"
    modes = ("discard", "overwrite")

    def __init__(self):
        if not subprocess.run(["pgrep", "-x", "lttng-sessiond"], stdout=subprocess.DEVNULL).returncode:
            return
        release = os.uname().release
        run("mount", "--bind", f"/payload/lttng/lib/modules/{release}", f"/lib/modules/{release}")
        run("lttng-sessiond", "--daemonize")

    def start(self, events, mode, memory=FOUR_MIB, out=None):
        shutil.rmtree(SPOOL, ignore_errors=True)
        self.out = out or SPOOL
        # Without a reader: a session in snapshot mode. (It takes no channel that discards.)
        self.snapshot = mode == "overwrite" and not out
        run("lttng", "create", "bench", "--trace-format=ctf-1.8", f"--output={self.out}",
            *["--snapshot"] * self.snapshot)
        run("lttng", "enable-channel", "--kernel", CHANNEL, f"--{mode}",
            f"--subbuf-size={memory.size}", f"--num-subbuf={memory.count}",
            f"--output={'mmap' if self.snapshot else 'splice'}")
        names = [event(name) for name in events if name not in (SYSCALLS, GETPPID)]
        if names:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", ",".join(names))
        if SYSCALLS in events:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", "--syscall", "--all")
        if GETPPID in events:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", "--syscall", "getppid")
        run("lttng", "start")
        self.consumers = consumer()
        self.cpu = sum(map(cpu_seconds, self.consumers))

    def pause(self):
        self.resume()
        run("lttng", "stop")

    def hold(self):
        for pid in self.consumers:
            os.kill(pid, signal.SIGSTOP)

    def resume(self):
        for pid in self.consumers:
            os.kill(pid, signal.SIGCONT)

    def stop(self):
        self.resume()
        run("lttng", "stop")
        cpu = sum(map(cpu_seconds, self.consumers)) - self.cpu
        if self.snapshot:
            run("lttng", "snapshot", "record")
        run("lttng", "destroy", "bench")
        return Outcome(content_of(self.out, CHANNEL + "_"), discarded_of(self.out, CHANNEL + "_"), cpu)

    @classmethod
    def version(cls):
        return run("lttng", "--version").split()[2]
