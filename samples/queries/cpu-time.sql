-- SPDX-License-Identifier: GPL-2.0
-- CPU time of each program on each machine.
-- Of: sched_switch.
SELECT host, comm, SUM(duration_ns) AS total_ns, COUNT(*) AS slices
FROM slices
GROUP BY host, comm
ORDER BY total_ns DESC, host, comm
LIMIT 50
