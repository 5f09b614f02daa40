# SPDX-License-Identifier: GPL-2.0
"""The functions of the kernel and of its modules by their addresses, for tests."""

import bisect
import functools


class Symbols:
    """What is in /proc/kallsyms, or was.

    Its lines stay text: the kernel's are in order, and begin with addresses of one length. There are 200,000, of which
    a test asks for few.
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
