# SPDX-License-Identifier: GPL-2.0

"""Compares what the commands of rtrace say about a trace: python3 -m views TRACE."""

import collections
import json
import subprocess
import sys


def rtrace(*arguments):
    return subprocess.run(["rtrace", *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def sums(rows):
    """Number and total of the times above 0, by name."""
    found = collections.defaultdict(lambda: (0, 0))
    for name, ns in rows:
        if ns > 0:
            count, total = found[name]
            found[name] = count + 1, total + ns
    return dict(found)


def totals(rows):
    return {name: total for name, (_, total) in sums(rows).items()}


def same(what, first, others):
    for view, other in others.items():
        differ = {name for name in {*first, *other} if first.get(name) != other.get(name)}
        assert not differ, (what, view, [(name, first.get(name), other.get(name)) for name in differ][:5])


def compare(trace):
    """The quantities that views have in common. Returns how many values each of them has."""
    summary = json.loads(rtrace("report", "--json", trace))
    questions = ["--threads", "--cpu", "--syscalls", "--irq", "--latency"]
    report = json.loads(rtrace("report", *questions, "--json", trace))
    events = json.loads(rtrace("export", "chrome", trace))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    top = [json.loads(line) for line in rtrace("top", "--json", "-i", trace).splitlines()]

    def ns(event):
        return round(event["dur"] * 1000)

    cpus = ["busy_ns", "idle_ns", "unknown_ns"]
    of_cpus = [{(row["cpu"], name): row[name] for row in rows for name in cpus}
               for rows in (summary["cpus"], report["cpu"]["cpus"])]
    same("CPUs", of_cpus[0], {"--cpu": of_cpus[1]})

    running = totals((row["tid"], row["cpu_time_ns"]) for row in summary["tasks"])
    same("threads", running, {
        "--threads": totals((row["tid"], row["running_ns"]) for row in report["threads"]["threads"]),
        "top": totals((row["tid"], row["cpu_ns"]) for table in top for row in table["threads"]),
        "--chrome": totals((event["args"]["tid"], ns(event)) for event in slices if "tid" in event["args"]),
    })

    calls = {row["name"]: (row["timed"], row["total_ns"]) for row in report["syscalls"]["calls"] if row["timed"]}
    # A call that took no time counts, too.
    chrome = collections.defaultdict(lambda: (0, 0))
    for event in slices:
        if "ret" in event["args"]:
            count, total = chrome[event["name"]]
            chrome[event["name"]] = count + 1, total + ns(event)
    same("calls", calls, {"--chrome": chrome})
    begun = sum(row["calls"] for row in report["syscalls"]["calls"])
    of_top = sum(row["calls"] for table in top for row in table["threads"])
    of_top += sum(table["unknown_calls"] for table in top)
    same("calls that began", {"all": begun}, {"top": {"all": of_top}})

    # Several interrupts may have one name: those between CPUs on arm64.
    irq = totals(((row["kind"] == "hard", row["name"]), row["total_ns"]) for row in report["irq"]["interrupts"])
    same("interrupts", irq, {"--chrome": totals(
        (("irq" in event["args"], event["name"]), ns(event))
        for event in slices if "irq" in event["args"] or "softirq" in event["args"])})

    waits = sum(row["wakeups"] for table in top for row in table["threads"])
    same("wake-ups", {"all": report["latency"]["timed"]}, {"top": {"all": waits}})
    lost = summary["lost"], summary["packets_lost"] + summary["packets_before"]
    same("losses", {"all": lost}, {"top": {"all": (
        sum(table["lost"] for table in top), sum(table["packets_lost"] for table in top))}})
    return len(running), len(calls), len(irq)


if __name__ == "__main__":
    print(*compare(sys.argv[1]))
