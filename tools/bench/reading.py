#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Usage: reading.py RTRACE OUT ROUNDS NAME=TRACE...

Measures how fast rtrace and babeltrace2 read each trace, on 1, 2, 4 and 8 CPUs as far as this machine has them, and
writes that to OUT. Of ROUNDS runs the shortest counts: other load on the machine can only add. A trace of more than
10^7 events is read once, with all CPUs, and neither as a page nor as text.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

QUESTIONS = ("--threads", "--cpu", "--irq", "--latency", "--syscalls", "--io", "--locks")


def tools(rtrace, trace, out):
    """The measured commands by name, and whether each may use several CPUs."""
    return {
        "summary": ([rtrace, "report", trace], True),
        "all questions": ([rtrace, "report", *questions(rtrace, trace), trace], True),
        "Perfetto": ([rtrace, "export", "perfetto", "-o", f"{out}/perfetto", trace], True),
        "Parquet": ([rtrace, "export", "parquet", "-o", f"{out}/parquet", trace], True),
        "page": ([rtrace, "report", "--html", f"{out}/page", trace], True),
        "babeltrace2, dummy": (["babeltrace2", trace, "-c", "sink.utils.dummy"], False),
        "babeltrace2, text": (["babeltrace2", trace], False),
    }


def questions(rtrace, trace):
    """The questions that the trace has the events for."""
    asked = lambda question: subprocess.run([rtrace, "report", question, trace], capture_output=True).returncode == 0
    return [question for question in QUESTIONS if asked(question)]


def run(command, cpus):
    """Seconds, seconds of all CPUs, and bytes of memory of one run."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: {said.decode()}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def count(rtrace, trace):
    said = subprocess.run([rtrace, "report", "--json", trace], capture_output=True, check=True).stdout
    return json.loads(said)["recorded"]


def measure(rtrace, trace, rounds):
    events = count(rtrace, trace)
    is_large = events > 10**7
    available = sorted(os.sched_getaffinity(0))
    counts = [cpus for cpus in (1, 2, 4, 8) if cpus <= len(available)]
    found = {}
    place = os.path.dirname(os.path.abspath(trace))
    with tempfile.TemporaryDirectory(dir=place) as out, tempfile.TemporaryDirectory(dir=place) as old:
        for name, (command, is_parallel) in tools(rtrace, trace, out).items():
            if not shutil.which(command[0]) or (is_large and name in ("page", "babeltrace2, text")):
                continue
            for cpus in counts[:1] if not is_parallel else counts[-1:] if is_large else counts:
                runs = []
                for _ in range(1 if is_large else rounds):
                    runs.append(run(command, available[:cpus]))
                    # A file system is slow at new files after it has deleted many: the old ones stay.
                    for left in os.listdir(out):
                        os.rename(os.path.join(out, left), tempfile.mkdtemp(dir=old) + "/old")
                if is_large:
                    shutil.rmtree(old)
                    os.mkdir(old)
                shortest = min(runs)
                found.setdefault(name, {})[str(cpus)] = {
                    "rate": events / shortest[0], "cpu": min(cpu for _, cpu, _ in runs) / events * 1e9,
                    "memory": max(memory for *_, memory in runs)}
    return {"events": events, "tools": found}


def main(rtrace, out, rounds, *traces):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    found = {name: measure(rtrace, trace, int(rounds)) for name, trace in (trace.split("=", 1) for trace in traces)}
    with open(out, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
