#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: debugfs=off
# what: without debugfs the module serves its own file system, and the tools say how to mount it
set -u
cd /tmp || exit
R=/sys/kernel/rtrace
fail() { echo "# $*"; exit 1; }

insmod /payload/modules/rtrace.ko || fail "insmod"
[ ! -e /sys/kernel/debug/rtrace ] || fail "debugfs is on"
dmesg | grep -q 'rtrace: this kernel has no debugfs: mount the file system rtrace' || fail "the log does not say so"
! rtrace status 2>err || fail "rtrace works without files"
grep -q 'mount -t rtrace rtrace /sys/kernel/rtrace' err || fail "rtrace says: $(cat err)"
! rtrace doctor >out || fail "rtrace doctor finds nothing wrong"
grep -A 1 'missing  debugfs' out | grep -q 'mount -t rtrace' || fail "rtrace doctor says: $(cat out)"
# Names are known without a file system, too.
mount -t rtrace rtrace $R || fail "mount"
echo same >$R/create_session || fail "create_session"
! echo same >$R/create_session 2>err || fail "a session twice"
umount $R
mount -t rtrace rtrace $R || fail "mount again"
[ -e $R/sessions/same/enable ] || fail "the session is gone"
rtrace doctor >out || fail "rtrace doctor says: $(cat out)"
rtrace record -o trace -e sched_switch -- sleep 0.2 2>err || fail "record: $(cat err)"
babeltrace2 trace | grep -q sched_switch || fail "no event"
umount $R
rmmod rtrace || fail "rmmod"
