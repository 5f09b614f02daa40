# SPDX-License-Identifier: GPL-2.0
"""Compares what rtrace and ftrace say of the fields of the same events.

Usage: formats.py RTRACE TRACEFS EVENT...    (SUBSYSTEM:NAME); exit status 1, and which differ
"""

import os
import re
import sys

FIELD = re.compile(r"\tfield:(.*);\toffset:\d+;\tsize:(\d+);\tsigned:(\d);")


def fields(path):
    """Name, and whether of variable size, else its size and sign, of each field."""
    with open(path) as file:
        for declaration, size, signed in FIELD.findall(file.read()):
            declaration, size, signed = declaration.strip(), int(size), int(signed)
            name = re.search(r"(\w+)(\[[^]]*\])?(:\d+)?$", declaration)[1]
            if name.startswith("common_"):
                continue
            if "__data_loc" in declaration or "__rel_loc" in declaration or size == 0:
                yield name, "varies"
            # A field that is no number has no sign.
            elif "[" in declaration or size not in (1, 2, 4, 8):
                yield name, size
            else:
                yield name, (size, signed)


# A field of requests to block devices, which only rtrace has.
OWN = "rq"


def main():
    ours, theirs, events = sys.argv[1], sys.argv[2], sys.argv[3:]
    differ = 0
    for event in events:
        path = event.replace(":", "/", 1)
        expected = dict(fields(os.path.join(theirs, "events", path, "format")))
        # The length of an array is a field of its own.
        found = {name: what for name, what in fields(os.path.join(ours, "events", path, "format"))
                 if not (name.startswith("_") and name.endswith("_length"))}
        if event.startswith("block:"):
            found.pop(OWN, None)
        if found != expected:
            differ += 1
            print(f"{event}: {sorted(set(found.items()) - set(expected.items()))} is in ftrace "
                  f"{sorted(set(expected.items()) - set(found.items()))}")
    print(f"{len(events)} events, {differ} differ")
    sys.exit(differ > 0)


main()
