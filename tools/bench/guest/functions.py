# SPDX-License-Identifier: GPL-2.0
"""Instructions that a call of a function takes more where it is traced; under icount, on one CPU.

As in instructions.py: a run that did not record what it should ends with an error.
"""

import firing
import tracers
from instructions import COUNT
from tracers.base import FOUR_MIB, read, write
from tracers.ftrace import ROOT

# A function of the firing site, which does nothing.
FUNCTION = "rtrace_bench_called"


def cost(count=COUNT):
    firing.primitive("call", 1000)  # what is done once: opening a packet
    return firing.primitive("call", count) / count


def of_rtrace():
    """(name, figure) of rtrace alone."""
    tracer = tracers.Rtrace()
    write(tracer.session + "/set_ftrace_filter", FUNCTION)
    untraced = cost()
    for name, event, records in ("call", "ftrace:function", 1), ("graph", "ftrace:funcgraph_*", 2):
        tracer.start([event], "discard", FOUR_MIB)
        instructions = cost() - untraced
        outcome = tracer.stop()
        assert not outcome.lost, f"{outcome.lost} events lost"
        assert outcome.size >= 16 * records * COUNT, f"{outcome.size} bytes are not all calls"
        yield f"function/tsc/{name}", instructions
    open(tracer.session + "/set_ftrace_filter", "w").close()


def of_ftrace():
    """The same of ftrace's tracers."""
    write(ROOT + "/set_ftrace_filter", FUNCTION)
    write(ROOT + "/buffer_size_kb", FOUR_MIB.size * FOUR_MIB.count // 1024)
    untraced = cost()
    for name, tracer in ("call", "function"), ("graph", "function_graph"):
        write(ROOT + "/current_tracer", tracer)
        instructions = cost() - untraced
        recorded = int(read(ROOT + "/per_cpu/cpu0/stats").split()[1])
        write(ROOT + "/current_tracer", "nop")
        assert recorded >= COUNT, f"{tracer}: {recorded} records"
        yield name, instructions
    open(ROOT + "/set_ftrace_filter", "w").close()


def table():
    """(what, instructions), of both."""
    what = {"call": "each call", "graph": "each call and its return, with the time between"}
    for name, value in of_rtrace():
        yield f"rtrace: {what[name.rpartition('/')[2]]}", value
    for name, value in of_ftrace():
        yield f"ftrace: {what[name]}", value
