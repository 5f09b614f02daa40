# SPDX-License-Identifier: GPL-2.0
"""Instructions that the kernel's call stack adds to an event; under icount, on one CPU.

As in instructions.py: a run that did not record what it should ends with an error.
"""

import firing
import tracers
from choices import LONG
from instructions import COUNT, cost
from tracers.base import ALL, Choice

# The event.
SITE = "sched_switch"
# The sites that fire it, and from about how many functions.
DEPTHS = {"sched_switch": 10, "sched_switch_deeper": 20}


def measure(site, choice):
    """Instructions and bytes of an event."""
    tracer = tracers.Rtrace()
    tracer.start([SITE], "discard", LONG, choice=choice)
    firing.fire(site, 1000)  # what is done once: opening a packet, learning the rules
    instructions = cost(site)
    outcome = tracer.stop()
    assert not outcome.lost, f"{outcome.lost} events of {site} lost"
    return instructions, outcome.size / (COUNT + 1000)


def of_rtrace():
    """(name, figure) of rtrace alone."""
    for site, depth in DEPTHS.items():
        with_stack, size = measure(site, Choice(contexts=("callstack-kernel",)))
        without, least = measure(site, ALL)
        # Packets add some bytes.
        addresses = (size - least - 4) / 8
        assert abs(addresses - depth) < 2, f"{addresses} addresses of {site} instead of {depth}"
        yield f"{SITE}/stack-{depth}", with_stack - without
