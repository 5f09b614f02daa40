# SPDX-License-Identifier: GPL-2.0
"""Instructions of events that rtrace has no probe of its own for, by each way to them; under icount, on one
CPU, in discard mode.

As in instructions.py: a run that did not record what it should ends with an error.
"""

import os
import subprocess

import firing
import functions
import tracers
from instructions import COUNT, cost
from tracers.base import FOUR_MIB, write
from tracers.ftrace import ROOT as FTRACE
from tracers.rtrace import ROOT as RTRACE

# A tracepoint with two numbers, which no other code fires.
SITE = "cpu_frequency"
EVENT = f"power:{SITE}"
# At that tracepoint, and at the begin and return of a function.
AT_TRACEPOINT = f"t:bench/frequency {SITE} state=$arg1:u32 cpu_id=$arg2:u32"
FUNCTION = f"rtrace_bench:{functions.FUNCTION}"
FIRST, SECOND = {"x86_64": ("%di", "%si"), "aarch64": ("%x0", "%x1")}[os.uname().machine]
AT_FUNCTION = [f"p:bench/called {FUNCTION} first={FIRST}:u32 second={SECOND}:u32", f"r:bench/returned {FUNCTION} ret=$retval:u64"]
CALLED, RETURNED = "bench:called", "bench:returned"


def recorded(tracer, event, run):
    """Result of `run` for COUNT events. Runs 1000 others before, so that one-time work does not count."""
    tracer.start([event], "discard", FOUR_MIB)
    run(1000)
    instructions = run(COUNT)
    outcome = tracer.stop()
    assert not outcome.lost, f"{tracer.name}: {outcome.lost} events of {event} lost"
    assert outcome.size >= 4 * COUNT, f"{tracer.name}: {outcome.size} bytes are not all of {event}"
    return instructions


def tracepoint(tracer, event):
    return recorded(tracer, event, lambda count: cost(SITE, count))


def function(tracer, event):
    untraced = functions.cost()
    return recorded(tracer, event, lambda count: functions.cost(count)) - untraced


def of_rtrace():
    """(way, what, figure) of rtrace."""
    tracer = tracers.Rtrace()
    yield "rtrace, by a counter of perf", "tracepoint", tracepoint(tracer, EVENT)
    with open(RTRACE + "/dynamic_events", "w") as file:
        file.write("\n".join([AT_TRACEPOINT, *AT_FUNCTION, ""]))
    yield "rtrace, probes", "tracepoint", tracepoint(tracer, "bench:frequency")
    yield "rtrace, probes", "called", function(tracer, CALLED)
    yield "rtrace, probes", "returned", function(tracer, RETURNED)
    subprocess.run(["insmod", "/payload/modules/rtrace-events.ko"], check=True)
    yield "rtrace", "tracepoint", tracepoint(tracer, EVENT)


def of_others():
    """The same of others."""
    with open(FTRACE + "/kprobe_events", "w") as file:
        file.write("\n".join([*AT_FUNCTION, ""]))
    for tracer in tracers.Ftrace("local"), tracers.Perf():
        for what, of, event in (("tracepoint", tracepoint, EVENT), ("called", function, CALLED),
                                ("returned", function, RETURNED)):
            yield tracer.name, what, of(tracer, event)
    lttng = tracers.Lttng()
    yield lttng.name, "tracepoint", tracepoint(lttng, f"power_{SITE}")
    yield lttng.name, "called", function(lttng, f"--probe={functions.FUNCTION}")


def of_all(say, quick=None):
    """The part of scripts/bench. It counts: a shorter run would save little."""
    ways = {"rtrace": {}}
    for of in of_rtrace, of_others:
        for way, what, value in of():
            ways.setdefault(way, {})[what] = value
            say(f"{way}: {what}: {value:.1f}")
    return {"ways": ways}
