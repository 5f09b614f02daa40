#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: isolcpus=1 nohz_full=1
# what: a reader sends no interrupt to an isolated CPU, but misses no wake-up from there; it interrupts other CPUs.
#       A timer looks for packets only while there is a reader. Flushes, snapshots, forced switches and wake-ups cause
#       no interrupt, timer or work there. It may go offline, and a stop may meet a flush
set -eu -o pipefail -E

export HERE=/payload/selftests RTRACE_MODULES=/payload/modules
. $HERE/functions

[ "$PROCESSOR" = x86_64 ] || { echo "SKIP the test knows only the interrupts of x86-64"; exit 4; }
equal "isolated CPUs" 1 "$(</sys/devices/system/cpu/isolated)"
load
$PYTHON - <<'EOF'
import select
from rtrace import *


def timers():
    """Number of rtrace's timers."""
    return read("/proc/timer_list").count("[rtrace]")


only(EVENT)
set_channel(mode="discard", subbuf_size=4096, subbuf_count=512)
start()
idle = timers()
for writer, reader in (1, 0), (0, 1):
    calls(30_000, writer)
    os.sched_setaffinity(0, {reader})
    before, packets, records = function_calls(writer), 0, 0
    eventually(lambda: timers() == idle, "no timer looks for packets without a reader")
    stream = Stream(writer)
    eventually(lambda: timers() == idle + writer, "a timer looks for packets of the isolated CPU")
    while True:
        try:
            records += stream.get().records
        except BlockingIOError:
            break
        stream.put()
        packets += 1
    interrupts = function_calls(writer) - before
    print(f"reader on CPU {reader}: {packets} packets of CPU {writer}, {interrupts} function-call interrupts there")
    assert packets >= 50 and records >= 25_000, (packets, records)
    if writer == 1:
        assert interrupts < packets // 4, "a reader interrupts an isolated CPU"
    else:
        assert interrupts >= packets, "the interrupts of readers were not counted"

    # The barrier at delivery replaces the interrupt at open: the reader is woken.
    ready = select.poll()
    ready.register(stream.fd, select.POLLIN)
    for _ in range(20):
        waiting = child(lambda: calls(2000, writer))
        assert ready.poll(60_000), "the reader was not woken"
        while True:
            try:
                stream.get()
            except BlockingIOError:
                break
            stream.put()
        join(waiting)
    stream.close()
stop()
EOF

# The same for all requests of a reader, while ftrace watches the writer's CPU. The writer never sleeps, so no
# interrupt wakes it.
mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null || :
$PYTHON - <<'EOF'
import mmap
import signal
from rtrace import *

T = "/sys/kernel/tracing/"
WATCHED = ["irq_vectors/irq_work_entry", "csd/csd_function_entry", "timer/hrtimer_expire_entry",
           "workqueue/workqueue_execute_start"]
# Rows of /proc/interrupts: ticks and timers, function calls, irq_work, rescheduling.
ROWS = "LOC", "CAL", "IWI", "RES"


def ignored_signal(_):
    os.kill(os.getpid(), signal.SIGURG)


class Writer:
    """Calls a function on a CPU: as often as asked, or all the time."""

    def __init__(self, cpu, fire):
        self.words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
        self.pid = child(self.run, cpu, fire)

    def run(self, cpu, fire):
        words, made = self.words, 0
        os.sched_setaffinity(0, {cpu})
        while not words[2]:
            if made < words[0] or words[3]:
                fire(made)
                made += 1
                words[1] = made

    def ask(self, calls):
        self.words[0] = self.words[1] + calls
        eventually(lambda: self.words[1] >= self.words[0], "the writer has made its calls", 120)

    def end(self):
        self.words[2] = 1
        join(self.pid)


class Reader:
    """Reads packets, and counts them, their records, and the requests before."""

    def __init__(self, cpu):
        self.stream = Stream(cpu)
        self.packets = self.records = self.requests = 0

    def drain(self):
        self.requests += 1
        while True:
            try:
                self.records += self.stream.get().records
            except OSError:
                return
            self.stream.put()
            self.packets += 1


def interrupts(cpu):
    """The CPU's numbers of interrupts."""
    with open("/proc/interrupts") as file:
        lines = [line.split() for line in file]
    return {line[0][:-1]: int(line[1 + cpu]) for line in lines if line[0][:-1] in ROWS}


for event in WATCHED:
    write(f"{T}events/{event}/enable", 1)
write(T + "tracing_on", 0)
set_channel(mode="overwrite", subbuf_size=4096, subbuf_count=512, switch_period=20_000, read_period=20_000)
# A system call, and an event that has a probe of its own.
for cpu, event, fire in (1, EVENT, call), (1, "signal:signal_generate", ignored_signal), (0, EVENT, call):
    only(event)
    start()
    os.sched_setaffinity(0, {1 - cpu})
    writer, reader = Writer(cpu, fire), Reader(cpu)
    stream = reader.stream
    writer.ask(100)
    write(T + "tracing_cpumask", format(1 << cpu, "x"))
    write(T + "trace", "\n")
    write(T + "tracing_on", 1)
    before = interrupts(cpu)

    def all_is_read(after):
        busy = stats()[str(cpu)]["busy"]
        assert reader.records + busy == writer.words[1], (after, reader.records, busy, writer.words[1])

    for _ in range(20):
        # Closes a packet that contains all that was recorded.
        writer.ask(50)
        stream.flush()
        reader.drain()
    all_is_read("flush")

    for _ in range(5):
        stream.prepare()
        writer.ask(1000)
        assert stream.take_all() > 0
        reader.drain()
    all_is_read("snapshot")

    # A forced switch closes the packet, and a timer wakes the reader.
    for _ in range(10):
        writer.ask(10)
        assert stream.poll(60), "the reader was not woken"
        reader.drain()

    # Flushes and snapshots while the writer records.
    writer.words[3] = 1
    for turn in range(40):
        if turn % 4 == 0:
            stream.prepare()
            try:
                stream.take_all()
            except BlockingIOError:
                pass
        else:
            stream.flush()
        reader.drain()
    writer.words[3] = 0

    came = {row: number - before[row] for row, number in interrupts(cpu).items()}
    write(T + "tracing_on", 0)
    with open(f"{T}per_cpu/cpu{cpu}/trace") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    ours = [line for line in lines if "[rtrace]" in line]
    ticks = sum("tick" in line for line in lines)
    requests = reader.requests
    # Afterwards the writer makes no more calls.
    writer.ask(1)
    fired = writer.words[1]
    stop()
    writer.end()
    reader.drain()
    stream.close()
    row = stats()[str(cpu)]
    print(f"CPU {cpu}: {fired} times {event}, {row['busy']} lost, {requests} requests, {reader.packets} packets; interrupts: "
          f"{came}, {ticks} ticks; {len(ours)} lines about rtrace", *ours[:5], sep="\n  ")
    assert row["recorded"] + row["busy"] == fired, (row, fired)
    assert reader.records + row["overwritten"] == row["recorded"], (reader.records, row)
    if cpu == 1:
        assert not ours, "rtrace runs on an isolated CPU"
        assert max(came["CAL"], came["IWI"], came["RES"]) < requests // 4, "an isolated CPU is interrupted"
    else:
        assert row["busy"] == 0, "a CPU that is not isolated has a deputy"
        assert came["CAL"] >= requests // 2, "the interrupts of readers were not counted"
        assert {"csd_function_entry", "hrtimer_expire_entry"} <= {
            word.rstrip(":") for line in ours for word in line.split()}, "ftrace does not see rtrace"
EOF

# A CPU that goes offline and comes back, a stop that meets flushes, and an AUX area.
load_aux
$PYTHON - <<'EOF'
from rtrace import *

AWAY = "/sys/devices/system/cpu/cpu1/online"


def drain(stream):
    records = 0
    while True:
        try:
            records += stream.get().records
        except OSError:
            return records
        stream.put()


def flush_until_the_end():
    while int(read(R + "/enable")):
        stream.flush()


set_channel(mode="discard", subbuf_size=4096, subbuf_count=64, switch_period=1000, read_period=0, aux_size=65536)
only(EVENT)
start()
stream = Stream(1)
records = 0
for turn in range(3):
    calls(100, 1)
    os.sched_setaffinity(0, {0})
    if turn % 2:
        stream.flush()
    write(AWAY, 0)
    stream.flush()
    records += drain(stream)
    write(AWAY, 1)
calls(100, 1)
os.sched_setaffinity(0, {0})
stop()
records += drain(stream)
stream.close()
row = stats()["1"]
assert row["recorded"] + row["busy"] == 400 and records == row["recorded"], (records, row)

for turn in range(10):
    start()
    stream = Stream(1)
    flusher = child(flush_until_the_end)
    calls(200, 1)
    os.sched_setaffinity(0, {0})
    stop()
    join(flusher)
    records = drain(stream)
    stream.close()
    row = stats()["1"]
    assert row["recorded"] + row["busy"] == 200 and records == row["recorded"], (turn, records, row)

only("sample:sample_aux")
start()
stream = Stream(1, name="aux")
assert not stream.poll()
writer = child(lambda: (time.sleep(0.3), write("/sys/kernel/debug/rtrace_aux_sample/write", "10 3001")))
assert stream.poll(60) >= {"IN"}, "the reader of an AUX area was not woken"
join(writer)
stream.close()
stop()
EOF
