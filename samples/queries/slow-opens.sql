-- SPDX-License-Identifier: GPL-2.0
-- The files that took longest to open. A call's entry event has the name, in a table of its own.
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
