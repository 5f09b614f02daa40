# SPDX-License-Identifier: GPL-2.0
"""The firing site (tools/bench/module): fires tracepoints and says how long that took."""

import subprocess
from collections import namedtuple

FILE = "/sys/kernel/debug/rtrace_bench/fire"
PRIMITIVE = "/sys/kernel/debug/rtrace_bench/primitive"

# The sites at which all tracers are compared. The last one is a system call: two events, entry and exit.
SITES = ("softirq_entry", "irq_handler_entry", "sched_switch", "getppid")

Volley = namedtuple("Volley", "events ticks idle least tsc_khz")


def load():
    subprocess.run(["insmod", "/payload/modules/rtrace_bench.ko"], check=True)


def fire(site, count, cpus=None, empty=False):
    """Fires events, and returns the module's answer; see rtrace_bench.c."""
    request = f"{site} {count}"
    if cpus:
        request += f" {cpus}"
    if empty:
        request += " empty"
    with open(FILE, "r+b", buffering=0) as file:
        file.write(request.encode())
        file.seek(0)
        answer = dict(line.split() for line in file.read().decode().splitlines())
    return Volley(**{name: int(value) for name, value in answer.items()})


def primitive(name, count):
    """Ticks of `count` turns of a loop; see rtrace_bench.c."""
    with open(PRIMITIVE, "r+b", buffering=0) as file:
        file.write(f"{name} {count}".encode())
        file.seek(0)
        return int(file.read())


def ticks_per_event(volley):
    """Cost of one event's probes, in ticks of the TSC; under icount: instructions.

    The figure is what a probe adds: the load of its address from the tracepoint's list, the
    call, the probe, and the test for the list's end. It does not have the code that also runs
    without a probe: the guard (SRCU), and the loop around.
    """
    return (volley.ticks - volley.idle) / volley.events
