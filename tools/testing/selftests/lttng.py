# SPDX-License-Identifier: GPL-2.0
"""Compares what rtrace and LTTng recorded of the same events, between two marks on each CPU.

Usage: lttng.py TRACE LTTNG MARKS AVAILABLE KERNEL

TRACE and LTTNG are what babeltrace2 prints of the two traces (--clock-cycles --no-delta); AVAILABLE
lists all events of rtrace's, KERNEL those with the kernel's fields, a SUBSYSTEM:NAME per line. The marks are as in records.py. Each field that
an event has by the same name in both is compared; system calls have the kernel's names for their
arguments, and events of rtrace-events the kernel's fields, so LTTng may have others; of all other events
each of LTTng's fields must be there. Exit status 1 if a CPU does not have the same events, or a field differs.
"""

import collections
import re
import sys

import records

LINE = re.compile(r"\[\d+\] (?:\S+ )?(\w+): \{ cpu_id = (\d+) \}, (\{.*)")
# A token: opening or closing punctuation, a string, a number, a name.
TOKEN = re.compile(r'\s*(?:([][{}(),=:])|"((?:[^"\\]|\\.)*)"|(-?0x[0-9A-Fa-f]+|-?\d+)|([^][{}(),=:"\s]+))')
CLOSE = {"{": "}", "[": "]"}

# LTTng's names of events that have the kernel's names in rtrace-events.
NAMES = {"printk_console": "console", "skb_consume": "consume_skb", "skb_kfree": "kfree_skb",
         "net_if_receive_skb": "netif_receive_skb", "writeback_folio_wait": "folio_wait_writeback"}
PREFIXES = {"x86_irq_vectors_": "", "power_": "", "net_if_": "netif_", "writeback_": ""}

# Fields of LTTng that rtrace lacks: the name of a number that rtrace has, and the ids of a new process in
# nested namespaces.
ABSENT = {"irq_softirq_entry": {"name"}, "irq_softirq_exit": {"name"}, "irq_softirq_raise": {"name"},
          "sched_process_fork": {"vtids", "_vtids_length"}}
# Fields that differ between the kernel and LTTng: letters instead of LTTng's bits; the address of a text instead
# of the text; a priority with another origin; the address of a result instead of the result.
OTHERWISE = {("rwbs", str), ("s", int), ("prio", int), ("fildes", int)}
# Lengths that the kernel counts with the text's NUL.
WITH_NUL = {("console", "_msg_length")}


def value(tokens, token):
    """The value that begins with this token: an int, a str, a list or a dict. Of an enumeration: its number."""
    mark, text, digits, _ = token
    if digits:
        return int(digits, 16 if "x" in digits else 8 if re.match(r"-?0\d", digits) else 10)
    if mark in CLOSE:
        found = {}
        while (token := next(tokens))[0] != CLOSE[mark]:
            if token[0] == ",":
                continue
            # "name = ", or "[0] = ".
            name = token[3]
            if token[0] == "[":
                name = next(tokens)[2]
                next(tokens)
            next(tokens)
            found[name] = value(tokens, next(tokens))
        return found if mark == "{" else list(found.values())
    if mark == "(":
        while next(tokens)[3] != "container":
            pass
        next(tokens)
        number = value(tokens, next(tokens))
        next(tokens)
        return number
    return text


def fields(text):
    tokens = (match.groups() for match in TOKEN.finditer(text))
    return value(tokens, next(tokens))


def read(path):
    """CPU, name and fields (as text) of each event."""
    with open(path, errors="replace") as file:
        for line in file:
            if m := LINE.match(line):
                yield int(m[2]), records.MARK if m[1] == "syscall_entry_" + records.MARK else m[1], m[3]


def called(name, others):
    """rtrace's name of an event of LTTng. rtrace has the events `others`."""
    name = NAMES.get(name, name)
    if name in others:
        return name
    for theirs, kernels in PREFIXES.items():
        if name.startswith(theirs):
            return kernels + name.removeprefix(theirs)
    return name


def same(found, expected):
    if isinstance(found, int) and isinstance(expected, int):
        # A number may be signed in only one of them, and as long as a register.
        return (found - expected) % (1 << 64) == 0 or (found - expected) % (1 << 32) == 0
    return found == expected


def names_of(path):
    """Of a list of events, SUBSYSTEM:NAME per line."""
    with open(path) as file:
        return {line.strip().partition(":")[2] for line in file}


def main():
    trace, lttng, marks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    available, kernels = map(names_of, sys.argv[4:])
    ours = records.by_cpu(read(trace))
    theirs = records.by_cpu((cpu, called(name, available), text) for cpu, name, text in read(lttng))
    # Every field of rtrace must be in LTTng's record, if LTTng has recorded the event.
    recorded = {name for cpu in theirs.values() for name, _ in cpu}
    both = recorded & available | {records.MARK}
    ours, theirs = ({cpu: [record for record in cpus[cpu] if record[0] in both] for cpu in cpus} for cpus in (ours, theirs))

    more, wrong, unread, absent = (collections.Counter() for _ in range(4))
    compared, values, types = 0, 0, set()
    for name, found, expected in records.pairs(ours, theirs, marks, both, more):
        compared += 1
        types.add(name)
        found, expected = fields(found), fields(expected)
        for field, theirs_ in expected.items():
            if (name, field) in WITH_NUL:
                theirs_ += 1
            if field not in found:
                if name in kernels or name.startswith("syscall_"):
                    absent[f"{name}.{field}"] += 1
                elif field not in ABSENT.get(name, ()):
                    wrong[f"{name} has no {field}"] += 1
            elif name in kernels | {"syscall_exit_pipe2"} and (field, type(found[field])) in OTHERWISE:
                absent[f"{name}.{field}"] += 1
            elif name.startswith("syscall_entry_") and theirs_ == "" and found[field]:
                # LTTng gives up on a path that was not in memory.
                unread[f"{name}.{field}"] += 1
            elif not same(found[field], theirs_):
                wrong[f"{name}: {field} is {found[field]!r}, in LTTng {theirs_!r}"] += 1
            else:
                values += 1
    # A task may move to another CPU between the two tracers' probes: then the sum is right.
    wrong.update({f"{n:+} {name} beside LTTng": 1 for name, n in more.items() if n})
    wrong.update({f"rtrace has no {name}": 1 for name in recorded - both if not name.startswith("lttng_")})
    print(f"{values} values in {compared} events of {len(types)} types are equal, "
          f"{unread.total()} are empty in LTTng {dict(unread)}")
    print("only in LTTng, or different there:", *sorted(absent))
    print(*sorted(types))
    if wrong:
        sys.exit("\n".join(f"{what} ({n} times)" for what, n in wrong.most_common(20)))
    if len(types) < 100:
        sys.exit("too few types of events fired")


main()
