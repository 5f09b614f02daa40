#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""lock-contention.py FILE: two processes `worker` answer requests, and some requests take much longer than others. Why?
See the tutorial.

A process `logger` writes to FILE. All share a lock."""

import multiprocessing
import os
import sys
import time

REQUESTS = 50


def name(comm):
    with open("/proc/self/comm", "w") as file:
        file.write(comm)


def worker(lock, state):
    name("worker")
    slowest = 0
    for _ in range(REQUESTS):
        begin = time.monotonic()
        with lock:
            state.value += 1
        slowest = max(slowest, time.monotonic() - begin)
        time.sleep(0.010)
    print(f"worker ({os.getpid()}): {REQUESTS} requests, the slowest took {slowest * 1000:.0f} ms")


def logger(lock, state, path):
    """Writes the state to the disk some times a second, each time for 50 ms or longer."""
    name("logger")
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    while True:
        with lock:
            end = time.monotonic() + 0.050
            while time.monotonic() < end:
                os.lseek(log, 0, os.SEEK_SET)
                os.write(log, bytes(f"{state.value}\n", "ascii") * 200_000)
                os.fdatasync(log)
        time.sleep(0.100)


lock, state = multiprocessing.Lock(), multiprocessing.Value("L", 0, lock=False)
workers = [multiprocessing.Process(target=worker, args=(lock, state)) for _ in range(2)]
writer = multiprocessing.Process(target=logger, args=(lock, state, sys.argv[1]), daemon=True)
for process in writer, *workers:
    process.start()
for process in workers:
    process.join()
