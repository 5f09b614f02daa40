# SPDX-License-Identifier: GPL-2.0
"""The paper's Table 6: what the ring is made of, against what it could be made of; under icount,
on one CPU, so that nobody else's instructions are counted.

Instructions of a reservation and a commit by either means (rtrace_bench.c), alone in a loop
whose own cost is taken off. Instructions are not cycles: on a processor, disabling interrupts
and a LOCK prefix (on arm64: a barrier) take tens of cycles more than the instructions that they are.

And of an event where every few events finish a packet, without and with a barrier at delivery; and
of calls of a function that is traced, beside ftrace's tracers.
"""

import os

import firing
import functions
import tracers
from tracers.base import Memory, run, write

SITE = "sched_switch"
LOOPS = 100_000
MEANS = {
    "local": "local cmpxchg and add (what the ring does)",
    "locked": {"x86_64": "the same with LOCK prefixes",
               "aarch64": "the same, the cmpxchg fully ordered"}[os.uname().machine],
    "irq-off": "plain loads and stores, interrupts disabled",
    "preempt-off": "plain loads and stores, preemption disabled (not safe against interrupts)",
}
# One page: the smallest packets.
PACKETS = Memory(4096, 512)


def of_means(say):
    empty = firing.primitive("empty", LOOPS)
    for name, title in MEANS.items():
        cost = (firing.primitive(name, LOOPS) - empty) / LOOPS
        say(f"{title}: {cost:.1f}")
        yield title, cost


def of_writers(say):
    for barrier in "reader", "writer":
        tracer = tracers.Rtrace()
        write(tracer.channel + "/barrier", barrier)
        tracer.start([SITE], "discard", PACKETS)
        firing.fire(SITE, 1000)
        cost = firing.ticks_per_event(firing.fire(SITE, 20_000))
        tracer.stop()
        run("rmmod", "rtrace")
        say(f"barrier={barrier}: {cost:.1f} per event")
        yield f"barrier={barrier}", cost


def of_stacks(say):
    """The parts of a call stack: instructions of the kernel's unwinder."""
    loops = 1000
    least, module, kernel = ((firing.primitive(f"stack{deeper}", loops)) / loops
                             for deeper in ("", "-module", "-kernel"))
    yield "a stack of few functions (write(2) to a debugfs file)", least
    yield "each further function of a module", (module - least) / 9
    yield "each further function of the kernel", (kernel - module) / 8


def of_functions(say):
    for title, cost in functions.table():
        say(f"{title}: {cost:.1f}")
        yield title, cost


def of_all(say, quick=None):
    return {"tables": {
        "A reservation and a commit": dict(of_means(say)),
        "An event, with a packet of 4 KiB to finish every 67 events": dict(of_writers(say)),
        "A function that is traced": dict(of_functions(say)),
    }}
