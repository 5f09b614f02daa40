# SPDX-License-Identifier: GPL-2.0
# scripts/ does the work; each script has --help. Kbuild reads the file Kbuild, not this one.

.DEFAULT_GOAL := all
export ARCH KDIR KERNEL PREFIX DESTDIR

all: module tools ## build the module and the tools

module: ## build the module and the samples for KDIR or KERNEL
	@scripts/module build

events: module ## build rtrace-events, the module with the kernel's own events (minutes, once)
	@scripts/module events

tools: ## build the userspace tools
	@scripts/tools build

demo: ## record a workload on a stock kernel in QEMU, print a report, write an HTML page
	@scripts/demo

test: ## run every check, unit test and selftest, except the slow ones
	@scripts/test

verify: ## the long run: also long searches, stress tests, fuzzing, and the debug kernel
	@scripts/test --long

test-kernels: ## run the selftests on all kernels of Debian 13 and its backports, and the newest of each later suite
	@tools/testing/run kernels

check: ## run lints, layer check and unit tests; needs no QEMU
	@scripts/test --no-qemu

bench: ## compare with LTTng, ftrace, perf and BPF, in QEMU (long)
	@scripts/bench

deb: ## build the Debian packages: commands, modules' source; with KERNEL also its compiled modules
	@scripts/deb

repo: deb ## make a repository for apt of the packages, as files (build/repo)
	@scripts/repo

sysext: deb ## make an image for systemd-sysext, for a machine whose /usr is read-only; needs KERNEL
	@scripts/sysext

install: ## install modules, tools, man pages and systemd units (DESTDIR, PREFIX)
	@scripts/module install
	@scripts/tools install

clean: ## remove build/ (not the cache)
	@rm -rf build

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 | \2/p' Makefile | column -t -s '|' 2>/dev/null || \
		sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1   \2/p' Makefile
	@echo
	@echo '  KDIR=DIR       build for this kernel tree, with its host tools'
	@echo '  KERNEL=7.3-rt  build for and test on this stock kernel (see scripts/kernel list)'
	@echo '  ARCH=arm64     build for and test on arm64, in QEMU (see Documentation/arm64.md)'
	@echo '  RTRACE_CACHE   where the build root, kernels and guest image are kept ($$HOME/.cache/rtrace)'

.PHONY: all module events tools demo test verify test-kernels check bench deb repo sysext install clean help
