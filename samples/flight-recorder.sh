#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Usage: flight-recorder.sh -o DIR [OPTION]... [--] [COMMAND [ARGUMENT]...]
#
# A flight recorder: events are recorded in memory, the newest over the oldest, until
# something happens; then what led to it is written to DIR, and the recorder stops.
# What may happen is
#
#   - COMMAND fails (if it succeeds, nothing is written),
#   - a line of the kernel log matches a pattern (-k),
#   - this script gets SIGUSR1.
#
#   -o DIR      directory for the trace: new or empty
#   -e PATTERN  events to record, as for rtrace record; may be given several times
#               (default: what is enabled, or the module's default events)
#   -b SIZExN   memory per CPU: N sub-buffers of SIZE bytes
#   -k REGEX    watch the kernel log for this extended regular expression
#
# The trace is readable by its owner only. Settings given by -e and -b stay the session's:
# `rtrace reset` puts the defaults back.
#
# COMMAND goes on after a trigger. SIGINT and SIGTERM end the recorder without a trace.
# It needs root, the module rtrace loaded, and the command rtrace in the PATH.
#
# Exit status: COMMAND's, if there is one; else 0 once a trace is written; 1 if that
# failed; 2 wrong usage; 128 + N after signal N.
set -eu

usage() { sed -n '3,/^[^#]/ { /^#/ s/^# \{0,1\}//p; }' "$0"; }
say() { echo "flight-recorder: $*" >&2; }
wrong() { say "$* (see --help)"; exit 2; }

case ${1-} in --help) usage; exit 0 ;; esac
dir='' pattern=''
options=--overwrite
# Arguments of rtrace, quoted for eval.
quote() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
while getopts o:e:b:k:h option; do
	case $option in
	o) dir=$OPTARG ;;
	e | b) options="$options -$option$(quote "$OPTARG")" ;;
	k) pattern=$OPTARG ;;
	h) usage; exit 0 ;;
	*) wrong "unknown option" ;;
	esac
done
shift $((OPTIND - 1))
[ -n "$dir" ] || wrong "no directory for the trace"
[ ! -d "$dir" ] || [ -z "$(ls -A "$dir")" ] || wrong "$dir is not empty"

recording='' why='' command='' watch='' kmsg=''
tmp=$(mktemp -d)

# However this ends: no process, no file and no recording is left behind.
clean_up() {
	trap - EXIT
	[ -z "$watch" ] || kill "$watch" 2>/dev/null || :
	[ -z "$kmsg" ] || kill "$kmsg" 2>/dev/null || :
	[ -z "$recording" ] || { rtrace stop && rtrace free; } || :
	rm -rf "$tmp"
}
interrupted() {
	say "ended by a signal; no trace is written"
	[ -z "$command" ] || kill "$command" 2>/dev/null || :
	exit "$1"
}
trap clean_up EXIT
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
trap 'why=SIGUSR1' USR1

eval "rtrace start $options"
recording=1

if [ -n "$pattern" ]; then
	mkfifo "$tmp/kmsg"
	dmesg --follow-new >"$tmp/kmsg" &
	kmsg=$!
	{ grep -m 1 -E -e "$pattern" <"$tmp/kmsg" >"$tmp/line" && kill -USR1 $$; } &
	watch=$!
fi
# The trap may strike at any moment, but wait is what it interrupts.
if [ $# -gt 0 ]; then
	# What runs in the background has no standard input of its own.
	exec 3<&0
	"$@" <&3 3<&- &
	command=$!
	task=$command
else
	sleep 2147483647 &
	task=$!
fi
status=0
[ -n "$why" ] || wait "$task" || status=$?

if [ -n "$why" ]; then
	# The status of a wait that was interrupted is nobody's.
	if kill -0 "$task" 2>/dev/null; then status=0; fi
	if [ -s "$tmp/line" ]; then why="kernel log: $(cat "$tmp/line")"; fi
elif [ "$status" -ne 0 ]; then
	why="$1 ended with status $status"
fi

failed=''
if [ -n "$why" ]; then
	say "$why"
	# Stop first: what is in the buffers stays, and nothing of ours pushes it out.
	rtrace stop
	recording=''
	rtrace snapshot -o "$dir" || {
		failed=1
		say "what could not be written is in memory until the next start, or \`rtrace free\`"
	}
else
	say "nothing happened; no trace is written"
fi

if [ -z "$command" ]; then
	kill "$task"
elif kill -0 "$command" 2>/dev/null; then
	say "waiting for $1"
	wait "$command" || status=$?
fi
[ -z "$failed" ] || [ "$status" -ne 0 ] || status=1
exit "$status"
