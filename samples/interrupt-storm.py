#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""interrupt-storm.py FILE: `solver` computes, and completes fewer rounds than it could. Why? See the tutorial.

A process `scanner` reads FILE on a real disk. The script creates FILE, of 1 MiB."""

import mmap
import os
import sys
import time

SECONDS = 1
SIZE = 1 << 20


def name(comm):
    with open("/proc/self/comm", "w") as file:
        file.write(comm)


def scanner(path):
    """Reads the file from the disk, without the kernel's cache, in the smallest possible pieces."""
    name("scanner")
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    piece = mmap.mmap(-1, 512)
    at = 0
    while True:
        at = at + os.preadv(file, [piece], at) if at < SIZE else 0


def solver(what):
    """Counts the rounds of a computation."""
    done, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        sum(range(1000))
        done += 1
    print(f"solver ({os.getpid()}): {done} rounds {what}")


name("solver")
with open(sys.argv[1], "wb") as file:
    file.write(bytes(SIZE))
    os.fsync(file.fileno())
solver("alone")
child = os.fork()
if child == 0:
    scanner(sys.argv[1])
solver("beside scanner")
os.kill(child, 9)
os.waitpid(child, 0)
