# SPDX-License-Identifier: GPL-2.0
"""Instructions per event, at the firing site; under icount, on one CPU.

A run that did not record, or did not drop, what it should ends with an error, not with a
figure.
"""

import os
import time

import firing
import tracers
from tracers.base import FOUR_MIB, Memory
from tracers.perf import DEFAULT

COUNT = 30_000
# A buffer that is full at once; and a flight recorder that is full after a quarter of the time.
TINY, ONE_MIB = Memory(4096, 2), Memory(256 << 10, 4)


def records_per_fire(site):
    return 2 if site == "getppid" else 1


def cost(site, count=COUNT):
    return firing.ticks_per_event(firing.fire(site, count))


def with_room(tracer, site):
    """Instructions and bytes of an event in discard mode, and instructions while paused."""
    tracer.start([site], "discard", FOUR_MIB)
    firing.fire(site, 1000)  # what is done once: opening a packet
    instructions = cost(site)
    tracer.pause()
    paused = cost(site)
    outcome = tracer.stop()
    assert not outcome.lost, f"{tracer.name}: {outcome.lost} events of {site} lost"
    size = outcome.size / (COUNT + 1000) / records_per_fire(site)
    assert size >= 4, f"{tracer.name}: {outcome.size} bytes are not all events of {site}"
    return instructions, size, paused


def without_room(tracer, site):
    """Instructions of an event that is dropped: discard mode, and the buffer is full."""
    tracer.start([site], "discard", TINY)
    tracer.hold()
    firing.fire(site, 10_000)  # fills it
    instructions = cost(site)
    tracer.resume()
    time.sleep(0.5)
    firing.fire(site, 10)  # the next packet tells what was lost before it
    outcome = tracer.stop()
    assert outcome.size < 1 << 20, f"{tracer.name}: events of {site} were not dropped"
    assert outcome.lost is None or outcome.lost >= COUNT, f"{tracer.name}: lost {outcome.lost} of {site}"
    return instructions


def overwriting(tracer, site, size):
    """Instructions of an event of `size` bytes in a flight recorder that is full."""
    tracer.start([site], "overwrite", ONE_MIB)
    fill = 6 * ONE_MIB.size
    firing.fire(site, int(fill / size / records_per_fire(site)))
    instructions = cost(site)
    outcome = tracer.stop()
    assert tracer.name != "rtrace" or outcome.lost, "nothing was overwritten"
    return instructions


def measure(tracer, site):
    """All of one tracer and site; what is said of `scripts/bench instructions --help`."""
    result = {}
    result["discard"], size, result["paused"] = with_room(tracer, site)
    result["overwrite"] = overwriting(tracer, site, size)
    result["dropped"] = without_room(tracer, site)
    result["bytes"] = size
    return result


def firing_itself(site):
    """The firing with a probe that only returns, and with no tracer at all."""
    return {"empty-probe": firing.ticks_per_event(firing.fire(site, COUNT, empty=True)), "off": cost(site)}


def of_rtrace(clocks=("tsc", "mono")):
    """(name, figure) of rtrace alone."""
    for site in firing.SITES:
        tracer = tracers.Rtrace()
        for name, value in firing_itself(site).items():
            yield f"{site}/{name}", value
        for clock in clocks:
            tracer = tracers.Rtrace(clock)
            for name, value in measure(tracer, site).items():
                yield f"{site}/{clock}/{name}", value


def variants():
    """(label, tracer): each tracer as good as it can be set up, and as its users usually have it."""
    yield "rtrace", tracers.Rtrace("tsc")
    yield "rtrace, monotonic clock", tracers.Rtrace("mono")
    yield "BPF ring buffer", tracers.Bpf()
    yield "LTTng", tracers.Lttng()
    yield "ftrace", tracers.Ftrace("local")
    if os.uname().machine == "x86_64":
        yield "ftrace, x86-tsc clock", tracers.Ftrace("x86-tsc")
    yield "ftrace, record-cmd", tracers.Ftrace("local", record_cmd=True)
    yield "perf", tracers.Perf()
    yield "perf, fields of perf record", tracers.Perf(DEFAULT)


def of_all(say, quick=None):
    """The part of scripts/bench. It counts: a shorter run would save little."""
    result = {"firing": {site: firing_itself(site) for site in firing.SITES}, "tracers": {}}
    for label, tracer in variants():
        result["tracers"][label] = {}
        for site in firing.SITES:
            result["tracers"][label][site] = measured = measure(tracer, site)
            say(f"{label}: {site}: " + ", ".join(f"{name} {value:.1f}" for name, value in measured.items()))
    return result
