# SPDX-License-Identifier: GPL-2.0
"""Tasks that are kept waiting for a CPU, and what is measured of them, for tests.

Usage: latency.py hog MILLISECONDS [WAITER]  keeps a thread off CPU 0 for so long, both of real time; prints its
                                    id and that of who did it, and how many nanoseconds it waited: at least, and
                                    at most. WAITER is one whose input and output are the files 8 and 9
       latency.py wait TIMES        is such a one
       latency.py spin MILLISECONDS  uses a CPU for so long
       latency.py keep CPU MILLISECONDS  keeps preemption off on a CPU for so long, by rtrace_off.ko, meanwhile a
                                    thread of real time is due there; prints the id of who did it and of that
                                    thread, when that began and ended, when the thread was due, and when it ran
       latency.py compare EVENTS FREQUENCY  EVENTS is what `babeltrace2 --clock-cycles` prints: each wait after a
                                    wake-up or a preemption between the markers `begin` and `end` was measured, and as
                                    the events say; prints the number of waits of each kind in all EVENTS, and the
                                    longest
       latency.py preempt EVENTS FREQUENCY  the same of requests to give up a CPU; among EVENTS are `asked`, `enters`
                                    and `leaves`: sched_set_need_resched_tp, sched_entry_tp, sched_exit_tp
       latency.py maximum FILE      prints what is in a session's file of the longest one, and has it begin anew;
                                    before and after it the time: "BEFORE MICROSECONDS AFTER"
       latency.py timer EVENTS PERIOD MAXIMA OFFS  timers fire each PERIOD nanoseconds; of EVENTS, by the monotonic
                                    clock. MAXIMA has two lines of `maximum`, OFFS when interrupts were off: "BEGIN
                                    END CPU"
"""

import os
import re
import sys
import time

from symbols import Symbols


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
    # Normal priority for the rest: no thread is waiting any more.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    # The thread was woken between `before` and `woken`, and ran between `last` and `ran`.
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


def keep(cpu, milliseconds):
    """Keeps the CPU, as a thread of the usual policy."""
    os.sched_setaffinity(0, {cpu})
    (go, wake), (times, tell) = os.pipe(), os.pipe()
    waiter = os.fork()
    if waiter == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
        with open("/proc/self/comm", "w") as file:
            file.write("waiter")
        os.read(go, 1)
        due = time.monotonic_ns() + milliseconds * 500_000
        time.sleep(milliseconds / 2000)
        os.write(tell, b"%d %d" % (due, time.monotonic_ns()))
        os._exit(0)
    with open("/proc/self/comm", "w") as file:
        file.write("keeper")
    asleep(waiter)
    # The waiter runs at once, and sleeps.
    os.write(wake, b"x")
    with open("/sys/module/rtrace_off/parameters/preempt", "w") as file:
        file.write(f"{milliseconds * 1000}")
    with open("/sys/module/rtrace_off/parameters/last") as file:
        begin, end, kept = map(int, file.read().split())
    assert kept == cpu, (kept, cpu)
    print(os.getpid(), waiter, begin, end, os.read(times, 64).decode())
    os.waitpid(waiter, 0)


class Event:
    """A line of `babeltrace2 --clock-cycles`."""

    def __init__(self, place, line):
        head = re.match(r"\[(\d+)\].* (\w+): \{ cpu_id = (\d+) \}", line)
        self.place, self.line = place, line
        self.at, self.name, self.cpu = int(head[1]), head[2], int(head[3])
        # The next event of the same CPU with a later time: an interrupted event has the same time.
        self.following = None
        # Other events at which the meter may have begun.
        self.instead = []

    def __repr__(self):
        return self.line.strip()

    def __getitem__(self, name):
        return int(re.search(r"[ {]%s = (-?\d+)" % name, self.line)[1])


class Events(list):
    """The events of a trace, with the markers `begin` and `end`."""

    def __init__(self, path):
        with open(path) as file:
            super().__init__(Event(place, line) for place, line in enumerate(file))
        after = {}
        for event in reversed(self):
            following = after.get(event.cpu)
            if following and following.at == event.at:
                following = following.following
            event.following = following
            after[event.cpu] = event
        markers = [event for event in self if event.name == "rtrace_marker"]
        self.begin, self.end = (
            next(event.at for event in markers if f'"{text}"' in event.line) for text in ("begin", "end"))
        # The first event of each CPU. A CPU that is in a tracepoint when the recording begins calls the probes that were
        # attached before: perhaps only the meter's, or only the other one's. Its first event comes from there, or later.
        self.first = {}
        for event in self:
            self.first.setdefault(event.cpu, event)

    @staticmethod
    def between(first, last, event, frequency):
        """How many nanoseconds were measured by `event`, at least and at most."""
        # (If a CPU is idle from then on, only one fact is known: a wait begins before it ends.)
        begins = first.at, first.following.at if first.following else last.at
        ends = last.at, event.at
        return tuple((b - a) * 1e9 / frequency for a, b in zip(reversed(begins), ends))

    def check(self, measured, expected, frequency, agree):
        """Checks that each expected latency between the markers was measured, that it agrees, and that no other was.

        `expected` has a first and a last event for each latency, and more values for `agree`. The measured
        event follows the last one on its CPU. The meter read its clock after the first and after the last.
        """
        found = {event.place: event for event in measured}
        widths = []
        for first, last, *more in expected:
            event = found.pop(last.following.place, None) if last.following else None
            if not (self.begin < first.at and last.at < self.end):
                continue
            if not event and first is self.first[first.cpu]:
                continue
            assert event and agree(event, first, last, *more), (last.following, first, last, *more)
            ranges = [self.between(begin, last, event, frequency) for begin in (first, *first.instead)]
            is_right = any(least - 1 <= event["latency"] <= most + 1 for least, most in ranges)
            assert is_right, (ranges, event, first, last)
            least, most = ranges[0]
            widths.append(most - least)

        def since(event):
            return event.at - event["latency"] * frequency / 1e9

        # Measured waits that have no match: only the edges are unknown, and the state of each CPU at the beginning.
        more = [event for event in found.values() if self.begin < since(event) and event.at < self.end]
        all_seen = max(event.at for event in self.first.values())
        assert all(since(event) < all_seen for event in more) and len(more) <= len(self.first), more
        assert len(widths) > 100, len(widths)
        widths.sort()
        print(f"{len(widths)} measured, half of them within {widths[len(widths) // 2]:.0f} ns")


def compare(path, frequency):
    """See the usage. A wait is what `rtrace report --latency` takes for one.

    A task that is woken while it leaves its CPU waits from `sched_waking` on if it has left, and else from
    `sched_wakeup` on. The meter looks whether it has while the event is recorded on the one CPU, and it leaves while
    that is recorded on the other: where these two overlap, it may have looked before or after.
    """
    asleep, woken, running, expected, measured = {}, {}, {}, [], []
    # The switch with which a task left its CPU, and its wake-up while it was running.
    left, waking = {}, {}
    # The switch with which a task left its CPU, and could have continued to run.
    preempted = {}
    events = Events(path)

    def overlap(one, other):
        return not (one.following and one.following.at < other.at or other.following and other.following.at < one.at)

    for event in events:
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            tid = event["tid"]
            if tid in running.values():
                waking[tid] = event if event.name == "sched_waking" else None
            elif asleep.get(tid, True) and tid not in woken:
                woken[tid] = event
                if waking.get(tid) and overlap(waking[tid], left[tid]):
                    event.instead.append(waking[tid])
            elif tid in woken and event.name == "sched_wakeup" and tid in left and overlap(woken[tid], left[tid]):
                woken[tid].instead.append(event)
        elif event.name == "sched_switch":
            prev, tid = event["prev_tid"], event["next_tid"]
            woken.pop(prev, None)
            asleep[prev] = event["prev_state"] not in (0, 0x100)
            left[prev] = event
            preempted.pop(prev, None)
            if not asleep[prev]:
                preempted[prev] = event
            waking.pop(tid, None)
            running[event.cpu] = tid
            for begins in (woken, preempted):
                begin = begins.pop(tid, None)
                if begin and tid != 0:
                    expected.append((begin, event, begins is preempted))
        elif event.name == "wakeup_latency":
            measured.append(event)

    def agrees(event, begin, switch, is_preempted):
        is_cause = not is_preempted or (event["waker_tid"], event["waker_cpu"]) == (begin["next_tid"], begin.cpu)
        return event["tid"] == switch["next_tid"] and event["preempted"] == is_preempted and is_cause

    events.check(measured, expected, frequency, agrees)
    for what, kind in (("wake-ups", False), ("preemptions", True)):
        waits = [last.at - first.at for first, last, is_preempted in expected if is_preempted == kind]
        print(f"{len(waits)} {what}, the longest {max(waits, default=0) * 10**9 // frequency} ns")


# Flags of a thread, as in `tif` (TIF_NEED_RESCHED, _LAZY); the context need_reschedule has them from bit 0 on.
AT_ONCE, LAZY = (1, 2) if os.uname().machine == "aarch64" else (4, 5)


def preempt(path, frequency):
    """See the usage. Each event has the context need_reschedule: the flags of the thread that runs there.

    A thread is asked to give up its CPU by a flag that is not set. It calls the scheduler, which clears the flags;
    either there is a switch then, or the thread runs on.
    """
    events = Events(path)
    expected, measured = [], []
    # Per CPU and flag: the request, the requester, and whether it may have been met; and the running thread.
    asked, running = {}, {}

    def is_set(event, flag):
        return event["need_reschedule"] >> (flag - AT_ONCE) & 1

    for event in events:
        cpu = event.cpu
        here = asked.setdefault(cpu, {})
        if event.name == "asked" and event["whom"] != 0:
            flag, requests = event["flag"], asked.setdefault(event["where"], {})
            assert flag in (AT_ONCE, LAZY), event
            # The flags of another CPU's thread are unknown.
            if flag == LAZY or event["where"] == cpu and not is_set(event, LAZY):
                requests.clear()
            requests[flag] = event, running.get(cpu), False
        elif event.name == "enters":
            for flag, (request, asker, is_doubted) in list(here.items()):
                if is_doubted and not is_set(event, flag):
                    del here[flag]
                else:
                    here[flag] = request, asker, False
        elif event.name == "leaves" and event["is_switch"] == 0:
            for flag, (request, asker, _) in here.items():
                # Or another CPU has not set the flag yet; or an interrupt has, after the event had read the flags and
                # before it read the clock.
                if not is_set(event, flag):
                    here[flag] = request, asker, True
        elif event.name == "sched_switch":
            running[cpu] = event["next_tid"]
            request, asker, _ = here.get(AT_ONCE) or here.get(LAZY) or (None, None, None)
            lazy = here[LAZY][0] if LAZY in here else None
            if request and request["whom"] == event["prev_tid"]:
                expected.append((request, event, asker, lazy))
            here.clear()
        elif event.name == "preempt_latency":
            measured.append(event)
    counts = dict.fromkeys(("at once", "lazy", "first lazy", "by another CPU"), 0)

    def agrees(event, request, switch, asker, lazy):
        is_lazy = request["flag"] == LAZY
        least = most = 0
        if lazy and not is_lazy:
            least = (request.at - lazy.following.at) * 1e9 / frequency - 1
            most = (request.following.at - lazy.at) * 1e9 / frequency + 1
        elif not is_lazy and is_set(request, LAZY):
            # The lazy request is older than the trace: the flag shows that there was one.
            least = (request.at - events.begin) * 1e9 / frequency
            most = float("inf")
        counts["lazy" if is_lazy else "first lazy" if lazy else "at once"] += 1
        counts["by another CPU"] += request.cpu != event.cpu
        return (
            (event["tid"], event["next_tid"]) == (switch["prev_tid"], switch["next_tid"])
            and event["preempted"] == (switch["prev_state"] in (0, 0x100))
            and (event["lazy"], event["asker_cpu"]) == (is_lazy, request.cpu)
            and asker in (None, event["asker_tid"])
            and least <= event["lazy_before"] <= most
        )
    events.check(measured, expected, frequency, agrees)
    print(", ".join(f"{number} {what}" for what, number in counts.items()))


def maximum(path):
    """See the usage."""
    before = time.monotonic_ns()
    with open(path) as file:
        microseconds = int(file.read())
    with open(path, "w") as file:
        file.write("0")
    print(before, microseconds, time.monotonic_ns())


def check_maximum(by_cpu, maxima):
    """The second one is of what was measured from the first one on: after the event before on that CPU, and before
    its own event."""
    (least_from, _, surely_from), (surely_to, longest, most_to) = (map(int, line.split()) for line in open(maxima))
    least = most = 0
    for events in by_cpu.values():
        before = 0
        for at, latency, _ in events:
            if before >= surely_from and at <= surely_to:
                least = max(least, latency)
            if at >= least_from and before <= most_to:
                most = max(most, latency)
            before = at
    assert 0 < least // 1000 <= longest <= most // 1000, (least, longest, most)


def timer(path, period, maxima, offs):
    """See the usage."""
    by_cpu = {}
    for line in open(path):
        at, cpu = map(int, re.match(r"\[(\d+)\].* timer_latency: \{ cpu_id = (\d+) \}", line).groups())
        latency = int(re.search(r"[ {]latency = (\d+)", line)[1])
        by_cpu.setdefault(cpu, []).append((at, latency, line))
    check_maximum(by_cpu, maxima)
    for cpu, events in by_cpu.items():
        # No expiry was due before the previous one had come; missed expiries were in between.
        for (before, _, _), (at, latency, line) in zip(events, events[1:]):
            assert latency < at - before, (before, line)
        expiries = sum(1 + latency // period for _, latency, _ in events[:-1])
        first, last = (at - latency for at, latency, _ in (events[0], events[-1]))
        print(f"CPU {cpu}: {len(events)} expiries, {(last - first) / period:.2f} periods")
        assert len(events) > 10 and expiries < (last - first) / period + 1, (cpu, expiries, first, last)
    symbols, seen = Symbols(), []
    for begin, end, cpu in (map(int, line.split()) for line in open(offs)):
        assert not [line for at, _, line in by_cpu[cpu] if begin < at < end], "interrupts were on"
        # The previous expiry was before the beginning, so the next was due at most a period later.
        at, latency, line = next(event for event in by_cpu[cpu] if event[0] >= end)
        assert latency >= end - begin - period, (begin, end, line)
        ip = int(re.search(r"[ {]ip = (\w+)", line)[1], 0)
        # A late timer that interrupts a program in user mode has no kernel stack.
        stack = re.search(r"callstack_kernel = \[ \[0\] = (\w+)", line)
        assert stack or ip < 1 << 63, line
        function = symbols.name(ip) if stack else "user mode"
        seen.append((function, 'comm = "sh"' in line, bool(stack) and int(stack[1], 0) == ip))
        print(f"off for {end - begin} ns, {latency} ns late, in {function}")
    # An emulator's timer may be late itself, and interrupt the code that runs then.
    assert not seen or ("rtrace_irqs_off", True, True) in seen, seen


if __name__ == "__main__":
    if sys.argv[1] == "wait":
        wait(0, 1, int(sys.argv[2]))
    elif sys.argv[1] == "hog" and len(sys.argv) > 3:
        hog(int(sys.argv[2]), int(sys.argv[3]), 8, 9)
    elif sys.argv[1] == "hog":
        hog_alone(int(sys.argv[2]))
    elif sys.argv[1] == "spin":
        until = time.process_time_ns() + int(sys.argv[2]) * 1_000_000
        while time.process_time_ns() < until:
            pass
    elif sys.argv[1] == "keep":
        keep(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "preempt":
        preempt(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "timer":
        timer(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    elif sys.argv[1] == "maximum":
        maximum(sys.argv[2])
    else:
        compare(sys.argv[2], int(sys.argv[3]))
