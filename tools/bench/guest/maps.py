# SPDX-License-Identifier: GPL-2.0
"""Instructions per update of a sum by key, at the firing site; under icount, on one CPU.

As in instructions.py: a run that did not count what it should ends with an error, not with a figure.
"""

import json
import os
import re
import signal
import subprocess

import firing
import tracers
from instructions import COUNT
from tracers.base import read, run, wait_for, write
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

# Cases that scripts/bench instructions leaves out.
MORE = {
    "calls": ("getppid", "syscalls:syscall_entry_* by event"),
    "event": ("softirq_entry", f"{SOFTIRQ} by event"),
    "stack": ("sched_switch", f"{SWITCH} by kstack"),
    "off-cpu-stack": ("sched_switch",
                      f"{SWITCH} by kstack sum(duration) from {SWITCH} match prev_tid:next_tid"),
}

# The cases of each other tracer: programs of tools/bench/bpf/maps.bpf.c, and their tables;
BPF = {"integer": ["on_integer", "by_number"], "comm": ["on_comm", "by_comm"], "two": ["on_two", "by_two"],
       "hist": ["on_hist", "by_number"], "call": ["on_call", "by_comm"], "calls": ["on_calls", "by_number"],
       "call-duration": ["on_call_duration_begin", "on_call_duration", "begins", "by_number"],
       "off-cpu": ["on_off_cpu", "begins", "by_comm"], "stack": ["on_stack", "stacks", "by_number"],
       "off-cpu-stack": ["on_off_cpu_stack", "begins_at", "stacks", "by_number"]}
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
    "calls": [("raw_syscalls/sys_enter", "hist:keys=id")],
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
    "stack": [(SWITCH_TRIGGER, "hist:keys=common_stacktrace")],
    "off-cpu-stack": [
        ("synthetic/bench_stack", "hist:keys=stack.stacktrace:vals=lat"),
        (SWITCH_TRIGGER, f"hist:keys=prev_pid:{FTRACE_SINCE},at=common_stacktrace"),
        (SWITCH_TRIGGER, "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:from=$at"
                         ":onmatch(sched.sched_switch).trace(bench_stack,$lat,$from)"),
    ],
}
SYNTHETIC = ["bench_call u64 lat", "bench_off u64 lat; char comm[16]", "bench_stack u64 lat; unsigned long[] stack"]
# programs of bpftrace, whose map @ has the numbers;
BPFTRACE_CALL = "tracepoint:syscalls:sys_"
BPFTRACE = {
    "all": "tracepoint:irq:softirq_entry { @ = count(); }",
    "integer": "tracepoint:irq:softirq_entry { @[args.vec] = count(); }",
    "comm": "tracepoint:irq:softirq_entry { @[comm] = count(); }",
    "two": "tracepoint:irq:softirq_entry { @[args.vec, tid] = count(); }",
    "hist": "tracepoint:irq:softirq_entry { @ = hist(args.vec); }",
    "next-comm": "tracepoint:sched:sched_switch { @[args.next_comm] = count(); }",
    "next-tid": "tracepoint:sched:sched_switch { @[args.next_pid] = count(); }",
    "filtered": "tracepoint:sched:sched_switch /args.next_pid != 1/ { @[args.next_comm] = count(); }",
    "call": BPFTRACE_CALL + "enter_getppid { @[comm] = count(); }",
    "calls": "tracepoint:raw_syscalls:sys_enter { @[args.id] = count(); }",
    "call-duration": BPFTRACE_CALL + "enter_getppid { @since[tid] = nsecs; } " + BPFTRACE_CALL +
                     "exit_getppid /@since[tid]/ { @ = hist(nsecs - @since[tid]); delete(@since, tid); }",
    "off-cpu": "tracepoint:sched:sched_switch { @since[args.prev_pid] = nsecs; if (@since[args.next_pid]) "
               "{ @[args.next_comm] = stats(nsecs - @since[args.next_pid]); delete(@since, args.next_pid); } }",
    "stack": "tracepoint:sched:sched_switch { @[kstack] = count(); }",
    "off-cpu-stack": "tracepoint:sched:sched_switch { @since[args.prev_pid] = nsecs; @at[args.prev_pid] = kstack; "
                     "if (@since[args.next_pid]) { @[@at[args.next_pid]] = stats(nsecs - @since[args.next_pid]); "
                     "delete(@since, args.next_pid); delete(@at, args.next_pid); } }",
}
# and the counts of LTTng, which have only the name of the event and constants as keys.
LTTNG_SOFTIRQ = "--type=kernel:tracepoint", "--name=irq_softirq_entry"
LTTNG = {"all": (LTTNG_SOFTIRQ, "all"), "event": (LTTNG_SOFTIRQ, "{event_name}"),
         "calls": (("--type=kernel:syscall:entry",), "{event_name}")}


def site_of(case):
    return (CASES | MORE).get(case, ("sched_switch",))[0]


class Rtrace:
    """Each tracer has `cases`, `begin(case, size)` and `end()`, which returns the number of updates, and those without an
    entry. `size` is the number of keys for which there is room."""

    name, cases = "rtrace", [*CASES, *MORE]

    def __init__(self):
        self.session = tracers.Rtrace().session

    def begin(self, case, size=2048):
        line, _, condition = (CASES | MORE)[case][1].partition(" if ")
        write(self.session + "/set_map", f"{case} {line} size {size}" + (f" if {condition}" if condition else ""))

    def end(self):
        lines = read(self.session + "/maps").splitlines()
        open(self.session + "/set_map", "w").close()
        head = next(at for at, line in enumerate(lines) if "count" in line.split())
        column = lines[head].split().index("count")
        count = sum(int(line.split()[column]) for line in lines[head + 1:] if line)
        return count, sum(int(line.split()[1]) for line in lines[1:head])


class Bpf:
    """Programs of tools/bench/bpf."""

    name, cases = "BPF, per-CPU hash", list(BPF)

    def begin(self, case, size=16384):
        self.peer = subprocess.Popen(["/payload/bin/bpf-maps", "/payload/bench/maps.bpf.o", str(size), *BPF[case]],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.peer.stdout.readline() == "ready\n", f"{case}: bpf-maps did not start"

    def end(self):
        count, _ = self.peer.communicate("\n")
        return int(count), 0


class Bpftrace:
    """Programs that bpftrace compiles."""

    name, cases, said = "bpftrace", list(BPFTRACE), "/tmp/bpftrace.out"

    def begin(self, case, size=4096):
        with open(self.said, "w") as out:
            # The probe of an interval is attached last.
            program = BPFTRACE[case] + ' interval:ms:100 { printf("ready\\n"); }'
            self.peer = subprocess.Popen(["bpftrace", "-B", "line", "-f", "json", "-e", program], stdout=out, stderr=out,
                                         env=os.environ | {"BPFTRACE_MAX_MAP_KEYS": str(size)})
        # Its warnings repeat the program.
        wait_for(lambda: re.search("^{.*ready", read(self.said), re.M), f"{case}: bpftrace", 300)

    def end(self):
        """The updates of the map @, from the JSON that bpftrace prints at its end."""
        def total(value):
            if isinstance(value, list):
                return sum(bucket["count"] for bucket in value)
            if isinstance(value, dict):
                return value["count"] if "average" in value else sum(map(total, value.values()))
            return value

        self.peer.send_signal(signal.SIGINT)
        status, said = self.peer.wait(), read(self.said)
        assert status == 0, said
        results = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return sum(total(result["data"]["@"]) for result in results if "@" in result.get("data", ())), 0


class Ftrace:
    """Triggers of ftrace."""

    name, cases = "ftrace, hist", list(FTRACE_TRIGGERS)

    def __init__(self):
        for event in SYNTHETIC:
            self.append("synthetic_events", event)

    @staticmethod
    def append(path, line):
        fd = os.open(f"{FTRACE}/{path}", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)

    def begin(self, case, size=2048):
        self.triggers = [(f"events/{event}", f"{trigger}:size={size}") for event, trigger in FTRACE_TRIGGERS[case]]
        for event, trigger in self.triggers:
            self.append(f"{event}/trigger", trigger)

    def end(self):
        shown = read(f"{FTRACE}/{self.triggers[0][0]}/hist")
        for event, trigger in reversed(self.triggers):
            self.append(f"{event}/trigger", "!" + trigger)
        return int(re.findall(r"^ +Hits: (\d+)$", shown, re.M)[0]), 0


class Lttng:
    """Map channels of LTTng."""

    name, cases, session = "LTTng, map", list(LTTNG), "bench-maps"

    def __init__(self):
        tracers.Lttng()

    def begin(self, case, size=4096):
        # A session without a trace: it has only the map.
        run("lttng", "create", self.session, "--no-output")
        run("lttng", "add-map-channel", "--type=kernel", f"--session={self.session}", f"--max-key-count={size}", "counts")
        run("lttng", "start", self.session)
        rule, key = LTTNG[case]
        run("lttng", "add-trigger", "--name=counted", "--condition=event-rule-matches", *rule, "--action=incr-map-value",
            f"--session={self.session}", "--channel=counts", "--type=kernel", f"--key={key}")

    def end(self):
        shown = run("lttng", "show-maps", f"--session={self.session}")
        run("lttng", "remove-trigger", "counted")
        run("lttng", "destroy", self.session)
        # A table: the last number of each row is the count.
        rows = [re.findall(r"\d[\d,]*", line) for line in shown.splitlines()]
        return sum(int(numbers[-1].replace(",", "")) for numbers in rows if numbers), 0


TRACERS = Rtrace, Bpf, Bpftrace, Ftrace, Lttng


def figures(tracer, cases):
    """(case, instructions of an update)"""
    for case in cases:
        tracer.begin(case)
        firing.fire(site_of(case), FIRST)
        value = firing.ticks_per_event(firing.fire(site_of(case), COUNT))
        count, missed = tracer.end()
        # Ends without a begin: the first one of each thread.
        expected = COUNT + FIRST
        assert expected <= count + missed < expected + 10 * FIRST and missed < FIRST, f"{tracer.name}, {case}: {count}, {missed}"
        yield case, value


def of_rtrace():
    """(case, figure) of rtrace alone."""
    return figures(Rtrace(), CASES)


def of_all(say, quick=None):
    """The part `numbers` of scripts/bench. It counts: a shorter run would save little."""
    found = {}
    for make in TRACERS:
        found[make.name] = {}
        for case, value in figures(make(), make.cases):
            found[make.name][case] = value
            say(f"{make.name}: {case}: {value:.1f}")
    return {"maps": found}
