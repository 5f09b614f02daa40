# SPDX-License-Identifier: GPL-2.0
"""Compares what rtrace and ftrace call the values of the same events' fields.

Usage: names.py TRACE TRACEFS EVENT...    (SUBSYSTEM:NAME); exit status 1, and which differ

TRACE is a trace with all these events enabled. ftrace's names are those in its `print fmt`, where the
values are the kernel's: __print_symbolic(REC->state, { 0, "idle" }, ...). It has others for what is
no field, but made of some; and where it does not know the value of an enumerator it shows its name.
"""

import os
import re
import sys

import ctf

PRINT = re.compile(r"__print_(?:symbolic|flags)(?:_u64)?\(")
# The operand: a field, after casts, parentheses and masked bits are removed.
OPERAND = re.compile(r"(?:[( ]|\([\w ]+\))*REC->(\w+)[) ]*(?:&.*)?$")


def split(text):
    """Splits at commas outside of brackets and strings, up to the closing bracket."""
    depth, begin, parts, at = 0, 0, [], 0
    while at < len(text):
        c = text[at]
        if c == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at).end() - 1
        elif c in "({":
            depth += 1
        elif c in ")}":
            if depth == 0:
                break
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return parts + [text[begin:at].strip()]


def value(text):
    """Value of a constant expression of C; None if it has an enumerator."""
    text = re.sub(r"\((?:gfp_t|unsigned|int|long|u\d+|__force|\s|blk_opf_t|vm_flags_t)+\)", "", text)
    text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b", r"\1", text)
    if re.search(r"[^0-9a-fA-FxX()<>|+~&\s-]", text):
        return None
    text = re.sub(r"\b0(\d+)", r"0o\1", text)
    try:
        return int(eval(text, {"__builtins__": {}}))
    except (SyntaxError, TypeError, ValueError):
        return None


def table(parts):
    """{value: name} of { value, "name" }...; None if a value is not known."""
    names = {}
    for part in parts:
        pair = split(part[1:]) if part.startswith("{") else []
        if len(pair) < 2 or not pair[1].startswith('"'):
            continue
        number = value(pair[0])
        if number is None:
            return None
        # C joins adjacent strings.
        name = re.sub(r'"\s+"', "", pair[1]).strip('"')
        if name:
            names.setdefault(number, re.sub(r"\\(.)", r"\1", name))
    return names


def theirs(tracefs, event):
    """{field: tables} of what is printed by name; a table that is not known is None."""
    with open(os.path.join(tracefs, "events", event.replace(":", "/", 1), "format")) as file:
        text = file.read().partition("print fmt:")[2]
    found = {}
    for m in PRINT.finditer(text):
        parts = split(text[m.end():])
        operand = OPERAND.match(parts[0])
        if operand:
            flags = "flags" in m[0]
            found.setdefault(operand[1], []).append(table(parts[2 if flags else 1:]))
    return found


def main():
    trace, tracefs, events = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(trace + "/metadata") as file:
        metadata = ctf.Metadata(file.read())
    ours = {event.name: event for stream in metadata.streams.values() for event in stream.events.values()}
    same, differ, unknown = 0, 0, 0
    for event in events:
        found = ours[event.split(":")[1]]
        for field, tables in sorted(theirs(tracefs, event).items()):
            if None in tables:
                unknown += 1
                continue
            # A value with different names in the two tables has no name.
            expected = tables[0] if all(t == tables[0] for t in tables) else {}
            names = found.labels.get(field, [])
            bits = (1 << 64) - 1
            have = {number & bits: name for number, name in names}
            for width in (64, 32, 16, 8):
                want = {number & (1 << width) - 1: name for number, name in expected.items()}
                if {number & (1 << width) - 1: name for number, name in have.items()} == want:
                    same += 1
                    break
            else:
                differ += 1
                print(f"{event}: {field} has {have}, in ftrace {expected}")
    named = sum(len(event.labels) for event in ours.values())
    print(f"{named} fields with names; of {same + differ + unknown} in ftrace {same} are the same, {differ} differ, "
          f"{unknown} have values that ftrace does not know")
    sys.exit(differ > 0 or same < 150)


main()
