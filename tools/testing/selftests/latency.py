# SPDX-License-Identifier: GPL-2.0
"""Tasks that are kept waiting for a CPU, and what is measured of them, for tests.

Usage: latency.py hog MILLISECONDS  keeps a thread off CPU 0 for so long; prints its id and that of who did
                                    it, and how many nanoseconds it waited: at least, and at most
       latency.py compare EVENTS FREQUENCY  EVENTS is what `babeltrace2 --clock-cycles` prints: each wake-up
                                    between the markers `begin` and `end` was measured, and as the events say
"""

import os
import re
import sys
import time


def hog(milliseconds):
    """A thread of the usual kind waits on CPU 0 while one of real time keeps it busy."""
    os.sched_setaffinity(0, {0})
    (go, wake), (times, tell) = os.pipe(), os.pipe()
    waiter = os.fork()
    if waiter == 0:
        with open("/proc/self/comm", "w") as file:
            file.write("waiter")
        os.read(go, 1)
        os.write(tell, b"%d" % time.monotonic_ns())
        os._exit(0)
    with open("/proc/self/comm", "w") as file:
        file.write("hog")
    stat = ""
    while "(waiter) S " not in stat:
        time.sleep(0.01)
        with open(f"/proc/{waiter}/stat") as file:
            stat = file.read()
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    before = time.monotonic_ns()
    os.write(wake, b"x")
    woken = last = time.monotonic_ns()
    while last < woken + milliseconds * 1_000_000:
        last = time.monotonic_ns()
    ran = int(os.read(times, 32))
    os.waitpid(waiter, 0)
    # It was woken between `before` and `woken`, and ran between `last` and `ran`.
    print(waiter, os.getpid(), last - woken, ran - before)


def compare(path, frequency):
    """See the usage. A wake-up is what `rtrace report --latency` takes for one."""
    asleep, woken, running, expected, measured = {}, {}, {}, [], []
    began = ended = None
    lines = []
    for line in open(path):
        head = re.match(r"\[(\d+)\].* (\w+): \{ cpu_id = (\d+) \}", line)
        lines.append((int(head[1]), head[2], int(head[3]), line))
    # The next event of the same CPU.
    following, after = [None] * len(lines), {}
    for place in range(len(lines) - 1, -1, -1):
        cpu = lines[place][2]
        following[place] = after.get(cpu)
        after[cpu] = place
    for place, (at, event, cpu, line) in enumerate(lines):

        def field(name):
            return int(re.search(r"[ {]%s = (-?\d+)" % name, line)[1])

        if event == "rtrace_marker":
            if '"begin"' in line:
                began = at
            elif '"end"' in line:
                ended = at
        elif event in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            tid = field("tid")
            if asleep.get(tid, True) and tid not in woken and tid not in running.values():
                woken[tid] = place
        elif event == "sched_switch":
            prev, state, tid = field("prev_tid"), field("prev_state"), field("next_tid")
            woken.pop(prev, None)
            asleep[prev] = state not in (0, 0x100)
            running[cpu] = tid
            if tid in woken and tid != 0:
                expected.append((place, woken.pop(tid)))
        elif event == "wakeup_latency":
            measured.append((place, field("tid"), field("latency")))
    assert began and ended, (began, ended)
    inside = [(end, begin) for end, begin in expected if began < lines[begin][0] and lines[end][0] < ended]
    # What is measured is the next event of the CPU.
    found = {place: (tid, latency) for place, tid, latency in measured}
    widths = []
    for end, begin in inside:
        place = following[end]
        tid, latency = found.pop(place, (None, None))
        assert tid is not None and f"next_tid = {tid}," in lines[end][3], (lines[end], lines[place])
        # The meter read its clock between these two at the beginning, and between these at the end.
        begins = lines[begin][0], lines[following[begin]][0]
        ends = lines[end][0], lines[place][0]
        least, most = ((b - a) * 1e9 / frequency for a, b in zip(reversed(begins), ends))
        assert least - 1 <= latency <= most + 1, (least, latency, most, lines[begin], lines[place])
        widths.append(most - least)
    # Of what was measured more only the edges are unknown.
    more = [(lines[place][0], tid) for place, (tid, latency) in found.items()
            if began < lines[place][0] - latency * frequency / 1e9 and lines[place][0] < ended]
    assert not more, more
    assert len(inside) > 100, len(inside)
    widths.sort()
    print(f"{len(inside)} wake-ups, half of them within {widths[len(widths) // 2]:.0f} ns")


if __name__ == "__main__":
    if sys.argv[1] == "hog":
        hog(int(sys.argv[2]))
    else:
        compare(sys.argv[2], int(sys.argv[3]))
