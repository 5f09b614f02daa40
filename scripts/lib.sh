# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts in this folder: source it, never run it.
# shellcheck shell=bash

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${RTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtrace}
BUILD=$TOP/build

# Path at which cargo sees this tree inside the build root: the same for each clone, so that crates compiled
# for one serve the next (scripts/crates).
CARGO_TREE=/rtrace

# The processor to build for and to test on: x86-64, or what ARCH in the environment names, as the kernel's make
# does. MACHINE is its name in Debian, CROSS the prefix of its compiler and other programs in the build root.
case ${ARCH-} in
"" | x86 | x86_64) unset ARCH; MACHINE=amd64 CROSS='' ;;
arm64) export ARCH; MACHINE=arm64 CROSS=aarch64-linux-gnu- ;;
*) echo "rtrace: ARCH=$ARCH is neither x86_64 nor arm64" >&2; exit 1 ;;
esac

# A failure inside $(...) ends the script.
shopt -s inherit_errexit

# The settings of a make that called the script do not apply to its own.
unset MAKEFLAGS MFLAGS MAKELEVEL

# A file that exists only inside the build root.
MARK=/etc/rtrace-build-root

# Prints a progress line. On standard error, because standard output carries results.
say() { echo "rtrace: $*" >&2; }

die() { say "$*"; exit 1; }

# usage [STEP]: prints the header comment of the calling script, without the licence line; or that of a step, which
# begins with "# Usage:", the script and the step.
usage() {
	local from=3
	! grep -q "^# Usage: .*${0##*/} \[\?${1-none}\b" "$0" || from="/^# Usage: .*${0##*/} \[\?$1\\b/"
	sed -n "$from,/^\([^#]\|$\)/ { /^#/ s/^# \{0,1\}//p }" "$0"
}

case ${1-} in --help | -h) usage; exit 0 ;; esac

inside_root() { [ -e "$MARK" ]; }

# Chroot and mmdebstrap need root. Asks for a password if it can; otherwise ends with
# one sentence.
need_root() {
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -v 2>/dev/null; } ||
		die "this needs the rights of root: run it as root, or as a user who may use sudo"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -- "$@"; fi
}

# Prints a short name for the contents of standard input: the key of a cached item.
key() { sha256sum | cut -c1-12; }

# lock NAME: takes a lock that the calling shell holds until it ends. If another run has it, says so and waits.
lock() {
	mkdir -p "$CACHE"
	exec {LOCK_FD}>"$CACHE/.lock-$1"
	if ! flock -n "$LOCK_FD"; then
		say "waiting for another run that is making: $1"
		flock "$LOCK_FD"
	fi
}

# files [PATH]...: prints the files below the current folder that git tracks, and new ones before they are committed.
files() {
	local list file
	list=$(git ls-files --cached --others --exclude-standard -- "$@") || die "git lists no files here"
	while read -r file; do [ ! -e "$file" ] || echo "$file"; done <<<"$list"
}

# copy_sources TO: copies the files of the source tree.
copy_sources() {
	mkdir -p "$1"
	(cd "$TOP" && files | tar -cf - --no-recursion -T -) | tar -xf - -C "$1"
}

# suite_of DIR: prints the name of the build root with the toolchain of the kernel in DIR, a folder that scripts/kernel
# made.
suite_of() { cat "$1/root" 2>/dev/null || echo trixie; }

# Fetches KERNEL, or the default kernel, and prints its release.
release() { basename "$(realpath "$("$TOP/scripts/kernel" get ${KERNEL:+"$KERNEL"})/modules")"; }

# Prints the kernel tree that the host's own tools build for: KDIR; else, without KERNEL,
# the running kernel, if a module can be built for it. Prints nothing if the build root
# does the build.
host_kdir() {
	local running
	running=/lib/modules/$(uname -r)/build
	case ${KDIR-} in
	"$CACHE"/*) ;;
	?*) echo "$KDIR" ;;
	*) if [ -z "${KERNEL-}$CROSS" ] && "$TOP/scripts/check-kdir" "$running" >/dev/null 2>&1; then echo "$running"; fi ;;
	esac
}

# apt_of SUITE COMMAND ARGUMENT...: runs apt-get or apt-cache for the packages of a suite. The default build root has
# the lists of trixie and its backports. The lists of other suites are in the cache, so that looking up a package makes
# no root.
apt_of() {
	local suite=$1 command=$2 at=$CACHE/apt-$1
	shift 2
	case $suite in
	trixie*)
		"$TOP/scripts/in-root" --root "$command" "$@"
		return
		;;
	esac
	mkdir -p "$at/lists/partial" "$at/archives/partial"
	sed -n "s/ trixie main$/ $suite main/p" "$("$TOP/scripts/build-root")/etc/apt/sources.list" >"$at/sources.list"
	# A mirror that is some weeks old is good enough: signatures are checked all the same.
	"$TOP/scripts/in-root" --root "$command" -o "Dir::Etc::SourceList=$at/sources.list" -o Dir::Etc::SourceParts=- \
		-o "Dir::State::Lists=$at/lists" -o "Dir::Cache=$at" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o Acquire::GzipIndexes=true -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User= "$@"
}

# packages INTO SUITE PACKAGE[=VERSION]...: unpacks packages of a suite into a folder, without installing anything.
packages() {
	local into=$1 suite=$2 deb
	shift 2
	mkdir -p "$into/debs"
	(
		cd "$into/debs"
		# The lists may be too old.
		apt_of "$suite" apt-get download -q "$@" ||
			{ lock "kernels-$suite" && apt_of "$suite" apt-get update -q && apt_of "$suite" apt-get download -q "$@"; }
	) >"$into/log" 2>&1 || { tail -n 5 "$into/log" >&2; die "could not fetch the packages $*"; }
	for deb in "$into"/debs/*.deb; do "$TOP/scripts/in-root" dpkg-deb -x "$deb" "$into"; done
	as_root rm -rf "$into/debs" "$into/log"
}

# version_of PACKAGE SUITE: prints the version of a package, which is also that of its kernel.
version_of() { apt_of "$2" apt-cache show "$1" | sed -n 's/^Version: //p' | head -n 1; }

# has_crates SOURCE: whether the kernel crate in this source has what rtrace uses: it is that of 7.2 or later. Otherwise
# scripts/graft-crates gives the kernel the crates of a later one.
has_crates() { [ -d "$1/rust/zerocopy" ]; }

# beside COMMAND...: runs it in the background, as process $!. The command ends with the calling script at the
# latest, also by Ctrl-C, which signals only the foreground process group. Replaces the script's traps.
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

# counted NAME NUMBER COMMAND...: runs a step that prints PASS, FAIL and SKIP lines of its own, and prints its output at
# once. Adds a FAIL line if the step ends with another status than 0 and says no FAIL, or with fewer than NUMBER results.
# A step that ends with status 4 after a SKIP line is skipped. Status 1 if it failed, 4 if it was skipped.
counted() {
	local name=$1 number=$2 said status count
	shift 2
	mkdir -p "$BUILD"
	said=$(mktemp "$BUILD/said-XXXXXX")
	"$@" </dev/null | tee "$said"
	status=${PIPESTATUS[0]} count=$(grep -c -E '^(PASS|SKIP) ' "$said" || :)
	if grep -q '^FAIL ' "$said"; then status=1
	elif [ "$status" = 4 ] && [ "$count" -gt 0 ]; then :
	elif [ "$status" != 0 ]; then echo "FAIL $name: it ends with $status after $count results"; status=1
	elif [ "$count" -lt "$number" ]; then echo "FAIL $name: $count results of $number"; status=1
	fi
	rm "$said"
	return "$status"
}

# expected_skips [KERNEL]: copies lines of results, each at once. A SKIP becomes a FAIL if tools/testing/skips does not
# list it for the release KERNEL, or (without KERNEL) for any.
expected_skips() {
	local line kernel result expected
	while IFS= read -r line; do
		if [[ $line = "SKIP "* ]]; then
			expected=
			while read -r kernel result; do
				# shellcheck disable=SC2053 # Globs are meant.
				[[ $kernel = '#'* || ${1-$kernel} != $kernel || ${line#SKIP } != $result ]] || expected=1
			done <"$TOP/tools/testing/skips"
			[ "$expected" ] || line="FAIL ${line#SKIP } (a skip that tools/testing/skips does not list)"
		fi
		printf '%s\n' "$line"
	done
}
