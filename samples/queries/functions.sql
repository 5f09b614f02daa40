-- SPDX-License-Identifier: GPL-2.0
-- The functions with the most samples; samples of idle CPUs do not count.
-- Of: profile (rtrace profile).
SELECT function, object, COUNT(*) AS samples, COUNT(DISTINCT host) AS hosts
FROM samples
WHERE tid IS NULL OR tid <> 0
GROUP BY function, object
ORDER BY samples DESC, function, object
LIMIT 30
