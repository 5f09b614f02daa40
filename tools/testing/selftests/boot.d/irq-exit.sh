#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: threadirqs
# what: an event of an interrupt that does not show in the preemption count, while a record is made, is no recursion
set -eu -o pipefail -E

export HERE=/payload/selftests RTRACE_MODULES=/payload/modules
. $HERE/functions

grep -qw threadirqs /proc/cmdline || fail "the kernel does not run interrupts in threads (threadirqs)"
load
# At its end an interrupt wakes its thread and arms timers: no longer counted, but with interrupts disabled.
# It may interrupt the making of records, which happens all the time.
only 'syscalls:*' 'sched:*' 'timer:*' 'irq:*'
channel mode=overwrite subbuf_size=64K subbuf_count=4
start
keep_calling 12
stop
cat $C/stats
at_least recorded 10000 "$(stat_of recorded)"
equal nested 0 "$(stat_of nested)"
