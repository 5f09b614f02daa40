-- SPDX-License-Identifier: GPL-2.0
-- System calls that failed, by error, and on how many machines.
-- Of: syscalls.
SELECT name, error, COUNT(*) AS errors, COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT comm) AS programs
FROM syscalls
WHERE error IS NOT NULL
GROUP BY name, error
ORDER BY errors DESC, name, error
LIMIT 50
