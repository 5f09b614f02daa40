#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: isolcpus=1 nohz_full=1
# what: a reader sends no interrupt to an isolated CPU, but misses no wake-up from there; it interrupts other CPUs
set -eu -o pipefail -E

export HERE=/payload/selftests RTRACE_MODULES=/payload/modules
. $HERE/functions

equal "isolated CPUs" 1 "$(</sys/devices/system/cpu/isolated)"
load
$PYTHON - <<'EOF'
import select
from rtrace import *


def function_calls(cpu):
    """The function-call interrupts that the CPU has taken."""
    with open("/proc/interrupts") as file:
        return next(int(line.split()[1 + cpu]) for line in file if line.split()[0] == "CAL:")


only(EVENT)
set_channel(mode="discard", subbuf_size=4096, subbuf_count=512)
start()
for writer, reader in (1, 0), (0, 1):
    calls(30_000, writer)
    os.sched_setaffinity(0, {reader})
    before, packets, records = function_calls(writer), 0, 0
    stream = Stream(writer)
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
