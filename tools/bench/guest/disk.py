# SPDX-License-Identifier: GPL-2.0
"""Tracing to disk; under icount, on one CPU.

The rate. A task of real-time priority fires a burst of sched_switch each millisecond of the
guest's clock, which is each million instructions. The writer gets the rest of the CPU. So an
event costs twice: when it is recorded and when it is written. The benchmark searches the
highest rate without a loss, on a scale whose steps are STEP apart. Every tracer has a buffer of
the same size. Files are written into the page cache of ext4, not to the disk. Without the page
cache (rtraced --direct) the disk limits the rate, and instructions measure only the writer.

The writer. It is stopped until the buffer is nearly full, and then continues. The benchmark
measures how long its threads run (sum_exec_runtime), while nothing is recorded.
"""

import fcntl
import os
import shutil
import time

import firing
import tracers
from tracers.base import FOUR_MIB, Memory, files_size, read, write

DISK, MOVED = "/var/bench/disk", "/var/bench/moved"
SITE = "sched_switch"
MEMORY = Memory(256 << 10, 4)
STEP = 1.1
# Events per millisecond.
RATES = [round(100 * STEP ** i) for i in range(48)]
# LTTng's reader would be woken five times a second, which is too late for these rates.
TRACERS = (("rtrace", tracers.Rtrace), ("LTTng", lambda: tracers.Lttng(read_timer_us=1000)),
           ("ftrace", tracers.Ftrace), ("perf", tracers.Perf), ("BPF ring buffer", tracers.Bpf))


def fire_steadily(rate, milliseconds):
    """Fires `rate` events each millisecond; how many milliseconds late the last came."""
    request = f"{SITE} {rate}".encode()
    fd = os.open(firing.FILE, os.O_WRONLY)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    due = time.monotonic_ns()
    for _ in range(milliseconds):
        os.write(fd, request)
        due += 1_000_000
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
    late = (time.monotonic_ns() - due) // 1_000_000
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.close(fd)
    return late


def trace_at(tracer, rate, events):
    """Records so many events at that rate: how many were lost."""
    shutil.rmtree(DISK, ignore_errors=True)
    os.makedirs(DISK)
    tracer.start([SITE], "discard", MEMORY, DISK)
    milliseconds = max(events // rate, 20)
    late = fire_steadily(rate, milliseconds)
    time.sleep(1)
    fire_steadily(10, 1)  # the next packet tells what was lost before it
    outcome = tracer.stop()
    shutil.rmtree(DISK)
    # Even a compressed event takes more than this: fewer bytes mean that it was not recorded.
    recorded = rate * milliseconds - outcome.lost
    assert outcome.size > 4 * recorded, f"{tracer.name}: {recorded} events in {outcome.size} bytes"
    # The CPU may be too slow to fire events at this rate; then there is no result.
    return {"events": rate * milliseconds, "lost": outcome.lost, "late": late, "bytes": outcome.size}


def highest_rate(tracer, events, say):
    """The highest of RATES without loss, and what came of each that was tried."""
    low, high = -1, len(RATES)
    tried = {}
    while high - low > 1:
        middle = (low + high) // 2
        tried[RATES[middle]] = came = trace_at(tracer, RATES[middle], events)
        say(f"{tracer.name}: {RATES[middle]} events per ms: {came}")
        if came["lost"] or came["late"] > 2:
            high = middle
        else:
            low = middle
    return RATES[max(low, 0)], tried


def run_time(pids):
    """Nanoseconds that all threads of these processes have run."""
    return sum(int(read(f"/proc/{pid}/task/{task}/schedstat").split()[0])
               for pid in pids for task in os.listdir(f"/proc/{pid}/task"))


def per_mib(tracer, size, rounds, sides):
    """Nanoseconds that processes run for each MiB, of events of `size` bytes, in each of the rounds: of
    each of `sides`, which say what processes. A MiB is one that has come into files in that round, as who
    takes whole sub-buffers leaves the last one for the next; where nothing does, one of events."""
    shutil.rmtree(DISK, ignore_errors=True)
    os.makedirs(DISK)
    tracer.start([SITE], "discard", FOUR_MIB, DISK)
    count = int(tracer.room * (1 << 20) / size)
    firing.fire(SITE, 1000)
    time.sleep(1)
    spent = [[] for _ in sides]
    for _ in range(rounds):
        begin, held = [run_time(pids()) for pids in sides], files_size(DISK)
        tracer.hold()
        firing.fire(SITE, count)
        tracer.resume()
        time.sleep(1.5)
        moved = (files_size(DISK) - held or count * size) / (1 << 20)
        for side, pids, before in zip(spent, sides, begin):
            side.append((run_time(pids()) - before) / moved)
    outcome = tracer.stop()
    shutil.rmtree(DISK)
    assert not outcome.lost, f"{tracer.name}: {outcome.lost} lost"
    return spent


def writer_per_mib(tracer, size, rounds):
    """The same for the writer alone: for the first half of the rounds and for the last half, which must agree.
    (The writer moves the rest of a round's data in the next round.)"""
    spent, = per_mib(tracer, size, 2 * rounds, [tracer.writers])
    return [sum(half) / rounds for half in (spent[:rounds], spent[rounds:])]


def splice_all(stream, pipe, file):
    """The held packet's bytes, without copying them to user space."""
    moved = 0
    while n := os.splice(stream, pipe[1], 1 << 20):
        left = n
        while left:
            left -= os.splice(pipe[0], file, left)
        moved += n
    return moved


def way(how, rounds):
    """Nanoseconds per MiB that a process needs to move rtrace's packets to a file."""
    tracer = tracers.Rtrace()
    os.makedirs(DISK, exist_ok=True)
    spent = moved = 0
    buffer = bytearray(FOUR_MIB.size)
    for _ in range(rounds):
        tracer.start([SITE], "discard", FOUR_MIB)
        firing.fire(SITE, int(3.5 * FOUR_MIB.size / 60))
        tracer.pause()
        stream = os.open(f"{tracer.channel}/cpu0", os.O_RDONLY)
        file = os.open(MOVED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        pipe = os.pipe()
        fcntl.fcntl(pipe[0], 1031, 1 << 20)  # F_SETPIPE_SZ
        begin = time.thread_time_ns()
        if how == "splice":
            while True:
                try:
                    fcntl.ioctl(stream, tracers.rtrace.GET_PACKET, bytes(32))
                except OSError:
                    break
                moved += splice_all(stream, pipe, file)
                fcntl.ioctl(stream, tracers.rtrace.PUT_PACKET)
        else:
            while n := os.readv(stream, [buffer]):
                os.write(file, memoryview(buffer)[:n])
                moved += n
        spent += time.thread_time_ns() - begin
        for fd in (stream, file, *pipe):
            os.close(fd)
        tracer.stop()
    os.unlink(MOVED)
    return spent / (moved / (1 << 20))


def write_alone(rounds, is_reserved=False):
    """Nanoseconds per MiB that write(2) takes to put bytes of memory into a new file, and then
    over them: the least that a file in the page cache costs, whoever writes. `is_reserved`: the
    file's disk space is reserved before."""
    buffer = bytearray(1 << 20)
    file = os.open(MOVED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if is_reserved:
        os.posix_fallocate(file, 0, 4 * rounds << 20)
    spent = []
    for _ in range(2):
        os.lseek(file, 0, os.SEEK_SET)
        begin = time.thread_time_ns()
        for _ in range(4 * rounds):
            os.write(file, buffer)
        spent.append((time.thread_time_ns() - begin) / (4 * rounds))
    os.close(file)
    os.unlink(MOVED)
    return spent


def ways(rounds):
    """Each way to a file, measured twice."""
    said = {}
    for _ in range(2):
        new, over = write_alone(rounds)
        reserved, _ = write_alone(rounds, is_reserved=True)
        for name, value in (("splice", way("splice", rounds)), ("read", way("read", rounds)),
                            ("write(2) alone, from memory", new),
                            ("the same, with disk space reserved by fallocate(2)", reserved),
                            ("the same over pages that are there", over)):
            said.setdefault(name, []).append(value)
    return said


def prepare():
    """Lets real-time tasks use the whole CPU, and keeps pages in the cache."""
    write("/proc/sys/kernel/sched_rt_runtime_us", -1)
    write("/proc/sys/vm/dirty_ratio", 90)
    write("/proc/sys/vm/dirty_background_ratio", 80)


def of_all(say, quick=None):
    prepare()
    events, rounds = (60_000, 2) if quick else (150_000, 4)
    result = {"memory": MEMORY, "step": STEP, "tracers": {}}
    for label, make in TRACERS[:2] if quick else TRACERS:
        tracer = make()
        rate, tried = highest_rate(tracer, events, say)
        slow = trace_at(tracer, 100, events // 4)
        size = slow["bytes"] / slow["events"]
        # trace-cmd compresses: an event's size on disk differs from that in the buffer, and a MiB of
        # its files is not comparable.
        cost = None if label == "ftrace" else writer_per_mib(tracer, size, rounds)
        result["tracers"][label] = {"rate": rate, "tried": tried, "bytes": size, "writer_per_mib": cost}
        say(f"{label}: {result['tracers'][label]}")
    result["tracers"]["rtrace --direct"] = {
        "rate": None, "bytes": result["tracers"]["rtrace"]["bytes"],
        "writer_per_mib": writer_per_mib(tracers.Rtrace(direct=True), result["tracers"]["rtrace"]["bytes"], rounds)}
    say(f"rtrace --direct: {result['tracers']['rtrace --direct']}")
    losing = min((rate for rate, came in result["tracers"]["LTTng"]["tried"].items()
                  if came["lost"] or came["late"] > 2), default=None)
    if losing:
        ours = trace_at(tracers.Rtrace(), losing, events)
        result["at_lttng"] = {"rate": losing, "tracers": {
            "rtrace": ours, "LTTng": result["tracers"]["LTTng"]["tried"][losing]}}
    result["ways"] = ways(rounds)
    say(f"ways to a file: {result['ways']}")
    return result
