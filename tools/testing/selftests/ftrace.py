# SPDX-License-Identifier: GPL-2.0
"""Sets the same filters in rtrace and in ftrace, lets both record at once, and
requires that both picked the same records.

Usage: ftrace.py TRACEFS      the module is loaded; traces are left in the directory; exit status
                              1, and which filter, if the two differ

Several filters are tried at once: so many sessions of rtrace and instances of ftrace record the
same events, each with filters of its own. ftrace records first and stops last, so that all that
rtrace has it must have, too; and the other way round between two moments (of the clock that ftrace
stamps with), before and after which no probe was half-way through.
"""

import collections
import ctypes
import os
import random
import re
import signal
import sys
import time

import ctf
import rtrace

# Filters are written in ftrace's language, with ftrace's names. Each ftrace field maps to rtrace's name, and to
# the number that rtrace adds (its priorities begin at -100, as LTTng's do).
PRIORITY = -100
Field = collections.namedtuple("Field", "name offset numbers texts", defaults=(0, (), ()))
Event = collections.namedtuple("Event", "ftrace rtrace fields filters")

COMMS = ("agree-fifo", "agree-nice", "agree[1]?x", "agree-", "swapper/0", "swapper/1", "python3", "")
PATTERNS = ("agree*", "*-*", "agree-[f-m]*", "agree-[!f-m]*", "*gr*-n*", "?gree-*", "!agree*", "agree-nice",
            "agree\\[1]*", "*", "!*/*", "swapper/?", "sw*0*")
# ftrace, too, can compare the end of a text that has no padding of NULs.
PATHS = PATTERNS[:3] + ("*/true", "*true", "/usr/*", "!*/bin/*", "*[0-9]", "virtio*")
PRIORITIES = (-1, 0, 49, 98, 99, 100, 119, 120, 121, 125, 139, 140, 0x78)
PIDS = (0, 1, 2, 10, 15, 16, 100, 0x40, -1)
SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCHLD, 34, 40, 0)
CALL = "sched_get_priority_min"
EXIT_DEAD, EXIT_ZOMBIE = 0x10, 0x20

# Filters for any event, whatever its fields; each event gets some of them. PID is this process.
ALWAYS = (
    "CPU == 0", "CPU != 0", "CPU < 1", "CPU >= 1", "CPU & CPUS{0-1}", "CPU == CPUS{0-1}", "CPU != CPUS{0-1}",
    "CPU & CPUS{1}", "CPU == CPUS{0}", "CPU != CPUS{1}", "common_pid == 0", "common_pid != PID",
    "common_pid == PID || CPU == 1", "!(common_pid == PID)", "common_pid > -1", "common_pid & 1",
    'COMM ~ "swapper*" && CPU == 1', 'COMM == "agree-fifo"', 'COMM != "agree-fifo" && COMM != "agree-nice"',
)

EVENTS = (
    Event("sched:sched_switch", "sched_switch", {
        "prev_comm": Field("prev_comm", texts=(COMMS, PATTERNS)),
        "prev_pid": Field("prev_tid", numbers=PIDS),
        "prev_prio": Field("prev_prio", PRIORITY, PRIORITIES),
        "prev_state": Field("prev_state", numbers=(0, 1, 2, 0x100, -1)),
        "next_comm": Field("next_comm", texts=(COMMS, PATTERNS)),
        "next_pid": Field("next_tid", numbers=PIDS),
        "next_prio": Field("next_prio", PRIORITY, PRIORITIES),
    }, (
        # && binds stronger than ||.
        'prev_prio < 100 || next_prio == 120 && next_comm ~ "agree*"',
        '(prev_prio < 100 || next_prio == 120) && next_comm ~ "agree*"',
        'next_comm ~ "agree*" && prev_prio < 100 || next_prio == 120',
        'next_comm ~ "agree*" && (prev_prio < 100 || next_prio == 120)',
        '!prev_pid == 0 && next_pid == 0', '!(prev_pid == 0 && next_pid == 0)',
        '!(prev_pid == 0 || next_pid == 0)', '!(!(prev_pid == 0) && !!(next_comm ~ "agree*"))',
        "prev_prio>=120&&next_prio<=120", " ( ( prev_prio == 0x78 ) )\t||\tnext_prio < 0144 ",
        "prev_state & 1", "prev_state & 0x100 || prev_state == 0", "prev_state > -1 && prev_state < 2",
    )),
    Event("sched:sched_waking", "sched_waking", {
        "comm": Field("comm", texts=(COMMS, PATTERNS)),
        "pid": Field("tid", numbers=PIDS),
        "prio": Field("prio", PRIORITY, PRIORITIES),
        "target_cpu": Field("target_cpu", numbers=(0, 1, 2, -1)),
    }, (
        "target_cpu & CPUS{1}", "target_cpu == CPUS{0}", "target_cpu != CPUS{0-1}", "target_cpu & CPUS{0-1}",
        'comm != "agree-fifo" && COMM == "agree-nice"', 'comm ~ "agree*" && COMM !=\'agree-nice\'', "prio < 100",
    )),
    Event("sched:sched_process_exec", "sched_process_exec", {
        "filename": Field("filename", texts=(("/bin/true", "/usr/bin/true"), PATHS)),
        "pid": Field("tid", numbers=PIDS),
        "old_pid": Field("old_tid", numbers=PIDS),
    }, (
        'filename ~ "*/true"', 'filename == "/bin/true"', 'filename ~ "/usr/*" || pid == 1',
        'filename ~ "!/usr*true"',
    )),
    Event("irq:softirq_entry", "irq_softirq_entry", {"vec": Field("vec", numbers=range(10))},
          ("vec == 1 || vec == 7", "vec & 0xc", "vec != 9 && vec > 1", "!(vec < 07)")),
    Event("irq:softirq_raise", "irq_softirq_raise", {"vec": Field("vec", numbers=range(10))},
          ("vec == 1 || vec == 7 && CPU == 0", "(vec == 1 || vec == 7) && CPU == 0", "vec & 6", 'COMM ~ "agree*"')),
    Event("irq:irq_handler_entry", "irq_handler_entry", {
        "irq": Field("irq", numbers=(-1, 0, 4, 16, 24, 25)),
        "name": Field("name", texts=(("timer", "virtio0"), PATHS)),
    }, ('name ~ "virtio*"', "irq > -1", 'irq & 1 || name ~ "*0"')),
    Event("signal:signal_generate", "signal_generate", {
        "sig": Field("sig", numbers=SIGNALS),
        "errno": Field("errno", numbers=(0, 5, -1)),
        "code": Field("code", numbers=(0, -1, -6, 1, 0x80)),
        "comm": Field("comm", texts=(COMMS, PATTERNS)),
        "pid": Field("pid", numbers=PIDS),
        "group": Field("group", numbers=(0, 1)),
        "result": Field("result", numbers=(0, 1, 2)),
    }, (
        "code < 0", "code == -6", "code == 0xfffffffa", "code & 0x80000000", "code >= -1 && code < 1",
        "((sig >= 10 && sig < 15) || sig == 17) && result == 0", "sig == 10 || sig == 12 && group == 0",
        "result == 1", 'comm ~ "agree*" && sig > 33',
    )),
    Event("signal:signal_deliver", "signal_deliver", {
        "sig": Field("sig", numbers=SIGNALS),
        "code": Field("code", numbers=(0, -1, -6, 1, 0x80)),
        "sa_handler": Field("sa_handler", numbers=(0, 1, 0x1000, 0x7fffffff, 0x7f0000000000)),
        "sa_flags": Field("sa_flags", numbers=(0, 0x04000000, 0x10000000, 0xffffffffffffffff)),
    }, ("sa_flags & 0x10000000", "sa_handler > 0x7fffffff", "sa_handler <= 1", "sig == 10 && code == -6")),
    # The argument is an int, but ftrace's field is as long as a register: no negative numbers here.
    Event("syscalls:sys_enter_" + CALL, "syscall_entry_" + CALL, {
        "policy": Field("policy", numbers=(0, 1, 2, 9, 10, 0x10, 99, 127, 128, 0x7fffffff)),
    }, (
        "policy < 10 || policy > 90 && policy < 95", "(policy < 10 || policy > 90) && policy < 95",
        "policy == 0x10 || policy == 010", "policy & 1", "!(policy & 0xf)", "policy == 2147483647",
        "policy >= 0x7fffffff", "policy != 5 && policy <= 7", "policy == 1 || policy == 2 || policy == 3 && CPU == 1",
        "common_pid == PID || policy == 0 && !(policy != 0)",
    )),
    Event("syscalls:sys_exit_" + CALL, "syscall_exit_" + CALL, {
        "ret": Field("ret", numbers=(0, 1, -1, -21, -22, -23, 0x7fffffffffffffff)),
    }, (
        "ret == -22", "ret < 0", "ret >= -21", "ret & 1", "ret & -1", "ret > 0 || ret < -21 && CPU == 0",
        "(ret > 0 || ret < -21) && CPU == 0", "ret == 0x1",
    )),
)

# A line of ftrace: CPU, seconds and microseconds, event. (With the option `fields`, its fields follow.)
RECORD = re.compile(r".{16}-\d+ +\[(\d+)\] \S+ +(\d+)\.(\d{6}): (\w+):")
# Strings stay unchanged, and so do names without an operator.
PREDICATE = re.compile(r"""("[^"]*"|'[^']*')|\b(\w+)(\s*(?:==|!=|<=|>=|<|>|~|&(?!&))\s*)(-?\w+)?""")


def translated(event, filter):
    """The filter with rtrace's names and numbers."""
    def predicate(match):
        text, name, operator, number = match.groups()
        if text or name not in event.fields:
            return match[0]
        field = event.fields[name]
        if number and field.offset:
            digits = number.replace("0", "0o", 1) if re.fullmatch("0[0-7]+", number) else number
            number = str(int(digits, 0) + field.offset)
        return field.name + operator + (number or "")
    return PREDICATE.sub(predicate, filter)


def random_predicate(chance, event):
    name = chance.choice([*event.fields, "CPU"])
    if name == "CPU":
        return chance.choice(ALWAYS[:10])
    field = event.fields[name]
    if field.texts:
        operator = chance.choice(("==", "!=", "~", "~"))
        text = chance.choice(field.texts[operator == "~"])
        return f'{name} {operator} "{text}"'
    # A field with another offset has other bits: no `&`.
    operators = ("==", "!=", "<", "<=", ">", ">=") + ("&",) * (not field.offset)
    number = chance.choice(field.numbers)
    shown = hex(number) if number > 9 and chance.random() < 0.3 else str(int(number))
    return f"{name} {chance.choice(operators)} {shown}"


def random_filter(chance, event, depth=3):
    shape = chance.random()
    if depth == 0 or shape < 0.2:
        return chance.choice(("", "", "", "!")) + random_predicate(chance, event)
    if shape < 0.5:
        return chance.choice(("", "!", "!!")) + "(" + random_filter(chance, event, depth - 1) + ")"
    parts = [random_filter(chance, event, depth - 1) for _ in range(chance.choice((2, 2, 3)))]
    return parts[0] + "".join(chance.choice((" && ", " || ")) + part for part in parts[1:])


def filters(rounds):
    """[{event's name: filter}], of which the first has none."""
    chance = random.Random(13)
    columns = {}
    for i, event in enumerate(EVENTS):
        column = [filter.replace("PID", str(os.getpid())) for filter in event.filters + ALWAYS[i % 3::3]]
        if len(column) > rounds:
            sys.exit(f"{event.ftrace} has {len(column)} filters: more rounds are needed")
        column += [random_filter(chance, event) for _ in range(rounds - len(column))]
        columns[event.ftrace] = column
    return [{}] + [{name: column[i] for name, column in columns.items()} for i in range(rounds)]


class Instance:
    """An instance of ftrace."""

    def __init__(self, tracefs, name):
        self.dir = f"{tracefs}/instances/{name}"
        os.mkdir(self.dir)
        self.write("trace_clock", "mono")
        self.write("buffer_size_kb", 1024)
        self.write("options/fields", 1)

    def write(self, file, text):
        rtrace.write(f"{self.dir}/{file}", text)

    def event(self, event):
        return "events/" + event.ftrace.replace(":", "/")

    def enable(self, event, filter):
        if filter:
            self.write(self.event(event) + "/filter", filter)
        self.write(self.event(event) + "/enable", 1)

    def lost(self):
        lost = 0
        for cpu in rtrace.online():
            stats = dict(re.findall(r"(.*): +(\S+)", rtrace.read(f"{self.dir}/per_cpu/cpu{cpu}/stats")))
            lost += sum(int(stats[key]) for key in ("overrun", "commit overrun", "dropped events"))
        return lost

    def records(self):
        """(event, microseconds, values as rtrace has them), of each record."""
        events = {event.ftrace.split(":")[1]: event for event in EVENTS}
        patterns = {}
        for name, event in events.items():
            format = rtrace.read(f"{self.dir}/{self.event(event)}/format").split("\n\n")[1]
            names = re.findall(r"field:[^;]*\b(\w+)(?:\[\w+\])?;", format)
            patterns[name] = re.compile("".join(
                rf" {field}=(?P<{field}>.*)" if field in event.fields and event.fields[field].texts
                # ftrace shows numbers twice, the second time in parentheses as decimal.
                else rf" {field}=[^(]*\((?P<{field}>-?\d+)\)" for field in names))
        for line in rtrace.read(self.dir + "/trace").splitlines():
            if line.startswith("#"):
                continue
            head = RECORD.match(line)
            match = head and patterns[head[4]].fullmatch(line[head.end():].rstrip())
            if not match:
                sys.exit(f"ftrace's record cannot be parsed: {line}")
            event = events[head[4]]
            values = [int(head[1])]
            for name, field in event.fields.items():
                values.append(match[name] if field.texts else int(match[name]) + field.offset)
            yield event, int(head[2] + head[3]), comparable(event, values)

    def remove(self):
        os.rmdir(self.dir)


class Session:
    """A session of rtrace."""

    def __init__(self, name):
        rtrace.write(rtrace.R + "/create_session", name)
        self.name = name
        self.dir = f"{rtrace.R}/sessions/{name}"
        self.channel = self.dir + "/channels/channel0"
        rtrace.write(self.channel + "/subbuf_size", "128K")
        rtrace.write(self.channel + "/subbuf_count", "8")
        rtrace.write(self.channel + "/mode", "discard")
        rtrace.write(self.dir + "/set_event", " ".join(event.ftrace for event in EVENTS))

    def filter(self, event, filter):
        rtrace.write(self.channel + "/set_filter", f"{event.ftrace} {filter}")

    def enable(self, on):
        rtrace.write(self.dir + "/enable", on)

    def records(self):
        """(event, values) of each record."""
        os.mkdir(self.name)
        for file in ("metadata", *(f"channels/channel0/cpu{cpu}" for cpu in rtrace.online())):
            name = file.replace("channels/", "").replace("/", "_")
            with open(f"{self.dir}/{file}", "rb") as source, open(f"{self.name}/{name}", "wb") as copy:
                copy.write(source.read())
        events = {event.rtrace: event for event in EVENTS}
        for stream in ctf.streams(self.name):
            for _, kind, decoded in stream.events():
                event, fields = events[kind.name], dict(zip(kind.names, decoded))
                values = [stream.cpu]
                for field in event.fields.values():
                    value = fields[field.name]
                    values.append(value.split(b"\0")[0].decode() if field.texts else value)
                yield event, comparable(event, values)
            if stream.discarded or stream.missing:
                sys.exit(f"rtrace lost records of {self.name}")


def comparable(event, values):
    """A zombie may be reaped between the two tracers' probes: here it is one in any case."""
    if "prev_state" in event.fields:
        at = 1 + list(event.fields).index("prev_state")
        if values[at] == EXIT_DEAD:
            values[at] = EXIT_ZOMBIE
    return tuple(values)


def visit_cpus():
    """Runs on each CPU: what could not be preempted there has ended then."""
    for cpu in rtrace.online():
        os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, set(rtrace.online()))
    time.sleep(0.01)


def fire():
    """Lets all events fire, from different tasks, on each CPU."""
    libc = ctypes.CDLL(None)

    def woken(name, cpu, prepare):
        """A task that is woken again and again: its id, the pipe that wakes it, the one by which it answers."""
        to, back = os.pipe(), os.pipe()

        def task():
            os.close(to[1])
            libc.prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
            os.sched_setaffinity(0, {cpu})
            prepare()
            for number in (signal.SIGUSR1, signal.SIGUSR2, 34, 40):
                signal.signal(number, lambda *_: None)
            signal.siginterrupt(signal.SIGUSR1, False)
            while os.read(to[0], 1):
                os.write(back[1], b".")
        pid = rtrace.child(task)
        return pid, to, back

    def fifo(priority):
        return lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))

    cpus = rtrace.online()
    tasks = [
        woken("agree-fifo", cpus[0], fifo(50)),
        woken("agree-nice", cpus[-1], lambda: os.nice(5)),
        woken("agree[1]?x", cpus[-1], fifo(1)),
        woken("agree-", cpus[0], lambda: os.nice(-20)),
    ]

    def round_trip(to, back):
        os.write(to[1], b".")
        os.read(back[0], 1)

    for _ in range(2):
        for pid, to, back in tasks:
            round_trip(to, back)
            for number in SIGNALS[:-1]:
                os.kill(pid, number)
                libc.tgkill(pid, pid, number)
                libc.sigqueue(pid, number, None)
            round_trip(to, back)
    rtrace.calls_at_once(130, cpus)
    rtrace.call(0x7fffffff)
    # The files must be read from the disk again, which causes interrupts.
    rtrace.write("/proc/sys/vm/drop_caches", 1)
    # Bound to a CPU: otherwise a task can be moved after the probe of one tracer, and before that of the other.
    for number, path in enumerate(("/bin/true", "/usr/bin/true", "/bin/false", "/usr/bin/false")):
        os.sched_setaffinity(0, {cpus[number // 2 % len(cpus)]})
        os.waitpid(os.posix_spawn(path, [path], {}), 0)
    os.sched_setaffinity(0, set(cpus))
    for pid, to, _ in tasks:
        os.close(to[1])
    for pid, *_ in tasks:
        rtrace.join(pid)


def main(tracefs):
    rounds = filters(24)
    instances, sessions = [], []
    try:
        for i, round in enumerate(rounds):
            instances.append(Instance(tracefs, f"agree{i}"))
            sessions.append(Session(f"agree{i}"))
            for event in EVENTS:
                filter = round.get(event.ftrace)
                try:
                    instances[i].enable(event, filter)
                    if filter:
                        sessions[i].filter(event, translated(event, filter))
                except OSError as error:
                    sys.exit(f"{event.ftrace}: {filter}: {error}\n{rtrace.read(sessions[i].dir + '/error_log')}")
        visit_cpus()
        for session in sessions:
            session.enable(1)
        visit_cpus()
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        fire()
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        visit_cpus()
        for session in sessions:
            session.enable(0)
        visit_cpus()
        for instance in instances:
            instance.write("tracing_on", 0)
        compare(rounds, instances, sessions, begin, end)
    finally:
        for instance in instances:
            instance.remove()


def compare(rounds, instances, sessions, begin, end):
    fired, discriminate, differ = collections.Counter(), collections.Counter(), 0
    for round, instance, session in zip(rounds, instances, sessions):
        if instance.lost():
            sys.exit("ftrace lost records")
        ours = collections.defaultdict(collections.Counter)
        theirs = collections.defaultdict(collections.Counter)
        meanwhile = collections.defaultdict(collections.Counter)
        for event, values in session.records():
            ours[event.ftrace][values] += 1
        for event, at, values in instance.records():
            theirs[event.ftrace][values] += 1
            if begin < at < end:
                meanwhile[event.ftrace][values] += 1
        for event in EVENTS:
            name = event.ftrace
            if not round:
                fired[name] = meanwhile[name].total()
            elif 0 < meanwhile[name].total() < fired[name]:
                discriminate[name] += 1
            for who, only in (("rtrace", ours[name] - theirs[name]), ("ftrace", meanwhile[name] - ours[name])):
                if only:
                    differ += 1
                    filter = round.get(name, "no filter")
                    print(f"{name}: {filter}\n  rtrace: {translated(event, filter)}\n"
                          f"  {only.total()} picked by {who} only, such as (cpu, {', '.join(event.fields)}) =")
                    for values in list(only)[:3]:
                        print(f"  {values}")
    for event in EVENTS:
        name = event.ftrace
        print(f"{name}: fired {fired[name]}; {discriminate[name]} filters picked some, not all")
        if not fired[name]:
            sys.exit(f"{name} did not fire")
    if discriminate.total() < (len(rounds) - 1) * len(EVENTS) // 4:
        sys.exit("hardly a filter made a difference")
    if differ:
        sys.exit(f"{differ} differences")


if __name__ == "__main__":
    main(*sys.argv[1:])
