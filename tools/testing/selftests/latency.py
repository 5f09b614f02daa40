# SPDX-License-Identifier: GPL-2.0
"""Tasks that are kept waiting for a CPU, and what is measured of them, for tests.

Usage: latency.py hog MILLISECONDS [WAITER]  keeps a thread off CPU 0 for so long, both of real time; prints its
                                    id and that of who did it, and how many nanoseconds it waited: at least, and
                                    at most. WAITER is one whose input and output are the files 8 and 9
       latency.py wait TIMES        is such a one
       latency.py compare EVENTS FREQUENCY  EVENTS is what `babeltrace2 --clock-cycles` prints: each wake-up
                                    between the markers `begin` and `end` was measured, and as the events say
       latency.py timer EVENTS PERIOD MAX OFFS  timers fire each PERIOD nanoseconds, none is later than MAX
                                    microseconds; of EVENTS, by the monotonic clock. OFFS has when interrupts
                                    were off: "BEGIN END CPU"
"""

import bisect
import os
import re
import sys
import time


def wait(go, tell, times):
    """A thread of real time says when it runs, as often as it is woken."""
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
    with open("/proc/self/comm", "w") as file:
        file.write("waiter")
    for _ in range(times):
        os.read(go, 1)
        os.write(tell, b"%d" % time.monotonic_ns())


def asleep(waiter):
    """Until it waits to be woken."""
    stat = ""
    while "(waiter) S " not in stat:
        time.sleep(0.01)
        with open(f"/proc/{waiter}/stat") as file:
            stat = file.read()


def hog(milliseconds, waiter, wake, times):
    """Another one keeps it off the CPU that long.

    Those of the kernel have lower priorities than both, also where they do the work of interrupts (PREEMPT_RT: 1
    and 50).
    """
    os.sched_setaffinity(0, {0})
    with open("/proc/self/comm", "w") as file:
        file.write("hog")
    asleep(waiter)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
    before = time.monotonic_ns()
    os.write(wake, b"x")
    woken = last = time.monotonic_ns()
    while last < woken + milliseconds * 1_000_000:
        last = time.monotonic_ns()
    ran = int(os.read(times, 32))
    # Nobody waits for what it does from now on.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    # It was woken between `before` and `woken`, and ran between `last` and `ran`.
    print(waiter, os.getpid(), last - woken, ran - before, flush=True)


def hog_alone(milliseconds):
    """The same with a waiter of its own."""
    (go, wake), (times, tell) = os.pipe(), os.pipe()
    waiter = os.fork()
    if waiter == 0:
        wait(go, tell, 1)
        os._exit(0)
    hog(milliseconds, waiter, wake, times)
    os.waitpid(waiter, 0)


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


def timer(path, period, longest, offs):
    """See the usage."""
    by_cpu = {}
    for line in open(path):
        at, cpu = map(int, re.match(r"\[(\d+)\].* timer_latency: \{ cpu_id = (\d+) \}", line).groups())
        latency = int(re.search(r"[ {]latency = (\d+)", line)[1])
        by_cpu.setdefault(cpu, []).append((at, latency, line))
    latencies = [latency for events in by_cpu.values() for _, latency, _ in events]
    assert max(latencies) // 1000 == longest, (max(latencies), longest)
    for cpu, events in by_cpu.items():
        # No expiry was due before the one before had come; those that are missed were between.
        for (before, _, _), (at, latency, line) in zip(events, events[1:]):
            assert latency < at - before, (before, line)
        expiries = sum(1 + latency // period for _, latency, _ in events[:-1])
        first, last = (at - latency for at, latency, _ in (events[0], events[-1]))
        print(f"CPU {cpu}: {len(events)} expiries, {(last - first) / period:.2f} periods")
        assert len(events) > 10 and expiries < (last - first) / period + 1, (cpu, expiries, first, last)
    rows = [line.split() for line in open("/proc/kallsyms")]
    symbols = sorted((int(row[0], 16), row[2]) for row in rows if row[1] in "tTwW")
    seen = []
    for begin, end, cpu in (map(int, line.split()) for line in open(offs)):
        assert not [line for at, _, line in by_cpu[cpu] if begin < at < end], "interrupts were on"
        # The one before came before the beginning, so that the next was due a period later at the latest.
        at, latency, line = next(event for event in by_cpu[cpu] if event[0] >= end)
        assert latency >= end - begin - period, (begin, end, line)
        ip = int(re.search(r"[ {]ip = (\w+)", line)[1], 0)
        stack = re.search(r"callstack_kernel = \[ \[0\] = (\w+)", line)[1]
        function = symbols[bisect.bisect_right(symbols, (ip, "~")) - 1][1]
        seen.append((function, 'comm = "sh"' in line, int(stack, 0) == ip))
        print(f"off for {end - begin} ns, {latency} ns late, in {function}")
    # An emulator's timer may itself be late, and interrupt what comes then.
    assert not seen or ("rtrace_irqs_off", True, True) in seen, seen


if __name__ == "__main__":
    if sys.argv[1] == "wait":
        wait(0, 1, int(sys.argv[2]))
    elif sys.argv[1] == "hog" and len(sys.argv) > 3:
        hog(int(sys.argv[2]), int(sys.argv[3]), 8, 9)
    elif sys.argv[1] == "hog":
        hog_alone(int(sys.argv[2]))
    elif sys.argv[1] == "timer":
        timer(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        compare(sys.argv[2], int(sys.argv[3]))
