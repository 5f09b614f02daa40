#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: threadirqs
# what: an event of an interrupt that has no mark in the preemption count, within a record: it is no recursion
set -eu -o pipefail -E

export HERE=/payload/selftests RTRACE_MODULES=/payload/modules
. $HERE/functions

grep -qw threadirqs /proc/cmdline || fail "the kernel was not told to have interrupts in threads"
load
# Where an interrupt ends it wakes its thread, and arms timers: unmarked, but with interrupts
# disabled. Records that it may interrupt there are made all the time.
only 'syscalls:*' 'sched:*' 'timer:*' 'irq:*'
channel mode=overwrite subbuf_size=64K subbuf_count=4
start
keep_calling 12
stop
cat $C/stats
at_least recorded 10000 "$(stat_of recorded)"
equal nested 0 "$(stat_of nested)"
