#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# tsc
# what: the kernel finds the time stamp counter unstable during a recording: the trace, its report and the next trace say so
set -u
cd /tmp || exit
R=/sys/kernel/debug/rtrace
clocks=/sys/module/rtrace_clocks/parameters
fail() { echo "# $*"; exit 1; }

insmod /payload/modules/rtrace.ko || fail "insmod"
insmod /payload/modules/rtrace_clocks.ko || fail "insmod rtrace_clocks"
[ -e $clocks/distrust ] || { echo "SKIP this processor has no counter that the kernel can find unstable"; exit 4; }
[ "$(cat $R/clock)" = '[tsc] mono' ] || fail "the clock is $(cat $R/clock)"
# No module is loaded meanwhile: the mark is the only record.
cat >work <<-E
	echo 1 >$clocks/distrust
	until cat $R/sessions/record-*/channels/*/stats | awk '{ n += \$2 } END { exit !n }'; do sleep 0.1; done
E
rtrace record -o trace -e module_load -- bash work 2>err || fail "record: $(cat err)"
babeltrace2 trace | grep rtrace_marker >marks || fail "no mark: $(cat err)"
[ "$(grep -c 'msg = "clock: the kernel has found the time stamp counter unstable' marks)" = 1 ] || fail "marks: $(cat marks)"
rtrace report trace >out 2>err || fail "report: $(cat err)"
grep -q 'clock: the kernel has found the time stamp counter unstable.* after the begin)' err || fail "report says: $(cat err)"
# A trace whose clock is the kernel's own is right.
[ "$(cat $R/clock)" = 'tsc [mono]' ] || fail "the next clock is $(cat $R/clock)"
! echo tsc 2>/dev/null >$R/clock || fail "tsc can be chosen"
rtrace record -o next -e sched_switch -- sleep 0.3 2>err || fail "record: $(cat err)"
grep -q 'Monotonic clock' next/metadata || fail "the next trace uses $(grep description next/metadata)"
! babeltrace2 next | grep rtrace_marker || fail "a mark in the next trace"
rtrace doctor >out || fail "rtrace doctor: $(cat out)"
grep -q 'clock mono (the kernel.s own clock is' out || fail "rtrace doctor says: $(cat out)"
rmmod rtrace_clocks && rmmod rtrace || fail "rmmod"
