#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: nokaslr reserve_mem=32M:2M:rtrace reserve_mem=1M:4096:small
# panics
# what: after a panic, the trace of a flight recorder in reserved memory is recovered, event by event
set -eu -o pipefail -E

export HERE=/payload/selftests RTRACE_MODULES=/payload/modules
. $HERE/functions

# This directory survives the reboot, as the disk does.
KEPT=/var/kept
size=65536 count=2

before_the_panic() {
	load memory=rtrace
	equal "memory" rtrace "$(cat $C/memory)"
	refused EINVAL $C/memory no-such-one
	log_says "reserves no memory named 'no-such-one'"

	# Too small to preserve the buffers; the channel works without that.
	channel memory=small mode=overwrite subbuf_size=$size subbuf_count=16
	only $CALL
	refused EINVAL $R/enable 1
	log_says "'small' has "
	channel memory=rtrace subbuf_count=$count

	# Records and reads as usual, twice.
	for _ in 1 2; do
		start
		calls 2000
		stop
		equal "recorded" $((2000 * $(online))) "$(stat_of recorded)"
		rm -rf plain
		collect plain
		agrees plain
	done
	! cat $C/recovered 2>/dev/null || fail "there is something to recover"

	# These events are described after the start, as the marker is: the description in memory grows.
	start
	calls 3000
	echo 'sched:sched_process_*' >>"$CHOICE"
	echo '!sched:sched_process_*' >>"$CHOICE"
	echo "here it ends" >$R/marker
	calls 20000
	at_least "overwritten" 1 "$(stat_of overwritten)"
	mkdir $KEPT
	cp $S/metadata $KEPT/
	cp $C/stats $KEPT/stats
	echo $(($(stat_of recorded) - $(stat_of overwritten))) >$KEPT/events
	sync
	echo c >/proc/sysrq-trigger
	fail "no panic"
}

after_it() {
	load memory=rtrace
	cat $C/stats 2>/dev/null || :
	refused EEXIST $R/enable 1
	log_says "has a trace of an earlier boot"
	# (Reading changes nothing, and neither does loading the module again.)
	rmmod rtrace
	load memory=rtrace

	rtrace recover -o trace --keep-memory
	cmp $KEPT/metadata trace/metadata
	equal "events" "$(cat $KEPT/events)" "$(total trace events)"
	equal "events by babeltrace2" "$(cat $KEPT/events)" "$(bt_count trace)"
	no_warning
	rtrace report trace >report
	called trace | awk -v cpus="$(online)" '
		($1 in last) && $2 != last[$1] + 1 { print "CPU " $1 ": " $2 " after " last[$1]; exit bad = 1 }
		{ last[$1] = $2 }
		END {
			if (bad) exit 1
			for (cpu in last) { n++; if (last[cpu] != 19999) { print "CPU " cpu " ends with " last[cpu]; exit 1 } }
			exit n != cpus
		}' || fail "not the newest events, or not in order"

	# After another recovery the trace is gone, and the memory is free.
	rtrace recover -o again
	diff -r trace again
	status rtrace recover -o none
	equal "status without a trace" 125 "$STATUS"
	[ ! -e none ] || fail "a directory was made for nothing"
	channel mode=overwrite subbuf_size=$size subbuf_count=$count
	only $CALL
	start
	calls 100
	stop
	equal "recorded afterwards" $((100 * $(online))) "$(stat_of recorded)"
}

cd /root
if [ -e $KEPT ]; then after_it; else before_the_panic; fi
