# SPDX-License-Identifier: GPL-2.0
"""Compares the lines of `rtrace trace` and of strace, which watched the same run of a program.

Usage: decoded.py PAGE PROGRAM LINES STRACE
       PAGE: Documentation/system-calls.md, whose table says which arguments are the same
       PROGRAM: the path of the program
       LINES, STRACE: the output of rtrace, and that of `strace -f`

Prints each difference; exit status 1 if there is one.
"""

import collections
import os
import re
import sys

# The names of calls in strace, where the kernel's entry points have others.
NAMES = {
    "newstat": "stat", "newfstat": "fstat", "newlstat": "lstat", "newuname": "uname", "sendfile64": "sendfile",
    "umount": "umount2",
}
# Arguments that strace names: its names and those of the kernel.
ARGUMENTS = {"child_stack": "newsp", "flags": "clone_flags", "child_tidptr": "child_tid", "parent_tid": "parent_tid"}


def arguments(text):
    """The arguments of a call: divides the text at commas outside of brackets and quotes."""
    found, depth, quoted, begin, at = [], 0, False, 0, 0
    while at < len(text):
        character = text[at]
        if quoted:
            at += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return found + [text[begin:].strip()] if text else []


def divided(text):
    """Name, arguments and result of a call, or None."""
    match = re.fullmatch(r"(\w+)\((.*)\)\s+= (.*)", text)
    return match and (match[1], arguments(match[2]), match[3])


def of_rtrace(path):
    """The lines by thread, in order."""
    threads = collections.defaultdict(list)
    for line in open(path):
        match = re.match(r"\d\d:\d\d:\d\d\.\d{9} .{10} \S+/(\d+) (.*)", line)
        # (On x86-64 a new thread has the end of the call that made it.)
        if match and not match[2].startswith("<... "):
            # Without the files of descriptors.
            threads[match[1]].append(re.sub(r"(?<![\w/])(-?\d+)<[^>]*>", r"\1", match[2]))
    return threads


def of_strace(path):
    """The same. strace divides a call if a line of another thread comes in between."""
    threads, begun = collections.defaultdict(list), {}
    for line in open(path):
        thread, text = line.rstrip("\n").split(None, 1)
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        if text.endswith(" <unfinished ...>"):
            begun[thread] = text.removesuffix(" <unfinished ...>")
            continue
        if resumed:
            text = begun.pop(thread) + resumed[1]
        # (rtrace prints the signal, and not that the thread stops.)
        if not text.startswith("--- stopped by"):
            threads[thread].append(text)
    return threads


page, program, lines, strace = sys.argv[1:]
known = {line.split()[1] for line in open(os.path.join(os.path.dirname(page), "calls.txt"))}
table = {}
for line in open(page):
    row = re.match(r"\| `(\w+)` \| ([^|]*) \|([^|]*)\|", line)
    if row:
        table[row[1]] = row[2].strip(), "result" in row[3]
assert len(table) >= 60, table
# The calls that this processor has.
table = {name: row for name, row in table.items() if name in known}
rtrace, expected = of_rtrace(lines), of_strace(strace)
faults, seen, differing = [], set(), collections.defaultdict(set)
for thread, wanted in expected.items():
    found = rtrace[thread]
    # Until the program begins, the thread runs strace's code.
    begins = [at for at, line in enumerate(found) if line.startswith("execve(") and program in line]
    if wanted[0].startswith("execve(") and program in wanted[0]:
        found = found[begins[0]:]
    if len(found) != len(wanted):
        faults.append(f"thread {thread}: {len(found)} lines of rtrace, {len(wanted)} of strace")
    for ours, theirs in zip(found, wanted):
        if ours == theirs:
            continue
        our_call, their_call = divided(ours), divided(theirs)
        if not our_call or not their_call or NAMES.get(our_call[0], our_call[0]) != their_call[0]:
            faults.append(f"{thread}: {ours}\n    {theirs}")
            break
        name = our_call[0]
        if name not in table:
            continue
        seen.add(name)
        row, is_result_other = table[name]
        names = [argument.split(": ", 1)[0] for argument in our_call[1]]
        values = dict(argument.split(": ", 1) for argument in our_call[1])
        if "clone" == name:
            pairs = [argument.split("=", 1) for argument in their_call[1]]
            compared = {ARGUMENTS[key]: value for key, value in pairs}
        else:
            compared = dict(zip(names, their_call[1]))
            # Data that the call returned may stand at the end.
            if len(names) < len(their_call[1]) and row != "none" or len(names) > len(their_call[1]) and row == "all":
                faults.append(f"other arguments: {ours}\n    {theirs}")
        same = names if row == "all" else re.findall(r"\w+", row)
        for argument, value in compared.items():
            if values[argument] == value:
                continue
            if argument in same:
                faults.append(f"{argument}: {ours}\n    {theirs}")
            differing[name].add(argument)
        if our_call[2] != their_call[2] and not is_result_other and their_call[2] != "?":
            faults.append(f"result: {ours}\n    {theirs}")
for name in table:
    if name not in seen and NAMES.get(name, name) not in open(strace).read():
        faults.append(f"{name}: the program does not make this call")
print("\n".join(faults))
print(f"{len(seen)} calls of the table; others that differ: " + ", ".join(
    f"{name} ({', '.join(sorted(which))})" for name, which in sorted(differing.items())))
sys.exit(1 if faults else 0)
