# SPDX-License-Identifier: GPL-2.0
"""The tracers that are compared, all with the same handles: see base.Tracer."""

from .bpf import Bpf
from .ftrace import Ftrace
from .lttng import Lttng
from .perf import Perf
from .rtrace import Rtrace

ALL = {tracer.name: tracer for tracer in (Rtrace, Lttng, Ftrace, Perf, Bpf)}
