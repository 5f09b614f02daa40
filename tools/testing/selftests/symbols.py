# SPDX-License-Identifier: GPL-2.0
"""The functions of the kernel and of its modules by their addresses, for tests."""

import bisect
import functools


class Symbols:
    """Contents of /proc/kallsyms, now or earlier.

    Its lines stay text. The kernel's lines are in order, and begin with addresses of one length. There are 200,000
    lines, and a test reads few of them.
    """

    def __init__(self, path="/proc/kallsyms"):
        with open(path) as file:
            self.lines = sorted(file.read().splitlines())

    @functools.cache
    def names(self, address):
        """All names of the function that an address is in."""
        names, begin = set(), None
        # After all lines of that address: a blank follows it.
        for at in range(bisect.bisect(self.lines, f"{address:016x}~") - 1, -1, -1):
            line = self.lines[at]
            if begin and not line.startswith(begin):
                break
            if line[17] in "tTwW":
                names.add(line[19:].split("\t")[0])
                begin = line[:16]
        return names

    def name(self, address):
        """One of them, always the same."""
        return max(self.names(address), default="")
