-- SPDX-License-Identifier: GPL-2.0
-- The longest waits of all machines from a wake-up until the thread ran.
-- Of: sched_switch, sched_waking.
SELECT host, time, cpu, comm, tid, duration_ns
FROM wakeups
ORDER BY duration_ns DESC, host, ns, tid
LIMIT 20
