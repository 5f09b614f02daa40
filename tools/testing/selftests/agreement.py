# SPDX-License-Identifier: GPL-2.0
"""Compares the recipes of `rtrace count` with bpftrace and with a trace, all three at the same time.

Usage: agreement.py probes      prints the events that recipes define, as `rtrace probe` takes them
       agreement.py map         prints the lines of set_map
       agreement.py program     prints the program for bpftrace
       agreement.py work        runs the workload
       agreement.py table TRACE MAPS BPFTRACE BPFTOOL
                                prints the table; exit status 1 if a row does not agree

Each recipe counts only threads that are called `called`. They start after the last tool is ready and end before the
first one stops, so no operation is cut.
"""

import collections
import functools
import json
import os
import re
import socket
import subprocess
import sys

import ctf
from rtrace import call, child, join, time
from symbols import Symbols

COMM = "called"
# Of the server; only connections to it count.
PORT = 7777
# The functions for funccount and funclatency.
FUNCTIONS = ["vfs_open", "vfs_write", "vfs_fsync_range"]
EXT4 = ["ext4_file_read_iter", "ext4_file_write_iter", "ext4_file_open", "ext4_sync_file"]
VFS = ["vfs_read", "vfs_write", "vfs_fsync", "vfs_open", "vfs_create"]
FSYNCS = "fsync fdatasync sync syncfs".split()
CALLS = FSYNCS + ["sched_get_priority_min", "write", "clock_nanosleep"]

# Name: the filter of the recipe, and the program of bpftrace. @NAME has counts, or a histogram.
PROBES = {
    # The data of a flush have no sectors left, and complete without an issue of their own. With the filter for the
    # threads they would end a duration that another request at this address had begun.
    "biolatency": ('comm == "called" && nr_sector > 0', """
rawtracepoint:block_rq_issue { @io[arg0] = nsecs; }
rawtracepoint:block_rq_complete /comm == "called" && arg2 > 0 && @io[arg0]/ {
  @biolatency = hist(nsecs - @io[arg0]); delete(@io, arg0);
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
PROBES["argdist"] = ('comm == "called"', """
tracepoint:syscalls:sys_enter_write /comm == "called"/ { @argdist = hist(args.count); }""")
PROBES["ext4dist"] = ('comm == "called"', "".join(f"""
kprobe:{function} {{ @ext4[tid, {number}] = nsecs; }}
kretprobe:{function} /comm == "called" && @ext4[tid, {number}]/ {{
  @ext4dist = hist(nsecs - @ext4[tid, {number}]); delete(@ext4, (tid, {number}));
}}""" for number, function in enumerate(EXT4)))
PROBES["funccount"] = ('comm == "called"', """
%s /comm == "called"/ { @funccount[probe] = count(); }""" % ",".join(f"kprobe:{function}" for function in FUNCTIONS))
PROBES["funclatency"] = ('comm == "called"', "".join(f"""
kprobe:{function} {{ @function[tid, {number}] = nsecs; }}
kretprobe:{function} /comm == "called" && @function[tid, {number}]/ {{
  @funclatency[probe] = count(); delete(@function, (tid, {number}));
}}""" for number, function in enumerate(FUNCTIONS)))
PROBES["runqlen"] = ('comm == "called"', """
kprobe:task_tick_fair /comm == "called"/ { @runqlen = hist(((struct rq *)arg0)->nr_running); }""")
PROBES["tcpconnlat"] = (f"dport == {PORT}", """
tracepoint:sock:inet_sock_set_state /args.newstate == 2/ { @tcp[args.skaddr] = nsecs; }
tracepoint:sock:inet_sock_set_state /args.oldstate == 2 && args.newstate == 1 && args.dport == %d && @tcp[args.skaddr]/ {
  @tcpconnlat = hist(nsecs - @tcp[args.skaddr]); delete(@tcp, args.skaddr);
}""" % PORT)
PROBES["vfsstat"] = ('comm == "called"', """
%s /comm == "called"/ { @vfsstat[probe] = count(); }""" % ",".join(f"kprobe:{function}" for function in VFS))
# Words of recipes that the user fills in.
FILLED_IN = {"EVENTS": "syscalls:syscall_entry_write", "FIELD": "count"}
# Recipes whose histograms are of numbers, not of durations: the buckets must be equal.
EXACT = "argdist", "biosize", "runqlen"
# Nanoseconds between events that may happen at the same time. A virtual CPU may be stopped for milliseconds.
CLOSE = 10_000_000


def recipes():
    """{name: (the probes it defines, the line of its map)}, of the recipes in PROBES."""
    text = subprocess.run(["rtrace", "count", "--recipes"], check=True, capture_output=True, text=True).stdout
    found, probes = {}, []
    for line in text.splitlines():
        if line.startswith("-k "):
            probes.append(line[3:])
        elif line and line[0] != "#":
            name = line.split()[0]
            if name in PROBES:
                found[name] = probes, line
            else:
                print("not compared:", name, file=sys.stderr)
            probes = []
    return found


def lines():
    """{name: the line of set_map}"""
    found = {}
    for name, (probes, line) in recipes().items():
        narrow = PROBES[name][0]
        for word, meant in FILLED_IN.items():
            line = line.replace(word, meant)
        events = [re.match(r"\w+", probe)[0] + "__return" * (" -> " in probe) for probe in probes]
        line = line.replace("probes:*", ",".join(f"probe:{event}" for event in events))
        line, _, condition = line.partition(" if ")
        found[name] = f"{line} if {condition} && {narrow}" if condition else f"{line} if {narrow}"
    return found


def program():
    texts = [probe for _, probe in PROBES.values()]
    # The probes of an interval are attached last.
    clear = " ".join(f"clear(@{name});" for name in "io on fsync irq off woken soft sys blocked ext4 function tcp".split())
    return "".join(texts) + '\ninterval:ms:100 { printf("ready\\n"); }\nEND { %s }\n' % clear


def work():
    def called(number):
        with open("/proc/self/comm", "w") as file:
            file.write(COMM)
        fd = os.open(f"file{number}", os.O_CREAT | os.O_RDWR)
        for i in range(100):
            call(i)
            os.write(fd, bytes((i * 37 + number) % 3000))
            os.pread(fd, 100, 0)
            if i % 20 == 0:
                [os.fsync, os.fdatasync][i // 20 % 2](fd)
            if i % 10 == 0:
                time.sleep(0.001)
            end = time.monotonic() + 0.002
            while time.monotonic() < end:
                pass
            if i % 25 == 0:
                socket.create_connection(("127.0.0.1", PORT)).close()
        os.sync()

    server = socket.create_server(("127.0.0.1", PORT), backlog=100)
    for pid in [child(called, number) for number in range(6)]:
        join(pid)
    server.close()


def plain(value):
    return value.split(b"\0")[0].decode() if isinstance(value, bytes) else value


def is_true(fields, name, operator, value):
    """Whether a condition of a filter is true."""
    value = int(value) if value.isdigit() else value.strip('"')
    return plain(fields[name]) == value if operator == "==" else fields[name] > value


def of_trace(trace, name, line):
    """From the trace: the counts of a recipe, by key without histogram; and the number of ends that another CPU reached
    at nearly the same time as their begin.

    The kernel orders these neither: a thread can be woken while it leaves its CPU. So the map may update them in another
    order than that of their times.
    """
    words = line.split(" if ")[0].split()
    patterns, words = words[1].split(","), words[2:]
    keys = [word for at, word in enumerate(words) if at and words[at - 1] == "by"]
    begins = [word for at, word in enumerate(words) if at and words[at - 1] == "from"]
    matched = [word for at, word in enumerate(words) if at and words[at - 1] == "match"]
    keys = keys[0].split(",") if keys else []
    begins = begins[0].split(",") if begins else []
    first, _, last = (matched[0] if matched else "tid").partition(":")
    first, last = first.split(","), (last or first).split(",")
    conditions = [condition.split() for condition in PROBES[name][0].split(" && ")]
    states = {"oldstate": 2, "newstate": 1} if name == "tcpconnlat" else {}
    idle = {"cpudist": "prev_tid", "offcputime": "next_tid", "runqlat": "next_tid"}.get(name)

    def matches(event, patterns):
        return any(re.fullmatch(pattern.partition(":")[2].replace("*", ".*"), event) for pattern in patterns)

    waiting, counts, close = {}, collections.Counter(), 0
    for cpu, time, event, fields in trace:
        # A field of the event has precedence over a context of that name.
        contexts = {"cpu": cpu, "event": event, "comm": fields["procname"], "COMM": fields["procname"]}
        fields = contexts | fields
        if matches(event, patterns):
            wanted = all(is_true(fields, *condition) for condition in conditions)
            wanted = wanted and not (idle and fields[idle] == 0)
            wanted = wanted and all(fields[name] == state for name, state in states.items())
            key = tuple(fields[name] for name in last) if begins else None
            begin = waiting.pop(key, None) if wanted and begins else None
            if begin:
                close += begin[0] != cpu and time - begin[1] < CLOSE
            if wanted and (not begins or begin):
                counts[tuple(shown(key, fields[key]) for key in keys)] += 1
        if matches(event, begins):
            waiting[tuple(fields[name] for name in first)] = cpu, time
    return counts, close


def shown(key, value):
    """The value of a key as the file maps shows it."""
    return symbols().name(value) if key in ("ip", "func") else plain(value)


@functools.cache
def symbols():
    return Symbols()


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


def key_of(key):
    """A key of bpftrace: a probe, as the event of rtrace or the function, or a number."""
    kind, _, rest = key.partition(":")
    if kind == "tracepoint":
        call = re.fullmatch("syscalls:sys_(enter|exit)_(.*)", rest)
        return f"syscall_{'entry' if call[1] == 'enter' else 'exit'}_{call[2]}"
    return rest if rest else int(key)


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
                if name[1:] not in PROBES:
                    continue
                counts, buckets = collections.Counter(), collections.Counter()
                if data["type"] == "hist":
                    for bucket in value:
                        buckets[max(0, bucket.get("min", 0))] += bucket["count"]
                    counts[()] = sum(buckets.values())
                elif isinstance(value, dict):
                    for key, count in value.items():
                        counts[key_of(key),] = count
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
        traced, close = of_trace(trace, name, line)
        if (traced - counts).total() + (counts - traced).total() > min(close, 1 + traced.total() // 100):
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
        if buckets and (other_buckets or not other):
            folded = collections.Counter()
            for bucket, count in buckets.items():
                folded[power_of_two(bucket)] += count
            moved = (folded - other_buckets).total()
            # Each tool reads the clock by itself, so a duration near a bound may be in the next bucket. The duration of
            # a function includes the work of the other tools at its begin or end.
            part = 4 if name == "ext4dist" else 10
            most = (mine - other).total() + (0 if name in EXACT else folded.total() // part + 2)
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
    if command == "probes":
        print(*(probe for probes, _ in recipes().values() for probe in probes), sep="\n")
    elif command == "map":
        print(*lines().values(), sep="\n")
    elif command == "program":
        print(program())
    elif command == "work":
        work()
    elif command == "table":
        sys.exit(0 if table(*arguments) else 1)
    else:
        sys.exit(__doc__)
