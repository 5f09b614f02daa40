# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts in this folder: source it, never run it.
# shellcheck shell=bash

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${RTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrace}
BUILD=$TOP/build

# Where cargo sees this tree inside the build root: at the same place for each clone, so that what it has
# compiled for one serves the next (scripts/crates).
CARGO_TREE=/rtrace

# A failure inside $(...) is one.
shopt -s inherit_errexit

# A make that called us has its own business.
unset MAKEFLAGS MFLAGS MAKELEVEL

# The file that says "you are inside the build root".
MARK=/etc/rtrace-build-root

# One progress line. Standard error, because standard output carries results.
say() { echo "rtrace: $*" >&2; }

die() { say "$*"; exit 1; }

# Prints the header comment of the calling script (without the licence line).
usage() { sed -n '3,/^[^#]/ { /^#/ s/^# \{0,1\}//p }' "$0"; }

inside_root() { [ -e "$MARK" ]; }

# Chroot and mmdebstrap need the rights of root. Asks for a password where there
# is somebody to ask; ends with one sentence where they cannot be had.
need_root() {
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -v 2>/dev/null; } ||
		die "this needs the rights of root: run it as root, or as a user who may use sudo"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -- "$@"; fi
}

# A short name for contents: the key of a cached thing.
key() { sha256sum | cut -c1-12; }

# lock NAME: held until the calling shell ends. A second run waits and says so.
lock() {
	mkdir -p "$CACHE"
	exec {LOCK_FD}>"$CACHE/.lock-$1"
	if ! flock -n "$LOCK_FD"; then
		say "waiting for another run that is making: $1"
		flock "$LOCK_FD"
	fi
}

# The kernel tree that the host's own tools shall build for, if it is not the build
# root's business: KDIR; else, where no KERNEL is asked for, the running kernel if
# a module can be built for it.
host_kdir() {
	local running
	running=/lib/modules/$(uname -r)/build
	case ${KDIR-} in
	"$CACHE"/*) ;;
	?*) echo "$KDIR" ;;
	*) if [ -z "${KERNEL-}" ] && "$TOP/scripts/check-kdir" "$running" >/dev/null 2>&1; then echo "$running"; fi ;;
	esac
}

# beside COMMAND...: runs it in the background, its process $!. It ends with the calling script at the
# latest, also by Ctrl-C, which reaches only the process group in front. Takes the script's traps.
beside() {
	trap end_beside EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	set -m
	"$@" </dev/null &
	set +m
}

end_beside() {
	local group
	for group in $(jobs -p); do kill -- "-$group" 2>/dev/null || :; done
	wait
}

# free_cpu: waits until fewer commands run beside the calling script than the machine has CPUs.
free_cpu() {
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || :; done
}
