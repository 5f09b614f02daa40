# SPDX-License-Identifier: GPL-2.0
"""Instructions per event of probes that are made from the kernel's macros (events/), of events that rtrace has
probes of its own for (rtrace_bench_events.ko); under icount, on one CPU. One that only rtrace-events has is
in ways.py.
"""

import subprocess

import choices
import instructions
import tracers
from tracers.base import Choice

# For each site's event: a field, a value that it always has, and one that it never has.
FIELDS = {f"generated_{site}": field for site, field in choices.FIELDS.items()}
FIELDS["generated_sched_switch"] = ("next_pid", *choices.FIELDS["sched_switch"][1:])


def of_rtrace():
    """(name, figure)."""
    tracer = tracers.Rtrace()
    subprocess.run(["insmod", "/payload/modules/rtrace_bench_events.ko"], check=True)
    for site, (field, value, other) in FIELDS.items():
        for name, figure in instructions.measure(tracer, site).items():
            yield f"{site}/tsc/{name}", figure
        for name, of, wanted in ("refused", other, False), ("accepted", value, True):
            yield f"{site}/tsc/{name}", choices.measure(tracer, site, Choice(filter=(field, of)), wanted)
