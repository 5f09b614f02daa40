-- SPDX-License-Identifier: GPL-2.0
-- Machines that have more of an interrupt than the other machines.
-- Of: irq.
WITH counts AS (
    SELECT host, kind, number, name, COUNT(*) AS interrupts, SUM(own_ns) AS own_ns
    FROM interrupts
    GROUP BY host, kind, number, name
)
SELECT host, kind, number, name, interrupts, own_ns,
    interrupts / AVG(interrupts) OVER (PARTITION BY kind, number, name) AS times_the_average
FROM counts
ORDER BY times_the_average DESC, host, kind, number, name
LIMIT 20
