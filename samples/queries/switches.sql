-- SPDX-License-Identifier: GPL-2.0
-- Programs that leave the CPU most often, and how long they ran on average.
-- Of: sched_switch.
SELECT host, comm, COUNT(*) AS slices, COUNT(DISTINCT tid) AS threads, AVG(duration_ns) AS average_ns
FROM slices
GROUP BY host, comm
ORDER BY slices DESC, host, comm
LIMIT 20
