#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: report.py DIR [DOCUMENT]

Of what scripts/bench has measured into DIR: prints the tables, writes DIR/bench.json and
the charts DIR/*.svg, and puts the tables between the marks of DOCUMENT.
"""

import json
import os
import sys
from html import escape

PARTS = ("instructions", "workloads", "disk", "scaling", "primitives", "wall")
BEGIN, END = "<!-- scripts/bench writes from here -->", "<!-- to here -->"
SITES = {"softirq_entry": "softirq_entry", "irq_handler_entry": "irq_handler_entry",
         "sched_switch": "sched_switch", "getppid": "getppid() entry + exit"}
US = "rtrace"


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def against(value, ours):
    """A figure and how many times ours it is."""
    if value is None or not ours or value == ours:
        return number(value)
    return f"{number(value)} ({value / ours:.{1 if value > 0.95 * ours else 2}f}x)"


def table(title, head, rows, note=""):
    """Markdown that is legible as it is."""
    cells = [head, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(head))]
    line = lambda row: "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join([f"**{title}**", "", line(head), rule, *map(line, rows), *(["", note] if note else []), ""])


def chart(path, title, unit, bars):
    """Horizontal bars: (label, value, ours). The longest fills the width."""
    width, label, height = 900, 330, 22
    longest = max(value for _, value, _ in bars) or 1
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


def workloads(data, charts):
    runs = data["runs"]
    none = {name: run for name, run in runs["none"].items() if "error" not in run}
    for kind in ("flight recorder", "to disk"):
        labels = [label for label in runs if label.endswith(kind)]
        short = {label: label.split(",")[0] for label in labels}
        us = next(label for label in labels if short[label] == US)

        def added(label, name):
            run = runs[label][name]
            return None if "error" in run else run["added"]

        noise = {name: max(map(abs, run["of"])) for name, run in none.items()}

        def cell(label, name):
            if "error" in runs[label][name]:
                return "failed"
            ours = added(us, name)
            # Of what is lost in the noise there is no ratio.
            text = against(added(label, name), ours if ours and ours > 2 * noise[name] else None)
            lost = runs[label][name].get("lost")
            return text + (f", {number(lost)} lost" if lost else "")

        rows = [[f"{name} ({data['operations'][name]})", number(none[name]["bare"]),
                 number(noise[name]),
                 *(cell(label, name) for label in labels)] for name in none]
        yield table(f"Instructions that tracing adds to an operation, {kind}",
                    ["", "without tracing", "noise", *short.values()], rows)
        for name in none:
            bars = [(short[label], max(added(label, name) or 0, 0), label == us) for label in labels]
            charts(f"workload-{kind}-{name}".replace(" ", "-"), f"{name}: added, {kind}",
                   f"instructions per {data['operations'][name]}", bars)


def disk(data, charts):
    ours = data["tracers"][US]

    def rate(label, of):
        if label == US or of["rate"] is None:
            return number(of["rate"])
        return f"{number(of['rate'])} ({of['rate'] / ours['rate']:.2f}x)"

    def per_event(of):
        return of["writer_per_mib"] and of["writer_per_mib"] * of["bytes"] / (1 << 20)

    yield table("To disk: the highest rate without loss, and what writing costs",
                ["", "events per million instructions", "instructions of the writer per MiB",
                 "per event", "bytes per event"],
                [[label, rate(label, of), against(of["writer_per_mib"], ours["writer_per_mib"]),
                  against(per_event(of), per_event(ours)), number(of["bytes"])]
                 for label, of in data["tracers"].items()])
    if "at_lttng" in data:
        at = data["at_lttng"]
        yield table(f"Lost at the rate at which LTTng begins to lose ({number(at['rate'])} events per million instructions)",
                    ["", "events", "lost"],
                    [[label, number(of["events"]), number(of["lost"])] for label, of in at["tracers"].items()])
    if "ways" in data:
        yield table("Moving a packet to a file", ["", "instructions per MiB"],
                    [[way, number(value)] for way, value in data["ways"].items()])


def scaling(data, charts):
    cpus = sorted(data, key=int)
    labels = data[cpus[0]]["tracers"]
    yield table("Instructions per event with so many CPUs firing at once (sched_switch, overwrite)", ["", *cpus],
                [[label, *(number(data[n]["tracers"][label]) for n in cpus)] for label in labels])


def primitives(data, charts):
    for title, rows in data["tables"].items():
        yield table(title, ["", "instructions"], [[name, number(value)] for name, value in rows.items()])


def wall(data, charts):
    ours = data["tracers"][US]
    yield table("Wall time per event, ns, 2 CPUs at once (emulated, and noisy: median of "
                f"{data['rounds']})", ["", *SITES.values()],
                [[label, *(against(of[site], ours[site]) for site in SITES)] for label, of in data["tracers"].items()])


def load(directory):
    data = {}
    for part in PARTS:
        path = f"{directory}/{part}.json"
        if os.path.exists(path):
            with open(path) as file:
                data[part] = json.load(file)
    for name in sorted(os.listdir(directory)):
        if name.startswith("scaling-"):
            with open(f"{directory}/{name}") as file:
                data.setdefault("scaling", {})[name[8:].removesuffix(".json")] = json.load(file)
    return data


def versions(directory, data):
    with open(f"{directory}/versions") as file:
        lines = file.read().split("\n")
    for part in data.values():
        lines += [line.replace("\t", " ") for line in part.get("versions", []) if isinstance(part, dict)]
    return list(dict.fromkeys(filter(None, lines)))


def main(directory, document=None):
    data = load(directory)
    made = versions(directory, data)
    with open(f"{directory}/bench.json", "w") as file:
        json.dump({"versions": made, **data}, file, indent=1)
    text = []
    for part, values in data.items():
        text += globals()[part](values, lambda name, *rest: chart(f"{directory}/{name}.svg", *rest))
    text.append("Measured with: " + ", ".join(made) + ".\n")
    print("\n".join(text))
    if document:
        with open(document) as file:
            before, rest = file.read().split(BEGIN)
        with open(document, "w") as file:
            file.write(before + BEGIN + "\n\n" + "\n".join(text) + "\n" + END + rest.split(END)[1])


main(*sys.argv[1:])
