# SPDX-License-Identifier: GPL-2.0
"""AUX areas: what lies in their streams, held against the events that say so, and against what
samples/rtrace_aux_sample.c writes.

Usage: aux.py check DIR    of a trace in discard mode, whose files .aux_CHANNEL_cpuN are there
       aux.py latest DIR   the same in overwrite mode
       aux.py write DIR    writes what can be read now of the areas into these files

The first two print per CPU: how many chunks, bytes, bytes lost, chunks that are truncated, and bytes
of chunks that are not there; exit status 1 and why if a byte is not as it should be.
"""

import errno
import glob
import os
import re
import struct
import sys
from collections import defaultdict

import ctf
import rtrace

# Copied from rust/abi/aux.rs, so that a change there is noticed.
TAIL = struct.Struct("<QQQ")
TRUNCATED, OVERWRITE, PARTIAL, COLLISION = 1, 2, 4, 8
SAMPLE = "/sys/kernel/debug/rtrace_aux_sample/"


def expect(condition, why):
    if not condition:
        sys.exit(why)


def pattern(at, size):
    """The bytes that the sample has from `at` on."""
    first, last = at // 8, (at + size + 7) // 8
    words = struct.pack(f"<{last - first}Q", *range(first + (1 << 56), last + (1 << 56)))
    return words[at % 8:][:size]


def packets(data, where):
    """(header, position, its bytes) of each packet of a stream of an area."""
    at, sequence = 0, 0
    while at < len(data):
        header = ctf.Header(*ctf.HEADER.unpack_from(data, at))
        position, offset, size = TAIL.unpack_from(data, at + ctf.HEADER.size)
        where_now = f"{where}: packet at {at}"
        expect(header.magic == ctf.MAGIC, f"{where_now}: magic {header.magic:#x}")
        expect(header.seq >= sequence, f"{where_now}: number {header.seq}, not {sequence}")
        expect(header.size % (8 * ctf.PAGE) == 0, f"{where_now}: {header.size} bits")
        end = ctf.HEADER.size + TAIL.size
        if size:
            end = offset + size
            expect(offset == ctf.PAGE + position % ctf.PAGE, f"{where_now}: bytes at {offset}")
            expect(header.size // 8 - end < ctf.PAGE, f"{where_now}: {header.size} bits for {end} bytes")
        expect(header.content == 8 * end, f"{where_now}: {header.content} bits, not {8 * end}")
        unused = data[at + ctf.HEADER.size + TAIL.size:at + ctf.PAGE]
        expect(not any(unused), f"{where_now}: something behind the header")
        sequence = header.seq + 1
        yield header, position, data[at + offset:at + offset + size]
        at += header.size // 8


class Stream:
    """One CPU's bytes, as far as they are there."""

    def __init__(self, data, where, is_whole):
        self.parts, self.lost, end = [], 0, 0
        for header, position, part in packets(data, where):
            self.lost = header.discarded
            expect(not is_whole or position == end, f"{where}: goes on at {position}, not {end}")
            end = position + len(part)
            self.parts.append((position, part))

    def bytes(self, position, size):
        """{offset: bytes} of those that are there."""
        for begin, part in self.parts:
            first, last = max(position, begin), min(position + size, begin + len(part))
            if first < last:
                yield first - position, part[first - begin:last - begin]


def streams(dir, is_whole):
    for path in glob.glob(dir + "/.aux_*"):
        with open(path, "rb") as file:
            cpu = int(re.fullmatch(r".*/\.aux_\w+_cpu(\d+)", path)[1])
            yield cpu, Stream(file.read(), path, is_whole)


def check(dir, is_whole):
    streams_of = dict(streams(dir, is_whole))
    rows = defaultdict(lambda: [0] * 5)
    # Per CPU: the bytes that the sample has written, or tried to write, and the end of the stream.
    at, end = defaultdict(int), defaultdict(int)
    for stream_cpu, _, _, chunk in ctf.events(dir, "sample_aux"):
        cpu, position, size = chunk["aux_cpu"], chunk["aux_offset"], chunk["aux_size"]
        flags, lost = chunk["aux_flags"], chunk["aux_lost"]
        expect(cpu == stream_cpu, f"chunk of CPU {cpu} in the stream of {stream_cpu}")
        expect(not is_whole or position == end[cpu], f"chunk at {position}, not {end[cpu]}")
        expect(lost == 0 or flags & TRUNCATED, f"{lost} bytes lost, flags {flags:#x}")
        expect(bool(flags & OVERWRITE) != is_whole, f"flags {flags:#x}")
        at[cpu] += lost
        there = 0
        for offset, part in streams_of[cpu].bytes(position, size):
            expected = pattern(at[cpu] + offset, len(part))
            expect(part == expected, f"CPU {cpu}: bytes of the chunk at {position} are wrong")
            there += len(part)
        at[cpu] += size
        end[cpu] = position + size
        row = [1, size, lost, bool(flags & TRUNCATED), size - there]
        rows[cpu] = [a + b for a, b in zip(rows[cpu], row)]
    for cpu, row in sorted(rows.items()):
        # The stream counts the bytes that were lost after the last chunk.
        row[2] = max(row[2], streams_of[cpu].lost) if cpu in streams_of else row[2]
        print(cpu, *row)


def write(dir):
    """Writes what can be read of each area behind what is there."""
    for path in glob.glob(f"{rtrace.C}/aux[0-9]*"):
        cpu = int(path.rsplit("aux", 1)[1])
        try:
            stream = rtrace.Stream(cpu, name="aux")
        except OSError as error:
            if error.errno == errno.ENODATA:
                continue
            raise
        with open(f"{dir}/.aux_channel0_cpu{cpu}", "ab") as file:
            for packet, data in stream.packets():
                expect(len(data) == packet.size, f"aux{cpu}: {len(data)} bytes, not {packet.size}")
                file.write(data)
        stream.close()


def main(command, dir):
    match command:
        case "check":
            check(dir, True)
        case "latest":
            check(dir, False)
        case "write":
            write(dir)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
