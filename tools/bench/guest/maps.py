# SPDX-License-Identifier: GPL-2.0
"""Instructions per update of a sum by key, at the firing site; under icount, on one CPU.

As in instructions.py: a run that did not count what it should ends with an error, not with a figure.
"""

import re
import subprocess

import firing
import tracers
from instructions import COUNT
from tracers.base import read, run, write
from tracers.ftrace import ROOT as FTRACE

# Updates before the measured ones: they do what is done once, such as claiming a slot.
FIRST = 1000

SOFTIRQ = "irq:irq_softirq_entry"
SWITCH = "sched:sched_switch"
ENTRY, EXIT = "syscalls:syscall_entry_getppid", "syscalls:syscall_exit_getppid"

# Each case: its site, and the line that defines the map of rtrace, after the name.
CASES = {
    "all": ("softirq_entry", SOFTIRQ),
    "integer": ("softirq_entry", f"{SOFTIRQ} by vec"),
    "comm": ("softirq_entry", f"{SOFTIRQ} by comm"),
    "two": ("softirq_entry", f"{SOFTIRQ} by vec,tid"),
    "sum": ("softirq_entry", f"{SOFTIRQ} by tid sum(vec)"),
    "hist": ("softirq_entry", f"{SOFTIRQ} hist(vec)"),
    "next-comm": ("sched_switch", f"{SWITCH} by next_comm"),
    "next-tid": ("sched_switch", f"{SWITCH} by next_tid"),
    "filtered": ("sched_switch", f"{SWITCH} by next_comm if next_tid != 1"),
    "call": ("getppid", f"{ENTRY} by comm"),
    "call-duration": ("getppid", f"{EXIT} hist(duration) from {ENTRY}"),
    "off-cpu": ("sched_switch", f"{SWITCH} by next_comm sum(duration) from {SWITCH} match prev_tid:next_tid"),
    "softirq": ("softirq_entry", f"{SOFTIRQ} by vec sum(duration) from {SOFTIRQ} match cpu"),
    "two-ids": ("sched_switch",
                f"{SWITCH} by next_comm sum(duration) from {SWITCH} match prev_tid,prev_prio:next_tid,next_prio"),
}

# The cases of each other tracer: programs of tools/bench/bpf/maps.bpf.c;
BPF = {"integer": ["on_integer"], "comm": ["on_comm"], "two": ["on_two"], "hist": ["on_hist"], "call": ["on_call"],
       "call-duration": ["on_call_duration_begin", "on_call_duration"], "off-cpu": ["on_off_cpu"]}
# hist triggers of ftrace, each with its event, in the order of their definition;
SOFTIRQ_TRIGGER, SWITCH_TRIGGER = "irq/softirq_entry", "sched/sched_switch"
FTRACE_SINCE = "ts0=common_timestamp.usecs"
FTRACE_TRIGGERS = {
    "integer": [(SOFTIRQ_TRIGGER, "hist:keys=vec")],
    "comm": [(SOFTIRQ_TRIGGER, "hist:keys=common_comm")],
    "two": [(SOFTIRQ_TRIGGER, "hist:keys=vec,common_pid")],
    "sum": [(SOFTIRQ_TRIGGER, "hist:keys=common_pid:vals=vec")],
    "hist": [(SOFTIRQ_TRIGGER, "hist:keys=vec.log2")],
    "next-comm": [(SWITCH_TRIGGER, "hist:keys=next_comm")],
    "next-tid": [(SWITCH_TRIGGER, "hist:keys=next_pid")],
    "call": [("syscalls/sys_enter_getppid", "hist:keys=common_comm")],
    "call-duration": [
        ("synthetic/bench_call", "hist:keys=lat.log2"),
        ("syscalls/sys_enter_getppid", f"hist:keys=common_pid:{FTRACE_SINCE}"),
        ("syscalls/sys_exit_getppid", "hist:keys=common_pid:lat=common_timestamp.usecs-$ts0"
                                      ":onmatch(syscalls.sys_enter_getppid).trace(bench_call,$lat)"),
    ],
    "off-cpu": [
        ("synthetic/bench_off", "hist:keys=comm:vals=lat"),
        (SWITCH_TRIGGER, f"hist:keys=prev_pid:{FTRACE_SINCE}"),
        (SWITCH_TRIGGER, "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0"
                         ":onmatch(sched.sched_switch).trace(bench_off,$lat,next_comm)"),
    ],
}
SYNTHETIC = ["bench_call u64 lat", "bench_off u64 lat; char comm[16]"]
# LTTng counts by the name of the event and by constants only.
LTTNG = {"all": "irq_softirq_entry"}


def figure(site):
    """Instructions of an update."""
    firing.fire(site, FIRST)
    return firing.ticks_per_event(firing.fire(site, COUNT))


def check(name, count, missed=0):
    """Each update is counted. Ends without a begin: the first one of each thread."""
    assert count + missed >= COUNT + FIRST and missed < FIRST, f"{name}: {count} updates, {missed} missed"


def counted(session):
    """Updates of the session's only map, and those that have no entry."""
    lines = read(session + "/maps").splitlines()
    head = next(at for at, line in enumerate(lines) if "count" in line.split())
    column = lines[head].split().index("count")
    count = sum(int(line.split()[column]) for line in lines[head + 1:] if line)
    return count, sum(int(line.split()[1]) for line in lines[1:head])


def of_rtrace():
    """(case, figure) of rtrace."""
    session = tracers.Rtrace().session
    for name, (site, line) in CASES.items():
        write(session + "/set_map", f"{name} {line}")
        value = figure(site)
        check(name, *counted(session))
        open(session + "/set_map", "w").close()
        yield name, value


def of_bpf():
    """The same of programs of BPF."""
    for name, programs in BPF.items():
        peer = subprocess.Popen(["/payload/bin/bpf-maps", "/payload/bench/maps.bpf.o", *programs],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert peer.stdout.readline() == "ready\n", f"{name}: bpf-maps did not start"
        value = figure(CASES[name][0])
        count, _ = peer.communicate("\n")
        check(name, int(count))
        yield name, value


def of_ftrace():
    """The same of ftrace's hist triggers."""
    for event in SYNTHETIC:
        with open(FTRACE + "/synthetic_events", "a") as file:
            file.write(event + "\n")
    for name, triggers in FTRACE_TRIGGERS.items():
        for event, trigger in triggers:
            with open(f"{FTRACE}/events/{event}/trigger", "a") as file:
                file.write(trigger + "\n")
        value = figure(CASES[name][0])
        hits = re.findall(r"^ +Hits: (\d+)$", read(f"{FTRACE}/events/{triggers[0][0]}/hist"), re.M)
        check(name, int(hits[0]))
        for event, trigger in reversed(triggers):
            with open(f"{FTRACE}/events/{event}/trigger", "a") as file:
                file.write(f"!{trigger}\n")
        yield name, value


def of_lttng():
    """The same of LTTng's maps."""
    tracers.Lttng()
    run("lttng", "create", "bench-maps")
    run("lttng", "add-map-channel", "--kernel", "--session=bench-maps", "--max-key-count=64", "counts")
    run("lttng", "start", "bench-maps")
    for name, event in LTTNG.items():
        run("lttng", "add-trigger", f"--name={name}", "--condition=event-rule-matches", "--type=kernel:tracepoint",
            f"--name={event}", "--action=incr-map-value", "--session=bench-maps", "--map-channel=counts", "--key=all")
        value = figure(CASES[name][0])
        shown = run("lttng", "show-maps", "--session=bench-maps")
        assert re.search(rf"\b{COUNT + FIRST}\b", shown), shown
        run("lttng", "remove-trigger", name)
        yield name, value


def of_all(say, quick=None):
    """The part `numbers` of scripts/bench. It counts: a shorter run would save little."""
    figures = {}
    for tracer, of in ("rtrace", of_rtrace), ("BPF, per-CPU hash", of_bpf), ("ftrace, hist", of_ftrace), ("LTTng, map", of_lttng):
        figures[tracer] = {}
        for name, value in of():
            figures[tracer][name] = value
            say(f"{tracer}: {name}: {value:.1f}")
    return {"maps": figures}
