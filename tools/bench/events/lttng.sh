#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Usage: lttng.sh TREE
#
# For scripts/bench events, in the build root: runs lttng.c with a session daemon of its own, all of which is gone
# afterwards. TREE has lttng-ust's unpacked packages.
set -eu

TREE=$1
HERE=$(cd "$(dirname "$0")" && pwd)
LIB=$TREE/usr/lib/x86_64-linux-gnu
RUN=$(mktemp -d)
# Root's session daemon keeps its sockets there; the mounts here are our own.
[ "$(id -u)" != 0 ] || busybox mount -t tmpfs tmpfs /run
export PATH=$TREE/usr/bin:$PATH LD_LIBRARY_PATH=$LIB HOME=$RUN LTTNG_HOME=$RUN
export LTTNG_SESSION_CONFIG_XSD_PATH=$TREE/usr/share/xml/lttng

gcc -O2 -Wall -I"$HERE" -I"$TREE/usr/include" -I"$TREE/usr/include/x86_64-linux-gnu" -L"$LIB" -Wl,-rpath-link,"$LIB" \
	-o "$RUN/events" "$HERE/lttng.c" -llttng-ust

lttng-sessiond --no-kernel --consumerd64-path="$LIB/lttng/libexec/lttng-consumerd" --consumerd64-libdir="$LIB" \
	>"$RUN/log" 2>&1 &
DAEMON=$!
trap 'kill $DAEMON 2>/dev/null; wait $DAEMON || :; rm -rf "$RUN"' EXIT
for _ in $(seq 300); do
	! lttng --no-sessiond list >/dev/null 2>&1 || break
	sleep 0.1
done
{
	lttng create events --snapshot
	lttng enable-channel --userspace --session=events --overwrite --subbuf-size=1M --num-subbuf=4 all
	for event in one six text; do
		lttng enable-event --userspace --session=events --channel=all "bench:$event"
	done
	lttng start events
} >>"$RUN/log" 2>&1 || { cat "$RUN/log" >&2; exit 1; }
LTTNG_UST_REGISTER_TIMEOUT=-1 "$RUN/events"
lttng destroy events >>"$RUN/log" 2>&1
