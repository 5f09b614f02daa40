-- SPDX-License-Identifier: GPL-2.0
-- The files that took longest to open. The name is in the table of the event that a call begins with.
-- Of: syscalls, sched_switch.
SELECT entries.filename, COUNT(*) AS opens, COUNT(calls.error) AS errors,
    AVG(calls.duration_ns) AS average_ns, MAX(calls.duration_ns) AS max_ns, MIN(calls.host) AS first_host
FROM syscalls AS calls
JOIN syscall_entry_openat AS entries
    ON entries.host = calls.host AND entries.date = calls.date
    AND entries.cpu = calls.cpu AND entries.ns = calls.ns
WHERE calls.name = 'openat' AND calls.duration_ns IS NOT NULL
GROUP BY entries.filename
ORDER BY max_ns DESC, entries.filename
LIMIT 20
