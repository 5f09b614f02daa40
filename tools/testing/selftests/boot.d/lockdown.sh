#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: lockdown=confidentiality
# what: under lockdown the unsigned module is refused, and rtrace doctor says why
set -u

if ! grep -q '\[confidentiality\]' /sys/kernel/security/lockdown 2>/dev/null; then
	mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
	grep -q '\[confidentiality\]' /sys/kernel/security/lockdown 2>/dev/null || {
		echo "SKIP this kernel has no lockdown"
		exit 4
	}
fi
if insmod /payload/modules/rtrace.ko 2>/tmp/error; then
	echo "# insmod succeeded"
	exit 1
fi
cat /tmp/error
! grep -w '^rtrace' /proc/modules || exit 1
if rtrace doctor >/tmp/doctor 2>&1; then
	echo "# rtrace doctor finds nothing wrong"
	exit 1
fi
grep -i lockdown /tmp/doctor
