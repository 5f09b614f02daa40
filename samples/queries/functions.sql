-- SPDX-License-Identifier: GPL-2.0
-- The functions that were found running most often, without idle CPUs.
-- Of: profile (rtrace profile).
SELECT function, object, COUNT(*) AS samples, COUNT(DISTINCT host) AS hosts
FROM samples
WHERE tid IS NULL OR tid <> 0
GROUP BY function, object
ORDER BY samples DESC, function, object
LIMIT 30
