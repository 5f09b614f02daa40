# SPDX-License-Identifier: GPL-2.0
"""Changes what a probe looks at, again and again, while its event fires, and counts.

Usage: changes.py EVENT TRACES CHANGES

EVENT is `rename` (an event with a handler of its own) or `call` (a system call's). In each of so many
traces the filter, the triggers and the tasks of the event change so often; each event is wanted before
and after. In the last trace, some filters refuse odd events. Exit status 1 if an event was lost that was
not counted, or was recorded twice.
"""

import ctypes
import mmap
import os
import sys

import ctf
import rtrace

EVENTS = rtrace.R + "/events"
PR_SET_NAME = 15
MOST = 40000  # events of a trace, for which there is room
libc = ctypes.CDLL(None)


class Rename:
    path = "task/task_rename"
    field = "newcomm"
    true = 'newcomm ~ "*d"', "oom_score_adj < 2000", 'newcomm != "even"'
    even = 'newcomm ~ "e*"'
    never = 'newcomm == "never"'

    @staticmethod
    def fire(n):
        libc.prctl(PR_SET_NAME, b"%s%xd" % ((b"even", b"odd")[n & 1], n))

    @staticmethod
    def number(value):
        name = value if isinstance(value, str) else value.decode()
        return int(name.removeprefix("even").removeprefix("odd")[:-1], 16)


class Call:
    path = "syscalls/" + rtrace.NAME
    field = rtrace.FIELD
    true = "policy < 100000000", 'COMM ~ "*"', "policy != 99999999"
    even = "!(policy & 1)"
    never = "policy == 99999999"

    @staticmethod
    def fire(n):
        rtrace.call(n)

    @staticmethod
    def number(value):
        return value


def replace(path, text):
    with open(path, "w") as file:
        file.write(f"{text}\n")


def firing(event, state, cpu, result):
    """Fires while the first byte is 1, until it is 2; writes how often."""
    os.sched_setaffinity(0, {cpu})
    n = 0
    while state[0] != 2:
        if state[0] == 1 and n < MOST:
            event.fire(n)
            n += 1
    os.write(result, b"%d" % n)


def steps(event, pid):
    """Files and texts: each changes what the event's probe looks at, and the last leave nothing to look at."""
    filter, trigger = (f"{EVENTS}/{event.path}/{name}" for name in ("filter", "trigger"))
    first, second, third = event.true
    tasks = rtrace.R + "/set_event_pid"
    return [
        (filter, first), (filter, second), (filter, 0),
        (trigger, f"traceoff if {event.never}"), (filter, third), (trigger, "!traceoff"), (filter, 0),
        (tasks, pid), (filter, first), (tasks, ""), (filter, 0),
    ]


def trace(event, changes, even):
    """Records one trace with so many changes; how many events fired."""
    state = mmap.mmap(-1, mmap.PAGESIZE)
    r, w = os.pipe()
    pid = rtrace.child(firing, event, state, rtrace.online()[-1], w)
    os.sched_setaffinity(0, {rtrace.online()[0]})
    rtrace.start()
    to_do = steps(event, pid)
    if even:
        to_do += [(to_do[0][0], event.even), (to_do[0][0], 0)]
    for at in range(changes):
        path, text = to_do[at % len(to_do)]
        state[0] = 1
        replace(path, text)
        state[0] = 0
    state[0] = 2
    rtrace.join(pid)
    rtrace.stop()
    for path, text in to_do[2], to_do[9]:
        replace(path, text)
    return int(os.read(r, 64))


def main(kind, traces, changes):
    event = {"rename": Rename, "call": Call}[kind]
    wrong = total = 0
    for at in range(traces):
        even = at == traces - 1
        fired = trace(event, changes, even)
        row = rtrace.stats()["total"]
        recorded = row["recorded"]
        lost = sum(row[name] for name in ("full", "wrapped", "too_large", "nested", "no_buffer", "busy"))
        total += fired
        if even:
            os.mkdir(kind)
            for cpu in rtrace.online():
                with open(f"{rtrace.C}/cpu{cpu}", "rb") as stream, open(f"{kind}/channel0_cpu{cpu}", "wb") as file:
                    file.write(stream.read())
            with open(f"{kind}/metadata", "w") as file:
                file.write(rtrace.read(rtrace.S + "/metadata"))
            numbers = [event.number(fields[event.field]) for _, _, _, fields in ctf.events(kind)]
            missing = set(range(0, fired, 2)) - set(numbers)
            is_right = len(missing) == lost == 0 and len(numbers) == len(set(numbers)) == recorded
            print(f"trace {at}: {fired} fired, {recorded} recorded, {len(missing)} even ones are missing")
        else:
            is_right = fired == recorded + lost
            print(f"trace {at}: {fired} fired, {recorded} recorded, {lost} lost")
        wrong += not is_right
    if wrong:
        sys.exit(f"{wrong} of {traces} traces are wrong")
    assert total > traces * 100, "hardly anything fired while something changed"


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
