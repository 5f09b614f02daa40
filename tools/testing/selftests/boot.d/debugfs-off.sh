#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: debugfs=off
# what: without debugfs the module does not load, says why, and leaves nothing behind
set -u

if insmod /payload/modules/rtrace.ko 2>/tmp/error; then
	echo "# insmod succeeded"
	exit 1
fi
cat /tmp/error
dmesg | grep 'rtrace: cannot make .*debugfs' || { echo "# the log does not say why"; exit 1; }
! grep -w '^rtrace' /proc/modules || exit 1
# rtrace doctor says so, too.
if rtrace doctor >/tmp/doctor 2>&1; then
	echo "# rtrace doctor finds nothing wrong"
	exit 1
fi
grep -i debugfs /tmp/doctor
