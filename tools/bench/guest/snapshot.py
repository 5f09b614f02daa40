# SPDX-License-Identifier: GPL-2.0
"""A snapshot of a large buffer in overwrite mode; under icount, on one CPU, into memory (tmpfs).

The buffer is filled nearly, so that nothing is overwritten yet, and a snapshot is asked for. The time is
that from then until all of it is in the files, while nothing else is recorded. Then the same while a task
of real-time priority goes on firing; a second snapshot follows, and what neither of them has is lost: for
rtrace and LTTng packets, by the gaps in their numbers; for perf what it counts itself, as it stops
recording while it reads.
"""

import glob
import os
import shutil
import signal
import struct
import subprocess
import time

import firing
import tracers
from disk import SITE, fire_steadily, prepare
from tracers import ctf
from tracers.base import Memory, files_size, read, run, wait_for

PLACE = "/var/bench"
MEMORY = Memory(1 << 20, 64)
# Number of its pieces that are filled when the snapshot is requested.
FILLED = 62.5
# Events per millisecond during the snapshot.
RATE = 200


class Packets:
    """Common part of tracers with numbered packets. `size`: bytes of an event."""

    def lost(self):
        """Records in the packets that no snapshot has."""
        found = {}
        for path in ctf.streams(self.out, "channel0_"):
            for packet in ctf.packets(path):
                found[packet.number] = packet.content
        # All pieces of a snapshot except the last are full.
        missing = max(found) + 1 - len(found)
        return round(missing * max(found.values()) / self.size)


class Rtrace(Packets):
    name, size = "rtrace", 60

    def start(self, out):
        self.out, self.number = out, 0
        self.tracer = tracers.Rtrace()
        self.tracer.start([SITE], "overwrite", MEMORY)

    def take(self):
        self.number += 1
        run("rtrace", "snapshot", "--output", f"{self.out}/{self.number}")

    def stop(self):
        self.tracer.stop()


class Lttng(Packets):
    name, size = "LTTng", 60

    def start(self, out):
        self.tracer = tracers.Lttng()
        self.tracer.start([SITE], "overwrite", MEMORY)
        self.out = self.tracer.out

    def take(self):
        run("lttng", "snapshot", "record", f"--session={self.tracer.session}")

    def stop(self):
        run("lttng", "stop", self.tracer.session)
        run("lttng", "destroy", self.tracer.session)


class Perf:
    """perf record --overwrite, which writes a file at each SIGUSR2."""

    name, size = "perf", 120
    # PERF_RECORD_LOST_SAMPLES
    LOST_SAMPLES = 13

    def start(self, out):
        self.out, self.number = out, 0
        self.tracer = tracers.Perf()
        self.tracer.out = out
        self.tracer.record([f"sched:{SITE}"], MEMORY.size * MEMORY.count, "--overwrite", "--switch-output=signal")

    def files(self):
        return sorted(glob.glob(f"{self.out}/perf.data.*"))

    def take(self):
        there = len(self.files())
        self.tracer.recorder.send_signal(signal.SIGUSR2)
        wait_for(lambda: len(self.files()) > there, "a file of perf record")

    def stop(self):
        self.tracer.recorder.send_signal(signal.SIGINT)
        self.tracer.recorder.wait()

    def lost(self):
        return sum(count for path in self.files() for count in lost_samples(path))


def lost_samples(path):
    """Number of lost samples, by the records of a file of perf."""
    with open(path, "rb") as file:
        head = file.read(56)
        begin, size = struct.unpack_from("=QQ", head, 40)
        file.seek(begin)
        data = file.read(size)
    at = 0
    while at < len(data):
        kind, _, length = struct.unpack_from("=IHH", data, at)
        if kind == Perf.LOST_SAMPLES:
            yield struct.unpack_from("=Q", data, at + 8)[0]
        at += length


def begin(tracer):
    """A trace whose buffer is as full as it is to be."""
    shutil.rmtree(f"{PLACE}/snapshots", ignore_errors=True)
    os.makedirs(f"{PLACE}/snapshots")
    tracer.start(f"{PLACE}/snapshots")
    firing.fire(SITE, int(FILLED * MEMORY.size / tracer.size))


def taken(tracer):
    """How long a snapshot takes, in nanoseconds of the guest's clock."""
    asked = time.monotonic_ns()
    tracer.take()
    return time.monotonic_ns() - asked


def quietly(tracer):
    """How long a snapshot takes, and how many MiB it is."""
    begin(tracer)
    spent = taken(tracer)
    size = files_size(tracer.out) / (1 << 20)
    tracer.stop()
    assert size > 0.95 * FILLED, f"{tracer.name}: a snapshot of {size} MiB"
    return spent, size


def beside_load(tracer):
    """How long it takes while events come, how many came, and how many of all are lost."""
    begin(tracer)
    over = f"{PLACE}/over"
    pid = os.fork()
    if pid == 0:
        fired = 0
        while not os.path.exists(over):
            fire_steadily(RATE, 5)
            fired += 5 * RATE
        with open(over, "w") as file:
            file.write(str(fired))
        os._exit(0)
    spent = taken(tracer)
    open(over, "w").close()
    assert os.waitpid(pid, 0)[1] == 0, "what fires meanwhile failed"
    fired = int(read(over))
    os.unlink(over)
    tracer.take()
    tracer.stop()
    return spent, fired, tracer.lost()


def of_all(say, quick=None):
    prepare()
    os.makedirs(PLACE, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=1G", "tmpfs", PLACE)
    result = {"memory": MEMORY, "rate": RATE, "tracers": {}}
    for make in (Rtrace, Lttng, Perf):
        tracer = make()
        times = []
        for _ in range(1 if quick else 3):
            spent, size = quietly(tracer)
            times.append(spent)
        spent, fired, lost = beside_load(tracer)
        result["tracers"][tracer.name] = {"ns": times, "mib": size, "loaded_ns": spent, "fired": fired, "lost": lost}
        say(f"{tracer.name}: {result['tracers'][tracer.name]}")
    return result
