# SPDX-License-Identifier: GPL-2.0
"""Compares what rtrace and LTTng recorded of the same events, between two marks on each CPU.

Usage: lttng.py TRACE LTTNG MARKS KERNEL

TRACE and LTTNG are what babeltrace2 prints of the two traces (--clock-cycles --no-delta); KERNEL lists
the events of rtrace-events, a SUBSYSTEM:NAME per line. The marks are as in records.py. Each field that
an event has by the same name in both is compared; system calls have the kernel's names for their
arguments, and events of rtrace-events the kernel's fields, so LTTng may have others; of all other events
each of LTTng's fields must be there. Exit status 1 if a CPU does not have the same events, or a field differs.
"""

import collections
import re
import sys

import records

LINE = re.compile(r"\[\d+\] (?:\S+ )?(\w+): \{ cpu_id = (\d+) \}, (\{.*)")
# What opens and closes, a string, a number, a name.
TOKEN = re.compile(r'\s*(?:([][{}(),=:])|"((?:[^"\\]|\\.)*)"|(-?0x[0-9A-Fa-f]+|-?\d+)|([^][{}(),=:"\s]+))')
CLOSE = {"{": "}", "[": "]"}

# What LTTng calls events that have the kernel's names in rtrace-events.
NAMES = {"skb_consume": "consume_skb", "skb_kfree": "kfree_skb", "net_if_receive_skb": "netif_receive_skb"}
PREFIXES = {"x86_irq_vectors_": "", "power_": "", "net_if_": "netif_", "writeback_": ""}

# Fields of LTTng's that rtrace does not have: the name of a number that it does have, and what a new
# process is called in namespaces inside its own.
ABSENT = {"irq_softirq_entry": {"name"}, "irq_softirq_exit": {"name"}, "irq_softirq_raise": {"name"},
          "sched_process_fork": {"vtids", "_vtids_length"}}
# Fields that say something else in the kernel than in LTTng: letters, LTTng bits; where a text is, LTTng
# the text; a priority that LTTng counts from elsewhere; where calls leave something, LTTng what they leave.
OTHERWISE = {("rwbs", str), ("s", int), ("prio", int), ("fildes", int)}


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
    """What rtrace, which has these events, calls LTTng's."""
    if name in others:
        return name
    for theirs, kernels in PREFIXES.items():
        if name.startswith(theirs):
            return kernels + name.removeprefix(theirs)
    return NAMES.get(name, name)


def same(found, expected):
    if isinstance(found, int) and isinstance(expected, int):
        # A number may be signed here and not there, and as long as a register.
        return (found - expected) % (1 << 64) == 0 or (found - expected) % (1 << 32) == 0
    return found == expected


def main():
    trace, lttng, marks, kernel = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    with open(kernel) as file:
        kernels = {line.strip().partition(":")[2] for line in file}
    ours, theirs = records.by_cpu(read(trace)), records.by_cpu(read(lttng))
    if set(ours) != set(theirs):
        sys.exit(f"CPUs {sorted(ours)}, in LTTng {sorted(theirs)}")
    names = {name for records_ in ours.values() for name, _ in records_}
    theirs = {cpu: [(called(name, names), text) for name, text in records_] for cpu, records_ in theirs.items()}
    both = names & {name for records_ in theirs.values() for name, _ in records_}

    more, wrong, unread, absent = (collections.Counter() for _ in range(4))
    compared, values, types = 0, 0, set()
    for cpu in ours:
        mine, other, differ = records.agree([r for r in ours[cpu] if r[0] in both],
                                            [r for r in theirs[cpu] if r[0] in both], marks)
        more.update(differ)
        have, want = collections.defaultdict(list), collections.defaultdict(list)
        for name, text in mine:
            have[name].append(text)
        for name, text in other:
            want[name].append(text)
        for name in set(have) - set(differ):
            types.add(name)
            for found, expected in zip(have[name], want[name]):
                compared += 1
                found, expected = fields(found), fields(expected)
                for field, value_ in expected.items():
                    if field not in found:
                        if name in kernels or name.startswith("syscall_"):
                            absent[f"{name}.{field}"] += 1
                        elif field not in ABSENT.get(name, ()):
                            wrong[f"{name} has no {field}"] += 1
                    elif name in kernels | {"syscall_exit_pipe2"} and (field, type(found[field])) in OTHERWISE:
                        absent[f"{name}.{field}"] += 1
                    elif name.startswith("syscall_entry_") and value_ == "" and found[field]:
                        # A path that was not in memory: LTTng gives up.
                        unread[f"{name}.{field}"] += 1
                    elif not same(found[field], value_):
                        wrong[f"{name}: {field} is {found[field]!r}, in LTTng {value_!r}"] += 1
                    else:
                        values += 1
    # A task may go to another CPU between the two tracers' probes: then the sum is right.
    wrong.update({f"{n:+} {name} beside LTTng": 1 for name, n in more.items() if n})
    print(f"{values} values in {compared} events of {len(types)} types are equal, "
          f"{unread.total()} are empty in LTTng {dict(unread)}")
    print("of LTTng only, or otherwise:", *sorted(absent))
    print(*sorted(types))
    if wrong:
        sys.exit("\n".join(f"{what} ({n} times)" for what, n in wrong.most_common(20)))
    if len(types) < 100:
        sys.exit("too few types of events fired")


main()
