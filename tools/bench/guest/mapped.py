# SPDX-License-Identifier: GPL-2.0
"""Reading by mmap; under icount, on one CPU.

The reader writes from its mapping to a file in the page cache, or to /dev/null, which looks at no
byte: what is left then is what handing over the buffer's memory takes. perf record reads by mmap, too.
"""

import subprocess

import tracers
from disk import per_mib, prepare, trace_at


class Mapped(tracers.Rtrace):
    """rtrace with samples/mapped_reader.c as its reader, of the one CPU there is."""

    name = "mapped_reader"

    def __init__(self, nowhere=False):
        super().__init__()
        self.nowhere = nowhere

    def start(self, events, mode, memory, out):
        super().start(events, mode, memory)
        self.out = out
        file = "/dev/null" if self.nowhere else f"{out}/channel0_cpu0"
        with open(file, "wb") as to:
            self.daemon = subprocess.Popen(["mapped_reader", f"{self.channel}/cpu0"], stdout=to,
                                           stderr=subprocess.DEVNULL)


def of_all(say, quick=None):
    prepare()
    events, rounds = (15_000, 4) if quick else (40_000, 10)
    result = {"tracers": {}}
    for label, make in (("rtrace, mapped_reader", Mapped), ("perf", tracers.Perf)):
        tracer = make()
        slow = trace_at(tracer, 100, events)
        size = slow["bytes"] / slow["events"]
        file, = per_mib(tracer, size, rounds, [tracer.writers])
        tracer = make(nowhere=True)
        nowhere, = per_mib(tracer, size, rounds, [tracer.writers])
        # Two rounds have five packets: two in one, three in the other.
        pairs = [sum(pair) / 2 for pair in zip(nowhere[::2], nowhere[1::2])]
        result["tracers"][label] = {"bytes": size, "file": file, "nowhere": pairs}
        say(f"{label}: {result['tracers'][label]}")
    return result
