# SPDX-License-Identifier: GPL-2.0
"""LTTng: lttng-modules, with lttng-tools around."""

import os
import shutil
import subprocess

from .base import ALL, FOUR_MIB, GETPPID, LOCAL, SYSCALLS, Outcome, Tracer, listens, run, wait_for
from .ctf import content_of, discarded_of

SPOOL = "/var/bench/lttng"
CHANNEL = "channel0"
# lttng-relayd's port for commands; the next one is for data.
RELAY_PORT = 5342
# Contexts with another name here.
CONTEXTS = {"comm": "procname"}


def event(name):
    kind = name.split("_")[0]
    if kind == "softirq":
        return f"irq_{name}"
    if kind == "hrtimer":
        return f"timer_{name}"
    return name


def consumers():
    """The processes that write the kernel's buffers to disk."""
    return [int(pid) for pid in run("pgrep", "-x", "lttng-consumerd").split()]


class Lttng(Tracer):
    name = "LTTng"

    def __init__(self, read_timer_us=200_000, network=False, session="bench"):
        """How often the reader is woken: LTTng's default, if nothing is said."""
        self.read_timer_us, self.network, self.session = read_timer_us, network, session
        self.relay = None
        if not subprocess.run(["pgrep", "-x", "lttng-sessiond"], stdout=subprocess.DEVNULL).returncode:
            return
        release = os.uname().release
        run("mount", "--bind", f"/payload/lttng/lib/modules/{release}", f"/lib/modules/{release}")
        run("lttng-sessiond", "--daemonize")

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        self.out = out or f"{SPOOL}/{self.session}"
        shutil.rmtree(f"{SPOOL}/{self.session}", ignore_errors=True)
        # Without a reader: a session in snapshot mode. (It accepts no discarding channel.)
        self.snapshot = mode == "overwrite" and not out
        to = f"--output={self.out}"
        if out and self.network:
            self.relay = subprocess.Popen(["lttng-relayd", f"--output={out}"], stdout=subprocess.DEVNULL,
                                          stderr=open("/tmp/relayd.log", "w"))
            wait_for(lambda: listens(RELAY_PORT) and listens(RELAY_PORT + 1), "lttng-relayd")
            to = f"--set-url=net://{LOCAL}"
        run("lttng", "create", self.session, "--trace-format=ctf-1.8", to, *["--snapshot"] * self.snapshot)
        run("lttng", "enable-channel", "--kernel", CHANNEL, f"--{mode}",
            f"--subbuf-size={memory.size}", f"--num-subbuf={memory.count}",
            f"--output={'mmap' if self.snapshot else 'splice'}", f"--read-timer={self.read_timer_us}")
        # `--probe=SYMBOL`: a kprobe with that name.
        probes = [name for name in events if name.startswith("--probe=")]
        names = [event(name) for name in events if name not in (SYSCALLS, GETPPID, *probes)]
        wanted = [f"--filter={choice.filter[0]} == {choice.filter[1]}"] if choice.filter else []
        if names:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", ",".join(names), *wanted)
        for probe in probes:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", probe, probe.partition("=")[2])
        if SYSCALLS in events:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", "--syscall", "--all")
        if GETPPID in events:
            run("lttng", "enable-event", "--kernel", f"--channel={CHANNEL}", "--syscall", "getppid")
        for context in choice.contexts:
            run("lttng", "add-context", "--kernel", f"--channel={CHANNEL}", f"--type={CONTEXTS.get(context, context)}")
        if choice.task:
            run("lttng", "track", "--kernel", f"--pid={choice.task}")
        run("lttng", "start", self.session)

    def pause(self):
        run("lttng", "stop", self.session)

    def writers(self):
        return consumers()

    def receivers(self):
        return [self.relay.pid] if self.relay else []

    def stop(self):
        run("lttng", "stop", self.session)
        if self.snapshot:
            run("lttng", "snapshot", "record", f"--session={self.session}")
        run("lttng", "destroy", self.session)
        if self.relay:
            self.relay.terminate()
            self.relay.wait()
            self.relay = None
        return Outcome(content_of(self.out, CHANNEL + "_"), discarded_of(self.out, CHANNEL + "_"))
