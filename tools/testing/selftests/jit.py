# SPDX-License-Identifier: GPL-2.0
"""A program that makes code at run time, runs it, and names it in /tmp/perf-PID.map.

Usage: jit.py ROUNDS [own | other | link | none]    the file: as it should be; of another user; a link; missing
"""

import ctypes
import mmap
import os
import platform
import sys

# A frame, and a loop as often as the argument says.
CODE = {
    "x86_64": bytes.fromhex("55 4889e5 48ffcf 75fb 5d c3"),
    "aarch64": bytes.fromhex("fd7bbfa9 fd030091 000400f1 e1ffff54 fd7bc1a8 c0035fd6"),
}


def main():
    rounds, kind = int(sys.argv[1]), sys.argv[2]
    code = CODE[platform.machine()]
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    path = f"/tmp/perf-{os.getpid()}.map"
    there = path if kind != "link" else f"{os.getcwd()}/linked"
    if kind != "none":
        with open(there, "w") as file:
            # The last name counts.
            file.write(f"{address:x} {len(code):x} an_old_name\n{address:x} {len(code):x} made_code\n")
    if kind == "link":
        os.symlink(there, path)
    if kind == "other":
        os.chown(path, 1234, 1234)
    run = ctypes.CFUNCTYPE(None, ctypes.c_long)(address)
    for _ in range(rounds):
        run(10_000_000)
    if kind != "none":
        os.unlink(path)


main()
