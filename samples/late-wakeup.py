#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""late-wakeup.py: `player` has something to do every 10 ms, and is late at times. Why? See the tutorial.

It runs for a second, as root."""

import os
import time

PERIOD, TIMES, LATE = 0.010, 100, 0.020


def name(comm):
    with open("/proc/self/comm", "w") as file:
        file.write(comm)


def player():
    name("player")
    due, lateness = time.monotonic(), []
    for _ in range(TIMES):
        due += PERIOD
        time.sleep(max(0, due - time.monotonic()))
        lateness.append(time.monotonic() - due)
        due = max(due, time.monotonic() - PERIOD)
    late = sum(by > LATE for by in lateness)
    print(f"player ({os.getpid()}): {late} of {TIMES} times late, at most by {max(lateness) * 1000:.0f} ms")


def indexer():
    """Computes for 40 ms, five times; no task of normal priority can run on its CPU meanwhile."""
    name("indexer")
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    for _ in range(5):
        time.sleep(0.150)
        until = time.process_time() + 0.040
        while time.process_time() < until:
            pass


os.sched_setaffinity(0, {0})
child = os.fork()
if child == 0:
    indexer()
    os._exit(0)
player()
os.waitpid(child, 0)
