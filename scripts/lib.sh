# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts in this folder: source it, never run it.
# shellcheck shell=bash

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${RTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrace}
BUILD=$TOP/build

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

# Runs a command with the rights of root. Chroot and mmdebstrap need them.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -- "$@"
	else
		die "this needs root: run it as root, or install sudo"
	fi
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
