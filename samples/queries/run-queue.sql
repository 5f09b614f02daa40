-- SPDX-License-Identifier: GPL-2.0
-- How long threads waited for a CPU on each machine, the worst machine first.
-- Of: sched_switch, sched_waking.
SELECT host,
    COUNT(*) AS wakeups,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ns) AS p50_ns,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ns) AS p95_ns,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY duration_ns) AS p99_ns,
    MAX(duration_ns) AS max_ns
FROM wakeups
GROUP BY host
ORDER BY p99_ns DESC, host
