# SPDX-License-Identifier: GPL-2.0
"""A BPF ring buffer, filled by programs at tracepoints (tools/bench/bpf)."""

import os
import subprocess

from .base import ALL, FOUR_MIB, GETPPID, SYSCALLS, Outcome, Tracer

PEER = "/payload/bin/bpf-peer"
OBJECT = "/payload/bench/peer.bpf.o"


class Bpf(Tracer):
    name = "BPF ring buffer"

    def can(self, choice):
        return choice.contexts in ((), ("tid", "comm"))

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        names = [name for name in events if name not in (SYSCALLS, GETPPID)]
        if len(names) < len(events):
            names += ["sys_enter", "sys_exit"]
        # One ring for all CPUs: as large as the per-CPU buffers of other tracers together.
        size = memory.size * memory.count * os.cpu_count()
        self.out = out
        self.peer = subprocess.Popen(
            [PEER, OBJECT, str(size), mode, str(int(SYSCALLS in events)),
             str(choice.filter[1] if choice.filter else -1), str(int(bool(choice.contexts))),
             str(choice.task or 0), f"{out}/records" if out else "-", *names],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.peer.stdout.readline().startswith("ready"), "bpf-peer did not start"

    def ask(self, command):
        self.peer.stdin.write(command + "\n")
        self.peer.stdin.flush()
        return [int(number) for number in self.peer.stdout.readline().split()]

    def pause(self):
        """There is no such thing but to detach."""
        self.ask("detach")

    def writers(self):
        return [self.peer.pid] if self.out else []

    def stop(self):
        size, lost = self.ask("detach")
        self.peer.stdin.close()
        self.peer.wait()
        return Outcome(size, lost)
