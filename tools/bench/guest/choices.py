# SPDX-License-Identifier: GPL-2.0
"""Instructions per event where not every event is wanted, or more than its fields; under icount, on
one CPU, in discard mode.

As in instructions.py: a run that did not record what it should ends with an error.
"""

import os

import firing
import tracers
from instructions import COUNT, cost
from tracers.base import ALL, FOUR_MIB, Choice, Memory

# For each site's event: a field, a value that it always has, and one that it never has.
FIELDS = {
    "softirq_entry": ("vec", 1, 9),
    "irq_handler_entry": ("irq", 27, 9),
    "sched_switch": ("prev_tid", os.getpid(), 1),
}

# One context of each kind of path to its value.
KINDS = "pid prio uid mnt_ns vpid vtid vuid pid_ns cgroup_id need_reschedule preemptible interruptible".split()

# Memory for call stacks.
LONG = Memory(1 << 20, 32)

# The contexts of rtrace, each measured alone.
CONTEXTS = tuple("""
    pid ppid vpid vtid comm prio nice uid euid suid gid egid sgid vuid veuid vsuid vgid vegid vsgid
    cpu need_reschedule preemptible interruptible cgroup_id cgroup_ns ipc_ns mnt_ns net_ns pid_ns time_ns
    user_ns uts_ns callstack-kernel callstack-user
""".split())


def choices(site):
    """(name, choice, whether it wants what fires)."""
    field, value, other = FIELDS[site]
    yield "all", ALL, True
    yield "refused", Choice(filter=(field, other)), False
    yield "accepted", Choice(filter=(field, value)), True
    yield "of-another", Choice(task=1), False
    yield "tid", Choice(contexts=("tid",)), True
    yield "tid-comm", Choice(contexts=("tid", "comm")), True


def measure(tracer, site, choice, wanted, beside=None, memory=FOUR_MIB):
    """Instructions of an event. `beside`: another that records the same."""
    if not tracer.can(choice):
        return None
    recording = [tracer, beside] if beside else [tracer]
    for each in recording:
        each.start([site], "discard", memory, choice=choice)
    firing.fire(site, 1000)  # what is done once: opening a packet
    instructions = cost(site)
    for each in recording:
        outcome = each.stop()
        assert not outcome.lost, f"{each.name}: {outcome.lost} events of {site} lost"
        recorded = outcome.size / (COUNT + 1000)
        assert recorded >= 4 if wanted else recorded < 1, f"{each.name}: {choice}: {outcome.size} bytes"
    return instructions


def of(make, site):
    """All of one tracer and site. `make`: it, or with a name another one beside it."""
    tracer = make()
    result = {name: measure(tracer, site, *choice) for name, *choice in choices(site)}
    beside = make("other")
    result["twice"] = beside and measure(tracer, site, ALL, True, beside)
    return result


def of_contexts(site):
    """(context, what it adds to a record that has tid)."""
    def cost_of(*contexts):
        return measure(tracers.Rtrace(), site, Choice(contexts=contexts), True, memory=LONG)

    tid = cost_of("tid")
    for context in CONTEXTS:
        yield context, cost_of("tid", context) - tid


def of_stack(tracer, site):
    """Bytes that the kernel's call stack adds to a record; None if the tracer does not record it."""
    stack = Choice(contexts=("callstack-kernel",))
    if not tracer.can(stack):
        return None
    with_stack, without = (measure(tracer, site, choice, True, memory=LONG) for choice in (stack, ALL))
    return with_stack - without


def rtrace(name="default"):
    return tracers.Rtrace(session=name)


def lttng(name="bench"):
    return tracers.Lttng(session=name)


def ftrace(name=None):
    return tracers.Ftrace(instance=name)


def bpf(name=None):
    return tracers.Bpf()


def perf(name=None):
    return tracers.Perf()


TRACERS = {"rtrace": rtrace, "BPF ring buffer": bpf, "LTTng": lttng, "ftrace": ftrace, "perf": perf}


def of_rtrace():
    """(name, figure) of rtrace alone."""
    for site in FIELDS:
        for name, value in of(rtrace, site).items():
            # (instructions.py has the figures of `all`.)
            if name != "all":
                yield f"{site}/tsc/{name}", value
    for context in KINDS:
        choice = Choice(contexts=("tid", context))
        yield f"softirq_entry/tsc/tid-{context}", measure(rtrace(), "softirq_entry", choice, True)


def of_all(say, quick=None):
    """The part of scripts/bench."""
    result = {"contexts": dict(of_contexts("softirq_entry")), "stacks": {}, "tracers": {}}
    for label, make in TRACERS.items():
        result["stacks"][label] = of_stack(make(), "softirq_entry")
        result["tracers"][label] = {}
        for site in FIELDS:
            result["tracers"][label][site] = measured = of(make, site)
            say(f"{label}: {site}: " + ", ".join(
                f"{name} {'-' if value is None else round(value, 1)}" for name, value in measured.items()))
    return result
