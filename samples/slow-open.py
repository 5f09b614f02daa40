#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""slow-open.py FILE: `editor` opens FILE, which takes half a second. Why? See the tutorial.

A process `fileserver` uses the same file."""

import fcntl
import os
import signal
import sys
import time


def name(comm):
    with open("/proc/self/comm", "w") as file:
        file.write(comm)


def fileserver(path, ready):
    """Holds a lease on the file, for a client that keeps a copy. Releases it after the client has been notified."""
    name("fileserver")
    file = os.open(path, os.O_RDONLY)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    os.write(ready, b"x")
    signal.sigwait({signal.SIGIO})
    time.sleep(0.5)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)


path = sys.argv[1]
with open(path, "w") as file:
    file.write("text\n")
is_ready, ready = os.pipe()
child = os.fork()
if child == 0:
    fileserver(path, ready)
    os._exit(0)
os.close(ready)
if not os.read(is_ready, 1):
    sys.exit("slow-open.py: this file system has no leases")
name("editor")
begin = time.monotonic()
os.close(os.open(path, os.O_WRONLY))
print(f"editor ({os.getpid()}): open took {(time.monotonic() - begin) * 1000:.0f} ms")
os.waitpid(child, 0)
