#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests which measurements of a wake-up latency.py accepts, and which not. (scripts/test runs it.)"""

import contextlib
import io
import tempfile
import unittest

from latency import compare

RUNS, SLEEPS = 0, 1


class Trace:
    """Events as babeltrace2 prints them; a moment is a nanosecond."""

    def __init__(self):
        self.events = []
        self.add(1000, 0, "rtrace_marker", 'text = "begin"')
        self.add(1001, 1, "sched_waking", "tid = 9")
        # The minimum number of wake-ups, each correct: a thread is woken on CPU 0, runs there and sleeps again.
        for at in range(2000, 122000, 1000):
            self.add(at, 0, "sched_waking", "tid = 10")
            self.add(at + 10, 0, "sched_wakeup", "tid = 10")
            self.switch(at + 100, 0, 0, RUNS, 10)
            self.measured(at + 110, 0, 10, 101)
            self.switch(at + 200, 0, 10, SLEEPS, 0)
        # Thread 50 runs on CPU 1.
        self.add(130000, 1, "sched_waking", "tid = 50")
        self.add(130010, 1, "sched_wakeup", "tid = 50")
        self.switch(130020, 1, 0, RUNS, 50)
        self.measured(130030, 1, 50, 20)

    def add(self, at, cpu, name, fields):
        self.events.append((at, f"[{at:020}] guest {name}: {{ cpu_id = {cpu} }}, {{ {fields} }}\n"))

    def switch(self, at, cpu, prev, state, tid):
        self.add(at, cpu, "sched_switch", f"prev_tid = {prev}, prev_state = {state}, next_tid = {tid}")

    def measured(self, at, cpu, tid, latency, preempted=0, cause=0):
        fields = f"tid = {tid}, latency = {latency}, waker_tid = {cause}, waker_cpu = {cpu}, preempted = {preempted}"
        self.add(at, cpu, "wakeup_latency", fields)

    def compare(self):
        self.add(140000, 0, "rtrace_marker", 'text = "end"')
        self.add(140001, 1, "sched_waking", "tid = 9")
        with tempfile.NamedTemporaryFile("w") as file, contextlib.redirect_stdout(io.StringIO()):
            file.writelines(line for _, line in sorted(self.events))
            file.flush()
            compare(file.name, 1_000_000_000)


class WokenWhileItLeaves(unittest.TestCase):
    """Thread 50 leaves CPU 1 at 131010 or so, is woken on CPU 0, ready at 131500 and runs at 131510."""

    def woken_before(self, following, latency):
        """It is woken at 131000; the next event of that CPU comes at `following`."""
        trace = Trace()
        trace.add(131000, 0, "sched_waking", "tid = 50")
        trace.add(following, 0, "sched_waking", "tid = 9")
        trace.switch(131010, 1, 50, SLEEPS, 0)
        trace.add(131500, 1, "sched_wakeup", "tid = 50")
        trace.switch(131510, 1, 0, RUNS, 50)
        trace.measured(131520, 1, 50, latency)
        trace.compare()

    def woken_after(self, following, latency):
        """It is woken at 131020; the next event of the CPU that it leaves comes at `following`."""
        trace = Trace()
        trace.switch(131010, 1, 50, SLEEPS, 0)
        trace.add(following, 1, "sched_waking", "tid = 9")
        trace.add(131020, 0, "sched_waking", "tid = 50")
        trace.add(131030, 0, "sched_waking", "tid = 9")
        trace.add(131500, 0, "sched_wakeup", "tid = 50")
        trace.add(131505, 0, "sched_waking", "tid = 9")
        trace.switch(131510, 1, 0, RUNS, 50)
        trace.measured(131520, 1, 50, latency)
        trace.compare()

    def test_as_the_events_say(self):
        self.woken_before(131005, 10)
        self.woken_before(131400, 10)
        self.woken_after(131015, 485)
        self.woken_after(131400, 485)

    def test_in_the_other_order_where_they_overlap(self):
        self.woken_before(131400, 460)
        self.woken_after(131400, 8)

    def test_in_the_other_order_where_they_are_apart(self):
        with self.assertRaises(AssertionError):
            self.woken_before(131005, 460)
        with self.assertRaises(AssertionError):
            self.woken_after(131015, 8)

    def test_neither_the_one_nor_the_other(self):
        for latency in (530, 60, -10):
            with self.assertRaises(AssertionError):
                self.woken_before(131400, latency)
            with self.assertRaises(AssertionError):
                self.woken_after(131400, latency)


class Preempted(unittest.TestCase):
    """Thread 50 loses CPU 1 to thread 60 at 131000, is woken meanwhile, and runs again at 132000."""

    def preempted(self, *measured):
        trace = Trace()
        trace.switch(131000, 1, 50, RUNS, 60)
        trace.add(131005, 1, "sched_waking", "tid = 9")
        trace.add(131500, 0, "sched_waking", "tid = 50")
        trace.switch(132000, 1, 60, SLEEPS, 50)
        if measured:
            trace.measured(132010, 1, *measured)
        trace.compare()

    def test_as_the_events_say(self):
        self.preempted(50, 1003, 1, 60)

    def test_other_measurements(self):
        for measured in ((), (50, 1003, 0, 60), (50, 1003, 1, 61), (50, 500, 1, 60), (51, 1003, 1, 60)):
            with self.assertRaises(AssertionError):
                self.preempted(*measured)


if __name__ == "__main__":
    unittest.main()
