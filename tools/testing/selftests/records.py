# SPDX-License-Identifier: GPL-2.0
"""Compares what rtrace and ftrace recorded of the same events, between two marks on each CPU.

Usage: records.py TRACE FTRACE MARKS TYPES TRACEFS EVENT...

TRACE is rtrace's, FTRACE the text of an instance with its option `fields`. EVENTs are
SUBSYSTEM:NAME. The marks are calls of sched_get_priority_min, so many first and last on each CPU: not
one, for what comes between the two tracers' probes at a mark is before it for one and behind it for
the other. Exit status 1 in each of these cases:

- a CPU does not have the same events
- a field of an event differs in more than one of a hundred records, or in one of fewer than ten. (What a field is read
  from may change between the two tracers' probes.)
- more than one field of twenty cannot be compared
- fewer than TYPES events were compared, or ftrace's text has none of the fields of one of them
"""

import collections
import re
import sys

import ctf

MARK = "sched_get_priority_min"
LINE = re.compile(r".*\[(\d+)\] \S+ +[\d.]+: (\w+):? ?(.*)")
FIELD = re.compile(r"\tfield:(.*);\toffset:(\d+);\tsize:(\d+);\tsigned:(\d);")


def declared(tracefs, event):
    """The names of an event's fields, in the order of ftrace."""
    with open(f"{tracefs}/events/{event.replace(':', '/', 1)}/format") as file:
        names = [re.search(r"(\w+)(\[[^]]*\])?$", d.strip())[1] for d, _, _, _ in FIELD.findall(file.read())]
    # A dynamic event has its location before its own fields.
    return [name for name in names if not name.startswith(("common_", "__probe_"))]


def number(text):
    """The number in ftrace's text: plain, or after a character, a symbol or its hexadecimal. None: no number."""
    if m := re.match(r"(?:'.' )?(-?\d+)(?: \(0x[0-9a-f]+\))?$", text):
        return int(m[1])
    if m := re.match(r"0x([0-9a-f]+)$", text):
        return int(m[1], 16)
    if m := re.match(r"\S* ?\((-?\d+)\)$", text):
        return int(m[1])
    if m := re.match(r"'.' \(0x([0-9a-f]+)\)$", text):
        return int(m[1], 16)
    return None


def theirs(path, fields):
    """CPU, name and fields of each record of ftrace."""
    with open(path, errors="replace") as file:
        for line in file:
            m = None if line.startswith("#") else LINE.match(line)
            if not m:
                continue
            cpu, name, rest = int(m[1]), m[2], " " + m[3]
            if MARK in name:
                yield cpu, MARK, {}
                continue
            found, at = {}, []
            for field in fields.get(name, ()):
                place = rest.find(f" {field}=", at[-1][1] if at else 0)
                if place >= 0:
                    at.append((field, place))
            for (field, begin), (_, end) in zip(at, at[1:] + [("", len(rest))]):
                found[field] = rest[begin + len(field) + 2:end].strip()
            yield cpu, name, found


def ours(path):
    for cpu, _, name, fields in ctf.events(path):
        yield cpu, MARK if MARK in name else name, fields


def by_cpu(records):
    cpus = collections.defaultdict(list)
    for cpu, name, fields in records:
        cpus[cpu].append((name, fields))
    return cpus


def windows(records, marks):
    """Each window from one of the first marks to one of the last: its place, its records, and the number of each name."""
    places = [place for place, (name, _) in enumerate(records) if name == MARK]
    if len(places) != 2 * marks:
        sys.exit(f"{len(places)} marks, not {2 * marks}")
    for begin in range(marks):
        for end in range(marks, 2 * marks):
            window = records[places[begin]:places[end]]
            yield (begin, end), window, collections.Counter(name for name, _ in window)


def agree(found, expected, marks):
    """Two windows with equally many of each name; or those that differ least, and how."""
    theirs = {place: (window, counts) for place, window, counts in windows(expected, marks)}
    best = None
    for place, window, counts in windows(found, marks):
        other, expected_counts = theirs[place]
        if counts == expected_counts:
            return window, other, {}
        differ = {name: counts[name] - expected_counts[name] for name in set(counts) | set(expected_counts)
                  if counts[name] != expected_counts[name]}
        if best is None or len(differ) < len(best[2]):
            best = window, other, differ
    return best


def pairs(ours, theirs, marks, names, more):
    """(name, record, record) of those that belong together: on each CPU, between two marks, of the names of which both
    have equally many. By how many they differ in others is added to `more`."""
    if set(ours) != set(theirs):
        sys.exit(f"CPUs {sorted(ours)}, there {sorted(theirs)}")
    for cpu in ours:
        found, expected, differ = agree(ours[cpu], theirs[cpu], marks)
        more.update(differ)
        have, want = collections.defaultdict(list), collections.defaultdict(list)
        for name, record in found:
            have[name].append(record)
        for name, record in expected:
            want[name].append(record)
        for name in sorted(names - set(differ)):
            for pair in zip(have[name], want[name]):
                yield name, *pair


def numbers(text):
    """The array of numbers that ftrace has written, or None."""
    if m := re.match(r"\{(.*)\}$", text):
        return [number(n) for n in m[1].split(",")] if m[1] else []
    return None


def same(found, expected):
    """Whether a value is what ftrace writes for it; None if that does not say the value."""
    if expected == "<INVALID-SIZE>" or re.match(r"\(0x[0-9a-f]+:", expected):
        # No answer: an array that it cannot show; a text, because the address before it is not the real one.
        return None
    if isinstance(found, bytes) and number(expected) is not None:
        found = int.from_bytes(found[:8], "little")
    if isinstance(found, bytes) and numbers(expected) is not None:
        found = tuple(found)
    if isinstance(found, bytes):
        found = found.split(b"\0")[0].decode(errors="replace")
    if isinstance(found, str):
        return found.strip() == expected or found.strip() == expected.strip('"')
    if isinstance(found, int):
        value = number(expected)
        return None if value is None else (found - value) % (1 << 64) == 0 or (found - value) % (1 << 32) == 0
    values = numbers(expected)
    return None if values is None or None in values else list(found) == values


class Comparison:
    """Result of a comparison of records. `declared` has the names of each event's fields."""

    def __init__(self, declared):
        self.declared, self.wrong = declared, []
        self.records = collections.Counter()
        # Values per field (EVENT.NAME): equal, different, and those that cannot be compared.
        self.equal, self.differ, self.unknown = (collections.Counter() for _ in range(3))

    def record(self, name, found, expected):
        self.records[name] += 1
        for field, value in expected.items():
            if field not in found:
                self.wrong.append(f"{name} has no {field}: {found}")
                continue
            equal = same(found[field], value)
            if equal is None:
                self.unknown[f"{name}.{field}"] += 1
            elif equal:
                self.equal[f"{name}.{field}"] += 1
            else:
                self.differ[f"{name}.{field}"] += 1
                if self.differ[f"{name}.{field}"] <= 2:
                    print(f"# {name}: {field} is {found[field]!r}, in ftrace {value!r}")

    def end(self, types):
        """Prints the result. Ends the program if the records differ, or if fewer than `types` events were compared."""
        compared, wrong = self.equal + self.differ, self.wrong
        print(f"{compared.total()} values of {len(compared)} fields in {self.records.total()} records of "
              f"{len(self.records)} events: {self.differ.total()} differ {dict(self.differ)}")
        print(f"{self.unknown.total()} values could not be compared: {dict(self.unknown)}")
        print(" ".join(sorted(self.records)))
        for field, differ in self.differ.items():
            count = compared[field]
            if differ > max(count // 100, int(count >= 10)):
                wrong.append(f"{field} differs in {differ} of {count} records")
        for name in self.records:
            fields = {f"{name}.{field}" for field in self.declared[name]}
            # Fields that ftrace has printed in no record.
            absent = fields - set(compared) - set(self.unknown)
            self.unknown.update(absent)
            if fields and absent == fields:
                wrong.append(f"no field of {name} is in ftrace's text")
        if len(self.unknown) * 20 > len(compared):
            wrong.append(f"too few fields were compared: not {sorted(self.unknown)}")
        if len(self.records) < types:
            wrong.append(f"{len(self.records)} events were compared, not {types}")
        if wrong:
            sys.exit("\n".join(wrong[:20]))


def main():
    trace, text, (marks, types), tracefs, events = *sys.argv[1:3], map(int, sys.argv[3:5]), sys.argv[5], sys.argv[6:]
    fields = {event.split(":")[1]: declared(tracefs, event) for event in events}
    all_ours, all_theirs = by_cpu(ours(trace)), by_cpu(theirs(text, fields))
    comparison, more = Comparison(fields), collections.Counter()
    for name, found, expected in pairs(all_ours, all_theirs, marks, set(fields), more):
        comparison.record(name, found, expected)
    # A task may move to another CPU between the two tracers' probes: then the sum is right.
    comparison.wrong += [f"{n:+} {name} beside ftrace" for name, n in sorted(more.items()) if n]
    comparison.end(types)


if __name__ == "__main__":
    main()
