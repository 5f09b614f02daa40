#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""io-stall.py DISK: `database` commits to DISK, and some commits take longer. Why? See the tutorial.

What is on DISK, a block device, is overwritten. A process `backup` writes to it, too."""

import mmap
import os
import sys
import threading
import time

COMMITS = 20
BACKUP = 64 << 20


def name(comm):
    with open("/proc/self/comm", "w") as file:
        file.write(comm)


def backup(path):
    """Writes in large pieces, eight at a time."""
    name("backup")
    disk = os.open(path, os.O_WRONLY | os.O_DIRECT)
    piece = mmap.mmap(-1, 128 << 10)

    def write(first):
        for at in range(BACKUP + first * len(piece), 2 * BACKUP, 8 * len(piece)):
            os.pwritev(disk, [piece], at)

    for first in range(8):
        threading.Thread(target=write, args=(first,), daemon=True).start()
    time.sleep(1)


def database(path, what):
    disk = os.open(path, os.O_WRONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    times = []
    for commit in range(COMMITS):
        begin = time.monotonic()
        os.pwritev(disk, [page], commit * 4096)
        times.append(time.monotonic() - begin)
        time.sleep(0.010)
    times.sort()
    print(f"database ({os.getpid()}): a commit took {times[COMMITS // 2] * 1000:.0f} ms "
          f"{what}, at most {times[-1] * 1000:.0f} ms")


name("database")
database(sys.argv[1], "alone")
child = os.fork()
if child == 0:
    backup(sys.argv[1])
    os._exit(0)
time.sleep(0.1)
database(sys.argv[1], "beside backup")
os.waitpid(child, 0)
