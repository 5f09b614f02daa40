# SPDX-License-Identifier: GPL-2.0
"""Reads rtrace's traces (CTF 1.8, the part of it that rtrace writes) and holds them
against every rule that babeltrace2 does not check.

Usage: ctf.py check DIR...       prints totals of each; exit status 1 and why if a rule is broken
       ctf.py field DIR EVENT F  prints "CPU VALUE" of field F in each EVENT, in order
       ctf.py names DIR [CHANNEL]  prints how often each event is there, or in that channel
"""

import collections
import os
import re
import struct
import sys

HEADER = struct.Struct("<I16sIQQQQQQQI")
Header = collections.namedtuple(
    "Header", "magic uuid stream_id instance begin end content size seq discarded cpu")
MAGIC = 0xC1FC1FC1
# The size of a packet is a multiple of this.
PAGE = os.sysconf("SC_PAGE_SIZE")


class Invalid(Exception):
    pass


def expect(condition, why):
    if not condition:
        raise Invalid(why)


def labels(text, where):
    """The names of values, with these: "NAME" = VALUE, ..."""
    label = re.compile(r'"((?:[^"\\]|\\.)*)" = (-?\d+)(?:, |$)')
    at = 0
    while at < len(text):
        m = label.match(text, at)
        expect(m, f"metadata: names of {where} at {text[at:]}")
        yield int(m[2]), re.sub(r"\\(.)", r"\1", m[1])
        at = m.end()


class Event:
    """How an event's payload lies in a record."""

    def __init__(self, name, body):
        self.name = name
        # A run of fixed fields is one struct. None stands for a string; for a sequence, the code of its elements and the
        # index of its length; for an array without bytes, its length.
        self.parts, self.names, run = [], [], "<"
        # Names of the values of a field.
        self.labels = {}
        for line in body.splitlines():
            line = line.strip()
            if m := re.match(r"enum : (integer \{[^}]*\}) \{ (.*) \} (_(\w+);)$", line):
                self.labels[m[4]] = list(labels(m[2], f"{m[4]} of {name}"))
                line = f"{m[1]} {m[3]}"
            if m := re.match(r"string _(\w+);$", line):
                self.parts += [struct.Struct(run), None]
                run = "<"
            elif m := re.match(r"integer \{ size = (\d+); align = 8; signed = (\w+);(.*)\} _(\w+)(?:\[(\d+)\]|\[_(\w+)\])?;$", line):
                code = {8: "B", 16: "H", 32: "I", 64: "Q"}[int(m[1])]
                code = code.lower() if m[2] == "true" else code
                if m[6]:
                    expect(m[6] in self.names, f"metadata: no length of '{line}' in {name}")
                    self.parts += [struct.Struct(run), (code, self.names.index(m[6]), None)]
                    run = "<"
                elif m[5] and int(m[1]) > 8:
                    self.parts += [struct.Struct(run), (code, None, int(m[5]))]
                    run = "<"
                else:
                    run += f"{m[5]}s" if m[5] else code
            else:
                expect(not line, f"metadata: field '{line}' of {name}")
                continue
            self.names.append(m[m.re.groups if "string" in line[:6] else 4])
        if run != "<":
            self.parts.append(struct.Struct(run))

    def decode(self, data, at):
        """The values of its fields, and where they end."""
        if len(self.parts) == 1 and isinstance(self.parts[0], struct.Struct):
            return self.parts[0].unpack_from(data, at), at + self.parts[0].size
        values = []
        for part in self.parts:
            if part is None:
                end = data.index(b"\0", at)
                values.append(data[at:end])
                at = end + 1
            elif isinstance(part, tuple):
                code, place, count = part
                elements = struct.Struct(f"<{values[place] if count is None else count}{code}")
                values.append(elements.unpack_from(data, at))
                at += elements.size
            else:
                values += part.unpack_from(data, at)
                at += part.size
        return values, at


class StreamClass:
    """Properties that all streams of a channel share."""

    def __init__(self, compact, context):
        self.compact, self.events = compact, {}
        self.context = Event("context", context)


class Metadata:
    def __init__(self, text):
        expect(text.startswith("/* CTF 1.8 */"), "metadata: first line")
        self.uuid = bytes.fromhex(re.search(r'uuid = "([0-9a-f-]+)"', text)[1].replace("-", ""))
        self.frequency = int(re.search(r"freq = (\d+);", text)[1])
        # The first member of a header shows its layout: 5 bits of a word, or 16.
        headers = {m[1]: m[2].startswith("integer { size = 5;")
                   for m in re.finditer(r"\nstruct (event_header\w*) \{\n\tenum : ([^\n]*)", text)}
        self.streams = {}
        for m in re.finditer(r"\nstream \{\n\tid = (\d+);\n\tevent\.header := struct (\w+);\n(.*?)\n\};", text, re.S):
            expect(int(m[1]) == len(self.streams), f"metadata: stream {m[1]} out of order")
            expect(m[2] in headers, f"metadata: stream {m[1]} of an unknown header {m[2]}")
            context = re.search(r"\tevent\.context := struct \{\n(.*?)\t\};", m[3], re.S)
            self.streams[int(m[1])] = StreamClass(headers[m[2]], context[1] if context else "")
        expect(0 < len(self.streams) == text.count("\nstream {"), "metadata: a stream that cannot be parsed")
        described = 0
        for m in re.finditer(r'event \{\n\tname = "([\w.:-]+)";\n\tid = (\d+);\n\tstream_id = (\d+);\n'
                             r"\tfields := struct \{\n(.*?)\t\};\n\};", text, re.S):
            id, stream = int(m[2]), int(m[3])
            expect(stream in self.streams, f"metadata: event {m[1]} of an unknown stream {stream}")
            events = self.streams[stream].events
            expect(id not in events, f"metadata: id {id} twice")
            events[id] = Event(m[1], m[4])
            described += 1
        expect(described == text.count("event {"), "metadata: an event that cannot be parsed")


class Stream:
    """Walks a stream's packets and checks each."""

    def __init__(self, metadata, data, cpu):
        self.metadata, self.data, self.cpu = metadata, data, cpu
        # The class of the stream: its packets have it.
        self.id = None
        self.packets, self.discarded, self.missing, self.empty = 0, 0, 0, 0
        # The contexts of the event that was yielded last.
        self.contexts = []

    def headers(self):
        at, last = 0, None
        while at < len(self.data):
            where = f"cpu{self.cpu}: packet at {at:#x}"
            expect(len(self.data) - at >= HEADER.size, f"{where}: cut off")
            h = Header(*HEADER.unpack_from(self.data, at))
            where = f"{where} ({h})"
            expect(h.magic == MAGIC, f"{where}: magic")
            expect(h.uuid == self.metadata.uuid, f"{where}: uuid")
            self.id = h.stream_id if self.id is None else self.id
            known = h.stream_id == self.id and h.stream_id in self.metadata.streams
            expect(known and h.instance == h.cpu == self.cpu, f"{where}: stream or cpu")
            expect(h.content % 8 == 0 and h.size % (8 * PAGE) == 0, f"{where}: sizes")
            expect(HEADER.size * 8 <= h.content <= h.size, f"{where}: content")
            expect(at + h.size // 8 <= len(self.data), f"{where}: longer than the file")
            expect(h.begin <= h.end, f"{where}: ends before it begins")
            if last:
                expect(h.begin >= last.end, f"{where}: overlaps the one before ({last})")
                expect(h.seq > last.seq, f"{where}: number not larger than before ({last})")
                expect(h.discarded >= last.discarded, f"{where}: discarded less than before")
                self.missing += h.seq - last.seq - 1
            else:
                self.missing += h.seq
            if h.content == HEADER.size * 8:
                # An empty packet is allowed only to report losses that no other packet reports.
                expect(h.discarded > (last.discarded if last else 0), f"{where}: empty, and tells nothing")
                self.empty += 1
            self.packets, self.discarded, last = self.packets + 1, h.discarded, h
            yield at, h
            at += h.size // 8

    def events(self):
        """(time, Event, values), in order."""
        data = self.data
        for at, h in self.headers():
            stream = self.metadata.streams[h.stream_id]
            events = stream.events
            short = struct.Struct("<I" if stream.compact else "<HI")
            extended = struct.Struct("<BIQ" if stream.compact else "<HIQ")
            begin, stop, time, event = at, at + h.content // 8, h.begin, None
            at += HEADER.size
            while at < stop:
                record = at
                if stream.compact:
                    word, = short.unpack_from(data, at)
                    id, low, bits, escape = word & 31, word >> 5, 27, 31
                else:
                    (id, low), bits, escape = short.unpack_from(data, at), 32, 65535
                if id == escape:
                    _, id, now = extended.unpack_from(data, at)
                    at += extended.size
                else:
                    # The earliest time with these low bits that is not before the last one.
                    now = time + ((low - time) & ((1 << bits) - 1))
                    at += short.size
                if now < time:
                    wrong = f"time goes back from {time} to {now}"
                elif now > h.end:
                    wrong = f"time {now} after the packet's end {h.end}"
                elif id not in events:
                    wrong = f"event {id} is not in the metadata"
                else:
                    time, event = now, events[id]
                    if stream.context.parts:
                        self.contexts, at = stream.context.decode(data, at)
                    values, at = event.decode(data, at)
                    if at <= stop:
                        yield time, event, values
                        continue
                    wrong = f"{event.name} goes beyond the packet"
                behind = f", behind {event.name}" if event else ""
                raise Invalid(f"cpu{self.cpu}: packet {h.seq}, byte {record - begin}{behind}: {wrong}")


def streams(dir, channel=None):
    """The streams of a channel, or of all."""
    with open(dir + "/metadata") as file:
        metadata = Metadata(file.read())
    # Maps each channel to its event class; no two share one.
    classes = {}
    for path in sorted(os.listdir(dir)):
        # (Streams of AUX areas begin with a dot.)
        file = re.fullmatch(r"([^.].*)_cpu(\d+)", path)
        if not file or channel not in (None, file[1]):
            continue
        name, cpu = file[1], int(file[2])
        with open(f"{dir}/{path}", "rb") as file:
            stream = Stream(metadata, file.read(), cpu)
        yield stream
        if stream.id is not None:
            expect(classes.setdefault(stream.id, name) == name,
                   f"{path}: stream {stream.id} is of channel {classes[stream.id]}")


def events(dir, name=None, channel=None):
    """(cpu, time, event name, {field: value})"""
    for stream in streams(dir, channel):
        for time, event, values in stream.events():
            if name is None or event.name == name:
                yield stream.cpu, time, event.name, dict(zip(event.names, values))


def events_with_contexts(dir):
    """As events(), with the contexts among the fields."""
    for stream in streams(dir):
        for time, event, values in stream.events():
            names = stream.metadata.streams[stream.id].context.names
            fields = dict(zip(names, stream.contexts)) | dict(zip(event.names, values))
            yield stream.cpu, time, event.name, fields


def check(dir):
    totals = collections.Counter(events=0, packets=0, missing=0, discarded=0, empty=0)
    for stream in streams(dir):
        totals["events"] += sum(1 for _ in stream.events())
        for key in "packets", "missing", "discarded", "empty":
            totals[key] += getattr(stream, key)
    return totals


def main(command, dir, *args):
    if command == "check":
        for dir in dir, *args:
            try:
                totals = check(dir)
            except Invalid as why:
                raise Invalid(f"{dir}: {why}")
            for key, value in totals.items():
                print(f"{key}={value}")
    elif command == "field":
        for cpu, _, _, fields in events(dir, args[0]):
            print(cpu, fields[args[1]])
    elif command == "names":
        for name, n in sorted(collections.Counter(e[2] for e in events(dir, None, *args)).items()):
            print(n, name)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Invalid as why:
        sys.exit(f"invalid: {why}")
