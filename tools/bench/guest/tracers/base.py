# SPDX-License-Identifier: GPL-2.0
"""The operations of every tracer in this benchmark."""

import os
import signal
import subprocess
import time
from collections import namedtuple

# The events of the workloads, by their tracepoints' names: all tracers have these.
SCHED = [f"sched_{name}" for name in (
    "switch waking wakeup wakeup_new migrate_task "
    "process_fork process_exec process_exit process_free process_wait").split()]
IRQ = ["softirq_entry", "softirq_exit", "softirq_raise", "irq_handler_entry", "irq_handler_exit"]
TIMER = [f"{kind}_{name}" for kind in ("timer", "hrtimer")
         for name in ("start", "expire_entry", "expire_exit", "cancel")]
SYSCALLS = "syscalls"  # all of them
GETPPID = "getppid"    # entry and exit of this one
EVERYTHING = SCHED + IRQ + TIMER + [SYSCALLS]

# Memory of each CPU's buffer: `count` pieces of `size` bytes, if a tracer has pieces.
Memory = namedtuple("Memory", "size count")
FOUR_MIB = Memory(1 << 20, 4)

# The selection of firings, and additions to their fields. `filter`: a pair of a field, by rtrace's
# name, and its only accepted value; `contexts`: rtrace's names; `task`: the only
# thread whose events are recorded.
Choice = namedtuple("Choice", "filter contexts task", defaults=(None, (), None))
ALL = Choice()

# Address of each tracer's receiver.
LOCAL = "127.0.0.1"

# The results of a trace. `size`: bytes of records in the buffers, or on disk; `lost`: records,
# None if the tracer does not report them.
Outcome = namedtuple("Outcome", "size lost")


class Tracer:
    """A tracer, while it is set up for some events."""

    name = ""
    # MiB that FOUR_MIB accepts while its reader is stopped, less the previous contents: a part of
    # a piece.
    room = 2.6

    def start(self, events, mode, memory=FOUR_MIB, out=None, choice=ALL):
        """Records from now on. `out`: a directory, to which it is written all the time."""
        raise NotImplementedError

    def can(self, choice):
        """Whether it has such a thing."""
        return True

    def pause(self):
        """Recording stops; everything stays set up, as its users would have it."""
        raise NotImplementedError

    def writers(self):
        """The processes that write to disk."""
        return []

    def receivers(self):
        """The processes that get it over the network."""
        return []

    def hold(self):
        """Stops the reader of the buffers until resume()."""
        for pid in self.writers():
            os.kill(pid, signal.SIGSTOP)

    def resume(self):
        for pid in self.writers():
            os.kill(pid, signal.SIGCONT)

    def stop(self):
        """Recording ends; what was to be written to disk is there. An Outcome."""
        raise NotImplementedError


def run(*command, **options):
    """Runs a command, and returns its standard output. A failure ends the benchmark."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stdout}")
    return done.stdout


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, str(text).encode())
    finally:
        os.close(fd)


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def listens(port):
    """Whether somebody does."""
    return f":{port:04X} 00000000:0000 0A" in read("/proc/net/tcp") + read("/proc/net/tcp6")


def files_size(directory, suffix=""):
    return sum(os.path.getsize(os.path.join(at, name))
               for at, _, names in os.walk(directory) for name in names if name.endswith(suffix))
