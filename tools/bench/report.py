#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: report.py DIR [DOCUMENT]

Of what scripts/bench has measured into DIR: prints the tables, writes DIR/bench.json and
the charts DIR/*.svg, and writes the tables as DOCUMENT.

Instructions are measured twice, and are a result only if both agree: what DIR/again has is the
second measurement of the parts of TWICE.
"""

import json
import os
import statistics
import sys
from html import escape

PARTS = ("instructions", "choices", "stacks", "ways", "numbers", "calls", "workloads", "counting", "disk", "network", "mapped", "foreign", "snapshot", "scaling", "primitives", "handover", "wall", "reading")
TWICE = ("instructions", "choices", "ways", "numbers", "calls", "scaling", "primitives", "handover")
HEAD = """<!-- SPDX-License-Identifier: GPL-2.0 -->

# Performance: the tables

`scripts/bench --document` writes this file. [performance.md](performance.md) says how each figure
is measured, and what it means.

"""
HEAD_ARM64 = """<!-- SPDX-License-Identifier: GPL-2.0 -->

# Performance: the tables for arm64

`ARCH=arm64 scripts/bench --document` writes this file. [performance.md](performance.md) says how each figure
is measured, and what it means. [performance-tables.md](performance-tables.md) has the figures of x86-64.

"""
SITES = {"softirq_entry": "softirq_entry", "irq_handler_entry": "irq_handler_entry",
         "sched_switch": "sched_switch", "getppid": "getppid() entry + exit"}
US = "rtrace"
ROUNDS = "The median of some rounds; ±: half the distance between them, where that is much."
APART = "a ≠ b: two measurements, which differ: not a result."


class Apart:
    """Measurements of the same that differ."""

    def __init__(self, *values):
        self.values = values

    def __str__(self):
        return " ≠ ".join(map(number, self.values))


def agreed(*values):
    """The common value, if the values differ by at most one in the last shown digit, or in the third
    digit of longer numbers. Tables are compared item by item."""
    first = values[0]
    if isinstance(first, dict):
        return {key: agreed(*(value[key] for value in values)) for key in first}
    if isinstance(first, bool) or not isinstance(first, (int, float)):
        return first
    step = 0.1 if abs(first) < 100 else 10 ** (len(str(int(abs(first)))) - 3)
    return first if max(values) - min(values) <= step * 1.001 else Apart(*values)


def number(value):
    if value is None:
        return "-"
    if isinstance(value, Apart):
        return str(value)
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def against(value, ours):
    """A figure and how many times ours it is."""
    if value is None or not ours or value == ours or isinstance(value, Apart) or isinstance(ours, Apart):
        return number(value)
    return f"{number(value)} ({value / ours:.{1 if value > 0.95 * ours else 2}f}x)"


def table(title, head, rows, note=""):
    """Markdown that is legible as it is."""
    note = "\n\n".join(filter(None, [note, APART if any("≠" in str(cell) for row in rows for cell in row) else ""]))
    cells = [head, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(head))]
    line = lambda row: "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join([f"**{title}**", "", line(head), rule, *map(line, rows), *(["", note] if note else []), ""])


def chart(path, title, unit, bars):
    """Horizontal bars: (label, value, ours). The longest fills the width."""
    bars = [bar for bar in bars if not isinstance(bar[1], Apart)]
    width, label, height = 900, 330, 22
    longest = max((value for _, value, _ in bars), default=0) or 1
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{60 + height * len(bars)}" '
           'font-family="sans-serif" font-size="13">',
           f'<rect width="100%" height="100%" fill="white"/>'
           f'<text x="10" y="24" font-size="16">{escape(title)}</text>']
    for i, (name, value, ours) in enumerate(bars):
        y = 44 + i * height
        length = (width - label - 90) * value / longest
        out.append(f'<text x="{label - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
                   f'<rect x="{label}" y="{y}" width="{max(length, 1):.1f}" height="{height - 5}" '
                   f'fill="{"#2a7f3f" if ours else "#8a8f98"}"/>'
                   f'<text x="{label + length + 6:.1f}" y="{y + 14}">{number(value)}</text>')
    out.append(f'<text x="10" y="{52 + height * len(bars)}" fill="#666">{escape(unit)}</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out))


def spread(rounds):
    """Half of it, if it is more than a twentieth of what is shown."""
    half = (max(rounds) - min(rounds)) / 2
    return f" ±{number(half)}" if half > abs(statistics.median(rounds)) / 20 else ""


def instructions(data, charts):
    tracers = data["tracers"]
    ours = tracers[US]
    yield table("Instructions per event: discard / overwrite", ["", *SITES.values()], [
        ["an empty probe", *(number(data["firing"][site]["empty-probe"]) for site in SITES)],
        *([label, *(f"{number(of[site]['discard'])} / {against(of[site]['overwrite'], ours[site]['overwrite'])}"
                    for site in SITES)] for label, of in tracers.items())])
    for key, title in (("dropped", "Instructions of an event that finds the buffer full (discard)"),
                       ("paused", "Instructions of an event while the trace is stopped"),
                       ("bytes", "Bytes per event in the buffer")):
        yield table(title, ["", *SITES.values()], [
            [label, *(against(of[site][key], ours[site][key]) for site in SITES)]
            for label, of in tracers.items()])
    for site in SITES:
        charts(f"instructions-{site}", f"Instructions per event: {SITES[site]}", "instructions, overwrite mode",
               [(label, of[site]["overwrite"], label.startswith(US)) for label, of in tracers.items()])


CHOICES = {"all": "every event", "refused": "refused by a filter", "accepted": "accepted by it",
           "of-another": "of another task", "tid": "with tid", "tid-comm": "with tid and comm",
           "twice": "two sessions"}


def choices(data, charts):
    tracers = data["tracers"]
    for site in tracers[US]:
        ours = tracers[US][site]
        yield table(f"Instructions of an event where a choice was made: {SITES[site]}", ["", *CHOICES.values()], [
            [label, *(against(of[site][name], ours[name]) for name in CHOICES)] for label, of in tracers.items()])
    yield table("Instructions that a context adds to a record that has tid",
                ["", US], [[name, number(value)] for name, value in data["contexts"].items()])
    stacks = data["stacks"]
    yield table("Instructions that the kernel's call stack adds to softirq_entry", ["", "instructions"],
                [[label, against(value, stacks[US])] for label, value in stacks.items() if value])


def stacks(data, charts):
    of = data["stacks"]
    yield table("A program's call stack of 20 functions, as a part of a record", ["", "instructions", "bytes", "whole stacks"],
                [[label, against(values["instructions"], of[US]["instructions"]), against(values["bytes"], of[US]["bytes"]),
                  f"{100 * values['whole']:.1f} %"] for label, values in of.items()],
                "The unwind tables are loaded. Whole stacks: those of python3, at stops by a timer, that reach its first function. "
                "perf with frame pointers follows what it takes for them. With dwarf it copies registers and 8 KiB of the "
                "stack; perf script finds the functions later.")


WAYS = {"tracepoint": "a tracepoint with two numbers", "called": "a function is called, two numbers", "returned": "it returns, one"}


def ways(data, charts):
    # Only probes reach functions.
    ours = data["ways"]["rtrace, probes"] | data["ways"][US]
    yield table("Instructions of an event that rtrace has no probe of its own for", ["", *WAYS.values()],
                [[way, *(against(of.get(what), ours[what]) for what in WAYS)] for way, of in data["ways"].items()])


NUMBERS = {"all": "softirq_entry: a count", "integer": "softirq_entry: a count by vec", "comm": "softirq_entry: a count by the thread's name",
           "two": "softirq_entry: a count by vec and thread", "sum": "softirq_entry: a sum by thread",
           "hist": "softirq_entry: a histogram of vec", "next-comm": "sched_switch: a count by the next thread's name",
           "next-tid": "sched_switch: a count by the next thread", "filtered": "the same by name, with a filter that accepts it",
           "call": "getppid(): a count by the thread's name", "calls": "all system calls: a count by name or number",
           "call-duration": "getppid(): a histogram of its duration",
           "event": "softirq_entry: a count by the event's name",
           "off-cpu": "sched_switch: the time off a CPU, by name", "stack": "sched_switch: a count by the kernel's call stack",
           "off-cpu-stack": "sched_switch: the time off a CPU, by the kernel's call stack",
           "softirq": "softirq_entry: the time since the last one of the CPU",
           "two-ids": "sched_switch: the time off a CPU, found by two numbers"}


def numbers(data, charts):
    maps = data["maps"]
    yield table("Instructions of an update of a sum by key", ["", *maps],
                [[what, *(against(of.get(name), maps[US].get(name)) for of in maps.values())] for name, what in NUMBERS.items()],
                "BPF: programs on libbpf with a per-CPU hash, as bpftrace compiles them. getppid() and the time off a CPU are "
                "two updates: the begin and the end. LTTng's maps have no keys from fields or contexts.")


CALLS = {"getppid": "getppid()", "write": "write() of 8 bytes", "recvfrom": "recvfrom() without an address",
         "sendto": "sendto() to an IPv4 address", "poll": "poll() of 1 descriptor",
         "select": "select() of 1 descriptor of 1000", "writev": "writev() of 2 buffers",
         "access": "access() of a path of 26 characters",
         # arm64 has these instead of poll, select and access.
         "ppoll": "ppoll() of 1 descriptor", "pselect6": "pselect6() of 1 descriptor of 1000",
         "faccessat": "faccessat() of a path of 26 characters"}


def calls(data, charts):
    tracers = data["tracers"]
    yield table("Instructions that tracing adds to a system call: its entry and its exit", ["", *tracers],
                [[what, *(against(of[name], tracers[US][name]) for of in tracers.values())]
                 for name, what in CALLS.items() if name in tracers[US]],
                "rtrace and LTTng also record the data that arguments point to, and ftrace records paths and buffers. "
                "perf and the BPF program record six registers and the result.")


KINDS = {"recorder": "flight recorder", "disk": "to disk"}


def workloads(data, charts):
    for mode, kind in KINDS.items():
        if mode in data:
            yield from workloads_of(kind, data[mode]["operations"], data[mode]["runs"], charts)


def workloads_of(kind, operations, runs, charts, what="tracing"):
    none = {name: run for name, run in runs["none"].items() if "error" not in run}
    noise = {name: max(map(abs, run["of"])) for name, run in none.items()}
    labels = [label for label in runs if label != "none"]

    def added(label, name):
        run = runs[label][name]
        return None if "error" in run else run["added"]

    def cell(label, name):
        run = runs[label][name]
        if "error" in run:
            return "failed"
        ours = added(US, name)
        # A cost below the noise has no ratio.
        text = against(added(label, name), ours if ours and ours > 2 * noise[name] else None)
        lost = run.get("lost")
        return text + spread(run["of"]) + (f", {number(lost)} lost" if lost else "")

    yield table(f"Instructions that {what} adds to an operation, {kind}", ["", f"without {what}", "noise", *labels], [
        [f"{name} ({operations[name]})", number(none[name]["bare"]), number(noise[name]),
         *(cell(label, name) for label in labels)] for name in none], ROUNDS)
    for name in none:
        bars = [(label, max(added(label, name) or 0, 0), label == US) for label in labels]
        charts(f"workload-{kind}-{name}".replace(" ", "-"), f"{name}: added, {kind}",
               f"instructions per {operations[name]}", bars)


TABLES = {"integer": "a count by a number", "event": "a count by the event's name",
          "off-cpu": "the time off a CPU, by name; with the begins"}
COUNTED = {"calls": "system calls by name or number", "off-cpu": "the time off a CPU by name"}


def counting(data, charts):
    memory = data.get("memory")
    workloads = {name: of for name, of in data.items() if name != "memory"}
    for case, kind in COUNTED.items():
        runs = {}
        for name, of in workloads.items():
            for label, run in of["cases"][case].items():
                runs.setdefault(label, {})[name] = run
        if runs:
            operations = {name: of["operation"] for name, of in workloads.items()}
            yield from workloads_of(kind, operations, runs, charts, "counting")
    if memory:
        yield table(f"Kernel memory of a map with room for {memory['size']} keys, MiB, with 1 CPU",
                    ["", *memory["tracers"]],
                    [[what, *(number(of.get(case)) for of in memory["tracers"].values())]
                     for case, what in TABLES.items()])


def three(value):
    """A figure's first three digits."""
    if value is None or isinstance(value, Apart) or value < 1000:
        return value
    return round(value, 3 - len(str(int(value))))


def rate(tracers, label):
    value, ours = tracers[label]["rate"], tracers[US]["rate"]
    return number(value) if label == US or value is None else f"{number(value)} ({value / ours:.2f}x)"


def disk(data, charts):
    tracers = data["tracers"]
    # The writer is measured twice.
    writers = {label: of["writer_per_mib"] and three(agreed(*of["writer_per_mib"])) for label, of in tracers.items()}

    def per_event(label):
        writer = writers[label]
        return None if writer is None or isinstance(writer, Apart) else writer * tracers[label]["bytes"] / (1 << 20)

    yield table("To disk: the highest rate without loss, and what writing costs",
                ["", "events per million instructions", "instructions of the writer per MiB",
                 "per event", "bytes per event"],
                [[label, rate(tracers, label), against(writers[label], writers[US]),
                  against(per_event(label), per_event(US)), number(of["bytes"])]
                 for label, of in tracers.items()],
                f"A rate is one of a scale whose steps are {data['step']} apart.")
    if "at_lttng" in data:
        at = data["at_lttng"]
        yield table(f"Lost at the rate at which LTTng begins to lose ({number(at['rate'])} events per million instructions)",
                    ["", "events", "lost"],
                    [[label, number(of["events"]), number(of["lost"])] for label, of in at["tracers"].items()])
    yield table("Moving a packet to a file", ["", "instructions per MiB"],
                [[way, number(three(agreed(*values)))] for way, values in data["ways"].items()])


def middle(rounds, ours):
    """The median of rounds, against that of ours, and how far they are apart."""
    ours = three(statistics.median(ours))
    return against(three(statistics.median(rounds)), ours) + spread(rounds)


def network(data, charts):
    tracers = data["tracers"]
    # Sender and receiver share the softirqs: only the sum is comparable.
    sums = {label: list(map(sum, zip(of["sender"], of["receiver"]))) for label, of in tracers.items()}
    yield table("Over loopback: the highest rate without loss, and what sending and receiving cost",
                ["", "events per million instructions", "instructions per MiB, both sides", "the sender's",
                 "the receiver's", "bytes per event"],
                [[label, rate(tracers, label), middle(sums[label], sums[US]), middle(of["sender"], of["sender"]),
                  middle(of["receiver"], of["receiver"]), number(of["bytes"])] for label, of in tracers.items()],
                f"A rate is one of a scale whose steps are {data['step']} apart. {ROUNDS}")
    charts("network", "Over loopback, both sides", "instructions per MiB",
           [(label, three(statistics.median(rounds)), label == US) for label, rounds in sums.items()])


def mapped(data, charts):
    tracers = data["tracers"]
    ours = next(iter(tracers.values()))
    yield table("By mmap: instructions of the reader per MiB", ["", "to a file", "to /dev/null", "bytes per event"],
                [[label, *(middle(of[to], ours[to]) for to in ("file", "nowhere")), number(of["bytes"])]
                 for label, of in tracers.items()], ROUNDS)


def foreign(data, charts):
    rows = []
    for name, trace in data["traces"].items():
        ours = trace["readers"]["rtrace report"]
        rows += [[f"{name}, {trace['events']:,} events", reader, against(value, ours)]
                 for reader, value in trace["readers"].items()]
    yield table("Reading traces of other tracers: instructions per event", ["trace", "reader", "instructions"], rows,
                "On one CPU, with the kernel's instructions. The start of the reader and the description of the trace are "
                "included.")


def snapshot(data, charts):
    tracers = data["tracers"]
    size, count = data["memory"]
    millions = {label: [ns / 1e6 for ns in of["ns"]] for label, of in tracers.items()}
    yield table(f"A snapshot of {size * count >> 20} MiB in overwrite mode",
                ["", "million instructions until it is there", "MiB in files", "events fired meanwhile", "lost"],
                [[label, middle(millions[label], millions[US]), number(of["mib"]), number(of["fired"]),
                  number(of["lost"])] for label, of in tracers.items()],
                f"The last two: while {data['rate']} events come each million instructions. {ROUNDS}")


def scaling(data, charts):
    cpus = sorted(data, key=int)
    labels = data[cpus[0]]["tracers"]
    yield table("Instructions per event with so many CPUs firing at once (sched_switch, overwrite)", ["", *cpus],
                [[label, *(number(data[n]["tracers"][label]) for n in cpus)] for label in labels],
                "Instructions of the firing CPU itself, without the end of a packet.")


def primitives(data, charts):
    for title, rows in data["tables"].items():
        yield table(title, ["", "instructions"], [[name, number(value)] for name, value in rows.items()])


handover = primitives


def wall(data, charts):
    ours = data["tracers"][US]
    yield table("Wall time per event, ns, 2 CPUs at once (emulated, and noisy: median of "
                f"{data['rounds']})", ["", *SITES.values()],
                [[label, *(against(of[site], ours[site]) for site in SITES)] for label, of in data["tracers"].items()])


def reading(data, charts):
    million = lambda rate: "-" if rate is None else f"{rate / 1e6:.{2 if rate < 1e6 else 1}f}"
    for name, trace in data.items():
        tools = trace["tools"]
        counts = sorted({int(cpus) for of in tools.values() for cpus in of})
        yield table(f"Reading a trace of {trace['events']:,} events ({name}): millions of events per second", [
            "", *(f"{cpus} CPU{'s' if cpus > 1 else ''}" for cpus in counts), "CPU time, ns per event", "memory, MiB"], [
            [tool, *(million(of.get(str(cpus), {}).get("rate")) for cpus in counts), number(of[min(of)]["cpu"]),
             number(max(run["memory"] for run in of.values()) / 2**20)] for tool, of in tools.items()],
            "Of several runs the shortest; CPU time of the fewest CPUs measured. babeltrace2 uses one CPU.")


def measured(path):
    with open(path) as file:
        return json.load(file)


def load(directory):
    """Part by part, what was measured; of the parts of TWICE what both measurements say."""
    def part(name):
        first = measured(f"{directory}/{name}.json")
        again = f"{directory}/again/{name}.json"
        if name.split("-")[0] not in TWICE:
            return first
        if not os.path.exists(again):
            sys.exit(f"{name} was measured once: that is no result (scripts/bench --only {name.split('-')[0]})")
        return agreed(first, measured(again))

    there = sorted(name.removesuffix(".json") for name in os.listdir(directory) if name.endswith(".json"))
    data = {}
    for name in there:
        # PART, or PART-VARIANT if a guest measures one variant of it.
        of, _, variant = name.partition("-")
        if of in PARTS and variant:
            data.setdefault(of, {})[variant] = part(name)
        elif of in PARTS:
            data[of] = part(name)
    return {name: data[name] for name in PARTS if name in data}


def versions(directory, data):
    with open(f"{directory}/versions") as file:
        lines = file.read().split("\n")
    for part in data.values():
        # The measurements of a part's variants, if it has any.
        for measurement in (part, *part.values()):
            if isinstance(measurement, dict):
                lines += [line.replace("\t", " ") for line in measurement.get("versions", [])]
    return list(dict.fromkeys(filter(None, lines)))


def real_hardware(document):
    """The last section of DOCUMENT, which scripts/bench native writes; empty if there is none."""
    if not os.path.exists(document):
        return []
    with open(document) as file:
        _, title, section = file.read().partition("## Real hardware\n")
    return [title + section] if title else []


def main(directory, document=None):
    data = load(directory)
    made = versions(directory, data)
    with open(f"{directory}/bench.json", "w") as file:
        json.dump({"versions": made, **data}, file, indent=1, default=lambda apart: {"apart": apart.values})
    text = []
    for part, values in data.items():
        text += globals()[part](values, lambda name, *rest: chart(f"{directory}/{name}.svg", *rest))
    text.append("Measured with: " + ", ".join(made) + ".\n")
    print("\n".join(text))
    if document:
        text += real_hardware(document)
        with open(document, "w") as file:
            file.write((HEAD_ARM64 if "arm64" in document else HEAD) + "\n".join(text))


if __name__ == "__main__":
    main(*sys.argv[1:])
