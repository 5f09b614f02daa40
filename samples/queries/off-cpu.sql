-- SPDX-License-Identifier: GPL-2.0
-- Waits of programs that were off their CPUs, without the wait for a CPU after a wake-up.
-- Of: sched_switch, sched_waking.
SELECT comm, state, COUNT(*) AS waits, SUM(duration_ns) AS total_ns, MAX(duration_ns) AS max_ns
FROM offcpu
GROUP BY comm, state
ORDER BY total_ns DESC, comm, state
LIMIT 50
