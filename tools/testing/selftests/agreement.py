# SPDX-License-Identifier: GPL-2.0
"""Compares the recipes of `rtrace count` with bpftrace and with a trace, all three at the same time.

Usage: agreement.py map         prints the lines of set_map
       agreement.py program     prints the program for bpftrace
       agreement.py work        runs the workload
       agreement.py table TRACE MAPS BPFTRACE BPFTOOL
                                prints the table; exit status 1 if a row does not agree

Each recipe counts only threads that are called `called`. They start after the last tool is ready and end before the
first one stops, so no operation is cut.
"""

import collections
import json
import os
import re
import subprocess
import sys

import ctf
from rtrace import call, child, join, time

COMM = "called"
FSYNCS = "fsync fdatasync sync syncfs".split()
CALLS = FSYNCS + ["sched_get_priority_min", "write", "clock_nanosleep"]

# Name: the filter of the recipe for the threads, and the program of bpftrace. @NAME has counts, or a histogram.
PROBES = {
    "biolatency": ('comm == "called"', """
tracepoint:block:block_rq_issue { @io[args.dev, args.sector] = nsecs; }
tracepoint:block:block_rq_complete /comm == "called" && @io[args.dev, args.sector]/ {
  @biolatency = hist(nsecs - @io[args.dev, args.sector]); delete(@io, (args.dev, args.sector));
}"""),
    "biosize": ('comm == "called"', """
tracepoint:block:block_rq_issue /args.comm == "called"/ { @biosize = hist(args.bytes); }"""),
    "cpudist": ('prev_comm == "called"', """
tracepoint:sched:sched_switch {
  if (args.prev_comm == "called" && @on[args.prev_pid]) {
    @cpudist = hist(nsecs - @on[args.prev_pid]); delete(@on, args.prev_pid);
  }
  if (args.next_pid != 0) { @on[args.next_pid] = nsecs; }
}"""),
    "fsyncs": ('comm == "called"', """
%s { @fsync[tid] = nsecs; }
%s /comm == "called" && @fsync[tid]/ { @fsyncs[probe] = count(); delete(@fsync, tid); }"""
               % tuple(",".join(f"tracepoint:syscalls:sys_{end}_{call}" for call in FSYNCS)
                       for end in ("enter", "exit"))),
    "hardirqs": ('comm == "called"', """
tracepoint:irq:irq_handler_entry { @irq[cpu, args.irq] = nsecs; }
tracepoint:irq:irq_handler_exit /comm == "called" && @irq[cpu, args.irq]/ {
  @hardirqs[args.irq] = count(); delete(@irq, (cpu, args.irq));
}"""),
    "offcputime": ('next_comm == "called"', """
tracepoint:sched:sched_switch {
  if (args.next_comm == "called" && @off[args.next_pid]) {
    @offcputime = count(); delete(@off, args.next_pid);
  }
  if (args.prev_pid != 0) { @off[args.prev_pid] = nsecs; }
}"""),
    "runqlat": ('next_comm == "called"', """
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @woken[args.pid] = nsecs; }
tracepoint:sched:sched_switch /args.next_comm == "called" && @woken[args.next_pid]/ {
  @runqlat = hist(nsecs - @woken[args.next_pid]); delete(@woken, args.next_pid);
}"""),
    "softirqs": ('comm == "called"', """
tracepoint:irq:softirq_entry { @soft[cpu, args.vec] = nsecs; }
tracepoint:irq:softirq_exit /comm == "called" && @soft[cpu, args.vec]/ {
  @softirqs[args.vec] = count(); delete(@soft, (cpu, args.vec));
}"""),
    "syscount": ('comm == "called"', """
%s /comm == "called"/ { @syscount[probe] = count(); }"""
                 % ",".join(f"tracepoint:syscalls:sys_enter_{call}" for call in CALLS)),
    "syslat": ('comm == "called"', """
%s { @sys[tid] = nsecs; }
%s /comm == "called" && @sys[tid]/ { @syslat[probe] = count(); delete(@sys, tid); }"""
               % tuple(",".join(f"tracepoint:syscalls:sys_{end}_{call}" for call in CALLS)
                       for end in ("enter", "exit"))),
}
PROBES["wakeuptime"] = ('comm == "called"', """
tracepoint:sched:sched_switch { if (args.prev_pid != 0) { @blocked[args.prev_pid] = nsecs; } }
tracepoint:sched:sched_waking /args.comm == "called" && @blocked[args.pid]/ {
  @wakeuptime = count(); delete(@blocked, args.pid);
}""")
# Maps beside the recipes: a histogram of a size, whose buckets must be equal.
OTHERS = {
    "sizes": ("syscalls:syscall_entry_write hist(count)", 'comm == "called"', """
tracepoint:syscalls:sys_enter_write /comm == "called"/ { @sizes = hist(args.count); }"""),
}


def lines():
    """{name: the line of set_map}, of the recipes that consist of one map."""
    text = subprocess.run(["rtrace", "count", "--recipes"], check=True, capture_output=True, text=True).stdout
    recipes = {line.split()[0]: line for line in text.splitlines() if line and line[0] not in "#-"}
    names = re.findall("^# ([a-z0-9]+):", text, re.M)
    print("not compared:", *sorted(set(names) - PROBES.keys()), file=sys.stderr)
    found = {}
    for name, line in recipes.items():
        if name in PROBES:
            narrow = PROBES[name][0]
            line, _, condition = line.partition(" if ")
            found[name] = f"{line} if {condition} && {narrow}" if condition else f"{line} if {narrow}"
    for name, (line, narrow, _) in OTHERS.items():
        found[name] = f"{name} {line} if {narrow}"
    return found


def program():
    texts = [probe for _, probe in PROBES.values()] + [probe for _, _, probe in OTHERS.values()]
    # The probes of an interval are attached last.
    clear = " ".join(f"clear(@{name});" for name in "io on fsync irq off woken soft sys blocked".split())
    return "".join(texts) + '\ninterval:ms:100 { printf("ready\\n"); }\nEND { %s }\n' % clear


def work():
    def called(number):
        with open("/proc/self/comm", "w") as file:
            file.write(COMM)
        fd = os.open(f"file{number}", os.O_CREAT | os.O_RDWR)
        for i in range(100):
            call(i)
            os.write(fd, bytes((i * 37 + number) % 3000))
            if i % 20 == 0:
                [os.fsync, os.fdatasync][i // 20 % 2](fd)
            if i % 10 == 0:
                time.sleep(0.001)
            end = time.monotonic() + 0.002
            while time.monotonic() < end:
                pass
        os.sync()

    for pid in [child(called, number) for number in range(6)]:
        join(pid)


def plain(value):
    return value.split(b"\0")[0].decode() if isinstance(value, bytes) else value


def of_trace(trace, name, line):
    """The counts of a recipe, from the trace: by key without histogram, and the lengths of the durations."""
    words = line.split(" if ")[0].split()
    patterns, words = words[1].split(","), words[2:]
    keys = [word for at, word in enumerate(words) if at and words[at - 1] == "by"]
    begins = [word for at, word in enumerate(words) if at and words[at - 1] == "from"]
    matched = [word for at, word in enumerate(words) if at and words[at - 1] == "match"]
    keys = keys[0].split(",") if keys else []
    begins = begins[0].split(",") if begins else []
    first, _, last = (matched[0] if matched else "tid").partition(":")
    first, last = first.split(","), (last or first).split(",")
    whose = narrow_of(name).split()[0]
    idle = {"cpudist": "prev_tid", "offcputime": "next_tid", "runqlat": "next_tid"}.get(name)

    def matches(event, patterns):
        return any(re.fullmatch(pattern.partition(":")[2].replace("*", ".*"), event) for pattern in patterns)

    waiting, counts = {}, collections.Counter()
    for cpu, _, event, fields in trace:
        # A field of the event has precedence over a context of that name.
        contexts = {"cpu": cpu, "event": event, "comm": fields["procname"], "COMM": fields["procname"]}
        fields = contexts | fields
        if matches(event, patterns):
            wanted = plain(fields[whose]) == COMM and not (idle and fields[idle] == 0)
            key = tuple(fields[name] for name in last) if begins else None
            if wanted and (not begins or waiting.pop(key, None)):
                counts[tuple(plain(fields[key]) for key in keys)] += 1
        if matches(event, begins):
            waiting[tuple(fields[name] for name in first)] = True
    return counts


def narrow_of(name):
    return PROBES[name][0] if name in PROBES else OTHERS[name][1]


def of_maps(path):
    """{name: (losses, {key: count}, {bucket: count})}"""
    maps = {}
    with open(path) as file:
        for text in file.read().split("\n\n"):
            rows = text.splitlines()
            if not rows:
                continue
            name = rows[0].split()[1]
            head = next(at for at, row in enumerate(rows[1:], 1) if "count" in row.split())
            losses = {row.split()[0]: int(row.split()[1]) for row in rows[1:head]}
            places = rows[head].split()
            counts, buckets = collections.Counter(), collections.Counter()
            for row in rows[head + 1:]:
                words = row.split()
                # A key may be a field of that name.
                at = len(places) - 1 - places[::-1].index("count")
                key = [re.sub(r"\\x(..)", lambda m: chr(int(m[1], 16)), word).strip('"') for word in words[:at]]
                count = int(words[at])
                if " hist(" in rows[0]:
                    buckets[int(key.pop().split("..")[0])] += count
                number = re.compile(r"-?\d+|0x[0-9a-f]+")
                counts[tuple(int(word, 0) if number.fullmatch(word) else word for word in key)] += count
            maps[name] = losses, counts, buckets
    return maps


def of_bpftrace(path):
    """{name: ({key: count}, {first number of a bucket: count})}"""
    found = {}
    with open(path) as file:
        for line in file:
            if not line.startswith("{"):
                continue
            data = json.loads(line)
            if data["type"] not in ("map", "hist"):
                continue
            for name, value in data["data"].items():
                if name[1:] not in PROBES | OTHERS:
                    continue
                counts, buckets = collections.Counter(), collections.Counter()
                if data["type"] == "hist":
                    for bucket in value:
                        buckets[max(0, bucket.get("min", 0))] += bucket["count"]
                    counts[()] = sum(buckets.values())
                elif isinstance(value, dict):
                    for key, count in value.items():
                        call = re.fullmatch("tracepoint:syscalls:sys_(enter|exit)_(.*)", key)
                        key = f"syscall_{'entry' if call[1] == 'enter' else 'exit'}_{call[2]}" if call else int(key)
                        counts[key,] = count
                else:
                    counts[()] = value
                found[name[1:]] = counts, buckets
    return found


def power_of_two(number):
    """The bucket of bpftrace."""
    return 1 << (number.bit_length() - 1) if number else 0


def table(trace, maps, bpftrace, bpftool):
    trace = sorted(ctf.events_with_contexts(trace), key=lambda event: event[1])
    maps, theirs = of_maps(maps), of_bpftrace(bpftrace)
    with open(bpftool) as file:
        skipped = sum(program.get("recursion_misses", 0) for program in json.load(file))
    wrong, lacking = [], 0
    print("| recipe | rtrace count | its trace | bpftrace | in another bucket |")
    print("| --- | --- | --- | --- | --- |")
    for name, line in lines().items():
        losses, counts, buckets = maps[name]
        if losses["overflow"] or losses["lacking"] or losses.get("dropped"):
            wrong.append(f"{name}: {losses}")
        traced = of_trace(trace, name, line)
        if traced != counts:
            wrong.append(f"{name}: the trace has {traced - counts} more, and lacks {counts - traced}")
        other, other_buckets = theirs.get(name, (collections.Counter(), collections.Counter()))
        # bpftrace has no comm in its keys, and only some of the calls.
        mine = collections.Counter()
        for key, count in counts.items():
            key = tuple(word for word in key if word != COMM)
            if name not in ("syscount", "syslat") or key[0].split("_", 2)[2] in CALLS:
                # A histogram of bpftrace has no keys here.
                mine[() if set(other) <= {()} else key] += count
        moved = ""
        if buckets:
            folded = collections.Counter()
            for bucket, count in buckets.items():
                folded[power_of_two(bucket)] += count
            moved = (folded - other_buckets).total()
            # Each tool reads the clock by itself, so a duration near a bound may be in the next bucket.
            most = (mine - other).total() + (0 if name in ("biosize", "sizes") else folded.total() // 10 + 2)
            if moved > most:
                wrong.append(f"{name}: {moved} are in another bucket: {folded}, {other_buckets}")
        lacking += (mine - other).total()
        if other - mine:
            wrong.append(f"{name}: bpftrace has {other - mine} more")
        print(f"| {name} | {counts.total()} | {traced.total()} | {other.total()} of {mine.total()} | {moved} |")
    # The kernel skips a BPF program while its CPU is in another one.
    print(f"\nThe kernel skipped {skipped} calls of bpftrace's programs.")
    if lacking > skipped:
        wrong.append(f"bpftrace lacks {lacking}")
    for reason in wrong:
        print(reason)
    return not wrong


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "map":
        print(*lines().values(), sep="\n")
    elif command == "program":
        print(program())
    elif command == "work":
        work()
    elif command == "table":
        sys.exit(0 if table(*arguments) else 1)
    else:
        sys.exit(__doc__)
