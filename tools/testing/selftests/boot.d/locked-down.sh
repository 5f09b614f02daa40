#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# what: under lockdown=integrity all works through the file system rtrace, also the flight recorder's unit; under confidentiality no file opens and no probe attaches
set -u
cd /tmp || exit
R=/sys/kernel/rtrace LOCK=/sys/kernel/security/lockdown
fail() { echo "# $*"; exit 1; }
# refused WHAT COMMAND...: the command must fail with EPERM.
refused() {
	local what=$1
	shift
	! "$@" 2>refused.err || fail "$what is not refused"
	grep -q 'not permitted' refused.err || fail "$what: $(cat refused.err)"
}

mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
[ -e $LOCK ] || { echo "SKIP this kernel has no lockdown"; exit 4; }
insmod /payload/modules/rtrace.ko || fail "insmod rtrace.ko"
insmod /payload/modules/rtrace-events.ko || fail "insmod rtrace-events.ko"

echo integrity >$LOCK || fail "the kernel cannot be locked down"
refused "debugfs" cat /sys/kernel/debug/rtrace/enable
! rtrace status 2>err || fail "rtrace works by debugfs"
grep -q 'the kernel is locked down: mount -t rtrace rtrace /sys/kernel/rtrace' err || fail "rtrace says: $(cat err)"
! rtrace doctor >out || fail "rtrace doctor finds nothing wrong"
grep -A 1 'missing  lockdown: .*integrity' out | grep -q 'mount -t rtrace' || fail "rtrace doctor says: $(cat out)"
mount -t rtrace rtrace $R || fail "mount"
rtrace doctor >out || fail "rtrace doctor says: $(cat out)"
grep -q 'ok       lockdown: integrity' out || fail "rtrace doctor says: $(cat out)"

# The tool: ioctl, poll, splice; kernel functions, probes, system calls, tracepoints.
rtrace record -o trace -e 'sched_switch,read' -k vfs_read -T vfs_write -- \
	sh -c 'cat /etc/passwd >/dev/null; echo >file' 2>err || fail "record: $(cat err)"
babeltrace2 trace >text 2>err || fail "babeltrace2: $(cat err)"
for event in sched_switch syscall_entry_read vfs_read function; do
	grep -q " $event: " text || fail "the trace has no $event; it has: $(awk '{ print $4 }' text | sort | uniq -c | sort -n | tail)"
done
# Files: plain reads, lines of text, settings.
echo sched_switch >$R/set_event || fail "set_event"
echo 1 >$R/enable || fail "enable"
sleep 0.5
timeout 2 head -n 1 $R/pipe | grep -q . || fail "no line in pipe"
echo 0 >$R/enable
[ "$(cat $R/sessions/default/channels/channel0/cpu0 | wc -c)" -gt 0 ] || fail "nothing to read"
rtrace trace -i trace >/dev/null 2>err || fail "trace -i: $(cat err)"

# The commands of the flight recorder's unit, which has the file system mounted before.
cp -r /payload/installed/. / && ln -s /payload/bin/rtrace /payload/bin/rtraced /usr/bin/ || fail "install"
UNITS=/usr/lib/systemd/system RECORDER=/var/lib/rtrace/flight-recorder
unit() { /payload/selftests/unit $UNITS/rtrace-flight-recorder.service "$1"; }
for key in Wants After; do
	grep -q "^$key=.*sys-kernel-rtrace.mount" $UNITS/rtrace-flight-recorder.service || fail "the unit lacks $key="
done
grep -qx "Where=$R" $UNITS/sys-kernel-rtrace.mount || fail "the mount is elsewhere"
unit ExecStartPre 2>err || fail "ExecStartPre: $(cat err)"
unit ExecStart 2>err &
for _ in $(seq 200); do
	! grep -q 'writing trace' err || break
	sleep 0.1
done
unit ExecStop 2>stop.err || fail "ExecStop: $(cat stop.err); rtraced says: $(cat err)"
wait $! || fail "rtraced: $(cat err)"
rtrace report $RECORDER/* | tail -n 1 | grep -E '[1-9][0-9]* events recorded, 0 lost$' || fail "the flight recorder: $(cat err)"
rtrace session destroy flight-recorder 2>err || fail "$(cat err)"

# Confidentiality, while files are open and a session records.
exec 5>$R/enable 6>>$R/dynamic_events 7>$R/sessions/default/set_trigger
echo 1 >&5 || fail "enable"
echo confidentiality >$LOCK || fail "the kernel cannot be locked down further"
python3 - $R <<'P' || exit 1
import errno, os, sys
opened, tried = [], 0
for path, _, names in os.walk(sys.argv[1]):
    for name in names:
        file = os.path.join(path, name)
        mode = os.stat(file).st_mode
        for bit, flag in (0o400, os.O_RDONLY), (0o200, os.O_WRONLY):
            if not mode & bit:
                continue
            tried += 1
            try:
                os.close(os.open(file, flag | os.O_NONBLOCK))
                opened.append(file)
            except OSError as error:
                if error.errno != errno.EPERM:
                    opened.append(f"{file}: {error}")
print(f"# {tried} opens under confidentiality, {len(opened)} not refused {opened[:5]}")
sys.exit(not tried or bool(opened))
P
! rtrace status 2>err || fail "rtrace works"
grep -q 'the kernel is locked down' err || fail "rtrace says: $(cat err)"
! rtrace doctor >out || fail "rtrace doctor finds nothing wrong"
grep -q 'missing  lockdown: .*confidentiality' out || fail "rtrace doctor says: $(cat out)"
# By files that were open before: what records can be stopped; nothing new attaches.
refused "a probe" bash -c 'echo "p:late/probe vfs_read" >&6'
refused "a trigger" bash -c 'echo "sched:sched_switch traceoff" >&7'
echo 0 >&5 || fail "the session does not stop"
refused "a recording" bash -c 'echo 1 >&5'
exec 5>&- 6>&- 7>&-
umount $R && rmmod rtrace_events rtrace || fail "the modules do not unload"
