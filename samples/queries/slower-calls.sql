-- SPDX-License-Identifier: GPL-2.0
-- System calls whose median duration on the last day is more than 1.5 times that on the previous day with
-- traces.
-- Of: syscalls, sched_switch.
WITH days AS (
    SELECT host, name, date, COUNT(*) AS calls,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ns) AS p50_ns
    FROM syscalls
    WHERE duration_ns IS NOT NULL
    GROUP BY host, name, date
), changes AS (
    SELECT host, name, date, calls, p50_ns,
        LAG(p50_ns) OVER (PARTITION BY host, name ORDER BY date) AS before_ns
    FROM days
)
SELECT host, name, calls, before_ns, p50_ns
FROM changes
WHERE date = (SELECT MAX(date) FROM syscalls) AND p50_ns > 1.5 * before_ns
ORDER BY 1.0 * p50_ns / before_ns DESC, host, name
LIMIT 20
