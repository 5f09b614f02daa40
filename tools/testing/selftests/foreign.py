# SPDX-License-Identifier: GPL-2.0
"""Compares what rtrace reads of another tracer's file with what that tracer's own program prints of it.

Usage: foreign.py trace-cmd|perf|lttng CSV TEXT

CSV is the output of `rtrace export csv`, TEXT that of `trace-cmd report -t`, of `perf script --ns -F
comm,pid,tid,cpu,time,event,trace` or of `babeltrace2 --clock-cycles --no-delta`. Each event must be in both, at the same
time on the same CPU, with the same thread and name. The fields of switches and the results and numbers of system calls
must be the same, too. Exit status 1 if an event is missing or differs.
"""

import collections
import csv
import re
import sys

LINES = {
    "trace-cmd": re.compile(r"(?:\S+: )?\s*.+?-(?P<tid>\d+) +\[(?P<cpu>\d+)\] \S+ +(?P<s>\d+)\.(?P<ns>\d{9}): "
                            r"(?P<name>\S+?): *(?P<rest>.*)"),
    "perf": re.compile(r"\s*.+?\s+-?\d+/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<s>\d+)\.(?P<ns>\d{9}): +"
                       r"(?:\d+ +)?(?:\w+:)?(?P<name>[\w-]+): *(?P<rest>.*)"),
    "lttng": re.compile(r"\[(?P<s>\d+)(?P<ns>\d{9})\] \S+ (?P<name>\S+): \{ cpu_id = (?P<cpu>\d+) \}, "
                        r"\{ .*?\btid = (?P<tid>\d+).*?\}, (?P<rest>.*)"),
}
SWITCH = re.compile(r"(.*):(\d+) \[(\d+)\] \S+ ==> (.*):(\d+) \[(\d+)\]")
CALL = re.compile(r"NR (-?\d+)(?: = (-?\d+))?")
PREFIXES = {"softirq_": "irq_", "hrtimer_": "timer_", "itimer_": "timer_"}
NAMES = {"hrtimer_setup": "timer_hrtimer_init", "kernel_stack": "rtrace_stack", "cpu-clock": "profile_cpu_clock"}
# Of LTTng.
LTTNG = {"x86_irq_vectors_": "", "net_if_": "netif_", "power_cpu_": "cpu_"}
ASSIGNED = re.compile(r'\b(\w+) = (?:"((?:[^"\\]|\\.)*)"|(-?\w+))')


def ours(name):
    """rtrace's name of an event."""
    if name in NAMES:
        return NAMES[name]
    prefix = next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")
    return PREFIXES.get(prefix, "") + name


def theirs(kind, text):
    """The events in the other program's output: time, CPU, thread, name, and the fields that are compared."""
    for line in text:
        found = LINES[kind].match(line)
        if not found:
            continue
        time, name = int(found["s"]) * 10**9 + int(found["ns"]), found["name"]
        fields = ()
        if kind == "lttng":
            prefix = next((prefix for prefix in LTTNG if name.startswith(prefix)), "")
            name = LTTNG.get(prefix, "") + name.removeprefix(prefix)
            value = {field: text or number for field, text, number in ASSIGNED.findall(found["rest"])}
            yield time, int(found["cpu"]), int(found["tid"]), name, compared(name, value)
            continue
        name = ours(name)
        if name == "sched_switch":
            fields = SWITCH.match(found["rest"]).groups()
        elif name in ("sys_enter", "sys_exit"):
            fields = tuple(filter(None, CALL.match(found["rest"]).groups()))[name == "sys_exit":]
        yield time, int(found["cpu"]), int(found["tid"]), name, fields


def compared(name, value):
    """The fields of an event of LTTng that are compared."""
    if name == "sched_switch":
        return tuple(value[side + field] for side in ("prev_", "next_") for field in ("comm", "tid", "prio"))
    return (value["ret"].lower(),) if name.startswith("syscall_exit_") else ()


def read(kind, rows):
    """The events in rtrace's output, in the same form."""
    numbers = {}
    for line in open("/payload/selftests/calls.txt"):
        if line[0].isdigit():
            number, call = line.split()
            numbers[call] = number
    for row in rows:
        name = row["event"]
        if name.startswith("["):
            continue
        seconds, nanoseconds = row["time"].split(".")
        fields = ()
        value = dict(re.findall(r"(\w+)=(.*?)(?= \w+=| \{|$)", row["fields"]))
        if kind == "lttng" or name == "sched_switch":
            fields = compared(name, value)
        elif found := re.match(r"syscall_(entry|exit)_(\w+)", name):
            name = {"entry": "sys_enter", "exit": "sys_exit"}[found[1]]
            if name == "sys_enter":
                fields = (numbers.get(found[2]) or re.search(r"\bid=(-?\d+)", row["fields"])[1],)
            else:
                fields = (re.search(r"\bret=(-?\d+)", row["fields"])[1],)
        yield int(seconds) * 10**9 + int(nanoseconds), int(row["cpu"]), int(row["tid"]), name, fields


def main():
    kind, table, text = sys.argv[1:]
    other = collections.Counter(theirs(kind, open(text, errors="replace")))
    own = collections.Counter(read(kind, csv.DictReader(open(table, errors="replace"))))
    for title, counts in (("missing here", other - own), ("only here", own - other)):
        for event in sorted(counts.elements())[:10]:
            print(f"{title}: {event}")
    names = collections.Counter(event[3] for event in other.elements())
    print(f"{sum(other.values())} events of {len(names)} kinds agree" if own == other else "they differ")
    sys.exit(own != other or not other)


main()
